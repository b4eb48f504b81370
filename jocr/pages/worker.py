"""The rendering process: answers ``open`` and ``render`` on its standard streams until they close.

``python -P -m jocr.pages.worker MEMORY_MB``. It may hang or die on any file; its parent (``jocr.pages.render``) has
the clock. It keeps one document open, the last one asked for.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import resource
import signal
import sys
import threading
import time
from typing import Any

import numpy as np

from jocr import storage
from jocr.errors import DocumentError, JocrError, PageError, StorageError
from jocr.pages import wire
from jocr.pages.blank import judge_blank
from jocr.pages.pdf import PdfReader
from jocr.pages.picture import Reader
from jocr.pages.png import encode_png
from jocr.pages.raster import RasterReader
from jocr.pages.sniff import SNIFF_BYTES, sniff
from jocr.pages.sources import lost


class Worker:
    """Holds the document that was opened last."""

    def __init__(self) -> None:
        self._reader: Reader | None = None

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

    def render(self, *, index: int, long_side: int, rotate: int = 0) -> tuple[dict[str, Any], bytes]:
        """One page of the open document: the fields of ``PageImage`` and its PNG. Raises PageError."""
        if self._reader is None:
            raise DocumentError("render_error", "no document is open")
        if not 0 <= index < self._reader.pages:
            raise DocumentError("render_error", f"page {index + 1} is beyond the last, {self._reader.pages}")
        started = time.perf_counter()
        picture = self._reader.draw(index, long_side)
        blank, evidence = judge_blank(picture.pixels)
        if blank and picture.damage:
            raise PageError("image_error", f"the image is damaged and shows nothing to read ({picture.damage})")
        if blank:
            picture.notes += self._reader.unseen(index)
        if rotate:
            picture.pixels = np.rot90(picture.pixels, -rotate // 90)
            picture.rotation = (picture.rotation + rotate) % 360
        png = encode_png(picture.pixels)
        facts = {name: getattr(picture, name) for name in picture.__slots__ if name not in ("pixels", "damage")}
        height, width = picture.pixels.shape[:2]
        facts |= {"height": height, "width": width, "blank": blank, "evidence": evidence}
        return facts | {"seconds": time.perf_counter() - started}, png

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def answer(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Do what a request says; errors become fields of the answer."""
        verb = request.pop("do")
        try:
            if verb == "open":
                return self.open(**request), b""
            return self.render(**request)
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


def main() -> None:
    """Serve requests until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # what native libraries print must not mix with answers
    _limit_memory(int(sys.argv[1]))
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    worker = Worker()
    wire.send(answers, {"do": "started"})
    while True:
        try:
            request, _ = wire.receive(requests)
            wire.send(answers, *worker.answer(request))
        except wire.Ended:
            return


if __name__ == "__main__":
    main()
