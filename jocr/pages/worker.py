"""The rendering process: answers ``open`` and ``render`` on its standard streams, in order, until they close.

``python -P -m jocr.pages.worker MEMORY_MB``. It may hang or die on any file; its parent (``jocr.pages.render``) has
the clock. It keeps one document open, the last one asked for. A page is drawn on the main thread; a second one judges
and packs it, so that the next page, where it is asked for already, is drawn meanwhile.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import queue
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from jocr import storage
from jocr.errors import DocumentError, JocrError, PageError, StorageError
from jocr.pages import wire
from jocr.pages.blank import judge_blank
from jocr.pages.colour import squeeze
from jocr.pages.pdf import PdfReader
from jocr.pages.picture import Picture, Reader
from jocr.pages.png import encode_png
from jocr.pages.raster import RasterReader
from jocr.pages.sniff import SNIFF_BYTES, sniff
from jocr.pages.sources import lost

SWITCH_SECONDS = 2e-4  # the thread that draws is back in pdfium sooner than by Python's own 5 ms
Answer = tuple[dict[str, Any], bytes]
Finish = Callable[[], Answer]
"""What is left of a request once its native part is done; safe on another thread."""


class Worker:
    """Holds the document that was opened last."""

    def __init__(self) -> None:
        self._reader: Reader | None = None
        self._native = threading.Lock()  # pdfium serves one thread at a time

    def open(self, *, uri: str, password: str | None, max_pixels: int) -> dict[str, Any]:
        """Identify and open a document: its hash, size, kind and number of pages. Raises DocumentError."""
        self._close()
        source, facts = _identify(uri)
        try:
            if facts["kind"] == "pdf":
                self._reader = PdfReader(_mapped(source), password, max_pixels)
            else:
                self._reader = RasterReader(source, facts["kind"], max_pixels)
        except DocumentError as error:
            return {**facts, "reason": error.reason, "detail": error.detail}
        return {**facts, "pages": self._reader.pages}

    def render(self, *, index: int, long_side: int, rotate: int = 0) -> Finish:
        """Draw one page of the open document; what is returned makes it the fields of ``PageImage`` and its PNG.

        Raises:
            DocumentError, PageError: at once, or by what is returned.
        """
        reader = self._reader
        if reader is None:
            raise DocumentError("render_error", "no document is open")
        if not 0 <= index < reader.pages:
            raise DocumentError("render_error", f"page {index + 1} is beyond the last, {reader.pages}")
        started = time.perf_counter()
        picture = reader.draw(index, long_side)
        drawn = time.perf_counter() - started
        return lambda: self._pack(reader, picture, index, rotate, drawn)

    def _pack(self, reader: Reader, picture: Picture, index: int, rotate: int, drawn: float) -> Answer:
        started = time.perf_counter()
        pixels = squeeze(picture.pixels)
        blank, evidence = judge_blank(pixels)
        if blank and picture.damage:
            raise PageError("image_error", f"the image is damaged and shows nothing to read ({picture.damage})")
        if blank:
            with self._native:
                picture.notes += reader.unseen(index)
        if rotate:
            pixels = np.rot90(pixels, -rotate // 90)
            picture.rotation = (picture.rotation + rotate) % 360
        png = encode_png(pixels)
        facts = {name: getattr(picture, name) for name in picture.__slots__ if name not in ("pixels", "damage")}
        height, width = pixels.shape[:2]
        facts |= {"height": height, "width": width, "blank": blank, "evidence": evidence}
        return facts | {"seconds": drawn + time.perf_counter() - started}, png

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def begin(self, request: dict[str, Any]) -> Finish:
        """Do the native part of what a request says; errors become fields of the answer."""
        verb = request.pop("do")

        def answer() -> Answer | Finish:
            with self._native:
                return (self.open(**request), b"") if verb == "open" else self.render(**request)

        begun = _told(answer)
        return (lambda: _told(begun)) if callable(begun) else (lambda: begun)


T = TypeVar("T")


def _told(call: Callable[[], T]) -> T | Answer:
    """What the call returns, or the answer that tells its error."""
    try:
        return call()
    except DocumentError as error:
        return {"reason": error.reason, "detail": error.detail}, b""
    except MemoryError:
        return {"reason": "render_crash", "detail": "it asks for more memory than the limit allows"}, b""
    except JocrError as error:
        return {"reason": "unreadable_file", "detail": str(error)}, b""


def _identify(uri: str) -> tuple[str | bytes, dict[str, Any]]:
    """The document's path (or, for remote ones, its bytes) and what is known before it is opened."""
    try:
        source = storage.read_bytes(uri) if storage.is_s3(uri) else uri
        digest, size, head = _digest(source)
    except (OSError, StorageError) as error:
        raise DocumentError("unreadable_file", lost(uri) or str(error)) from None
    if not size:
        raise DocumentError("empty_file", "the file has no bytes")
    kind = sniff(head)
    facts = {"sha256": digest, "size": size, "kind": kind}
    if kind is None:
        raise DocumentError("not_a_document", f"its first bytes are {head[:8]!r}")
    return source, facts


def _digest(source: str | bytes) -> tuple[str, int, bytes]:
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest(), len(source), source[:SNIFF_BYTES]
    with open(source, "rb") as file:
        head = file.read(SNIFF_BYTES)
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell(), head


def _mapped(source: str | bytes) -> bytes | mmap.mmap:
    if isinstance(source, bytes):
        return source
    with open(source, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _limit_memory(megabytes: int) -> None:
    limit = megabytes << 20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with(parent: int) -> None:
    """A child that hangs in native code outlives a killed parent otherwise: pipes only tell a child that reads."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _answering(answers: int, begun: queue.Queue[Finish]) -> None:
    """Finish what was begun and send it, in order. The process ends with the parent, or with an error here."""
    code = 0
    try:
        while True:
            wire.send(answers, *begun.get()())
    except wire.Ended:
        pass
    except BaseException:
        traceback.print_exc()  # the parent reads it as the last words
        code = 1
    os._exit(code)


def main() -> None:
    """Serve requests until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # what native libraries print must not mix with answers
    _limit_memory(int(sys.argv[1]))
    sys.setswitchinterval(SWITCH_SECONDS)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    worker, begun = Worker(), queue.Queue[Finish](1)
    wire.send(answers, {"do": "started"})
    threading.Thread(target=_answering, args=(answers, begun), daemon=True).start()
    while True:
        try:
            request, _ = wire.receive(requests)
        except wire.Ended:
            return
        begun.put(worker.begin(request))


if __name__ == "__main__":
    main()
