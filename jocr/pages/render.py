"""Documents to page images, in a child process that may be killed: the parent keeps the clock and the memory limit.

Native renderers hang and crash on bad files, and signals do not reach threads of other frameworks, so nothing native
runs here. A child draws one page at a time; a page that kills its child costs that page and a restart. Who reads a
document page by page may name the page that comes next: it is drawn while the one before is judged and packed.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Any, Literal

from jocr.errors import ConfigError
from jocr.pages.child import Child, ChildDied
from jocr.pages.wire import OutOfTime
from jocr.records import DocRef, PageFailure, PageImage, PageRef


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """What one document or page may cost."""

    seconds_open: float = 60.0
    seconds_page: float = 60.0
    memory_mb: int = 4096  # private memory of the child: above it, allocation fails or the child is killed
    max_pixels: int = 300_000_000  # declared size of an image file, or of an image on a PDF page
    target_long_side: int = 1280  # pixels, where ``render`` is not told
    max_long_side: int = 8192
    pages_per_child: int = 1000  # a child is replaced between two pages after so many ...
    recycle_mb: int = 1024  # ... or when it holds so much


class Renderer:
    """Opens documents and renders pages, one at a time; safe to call from any thread. Use it as a context manager.

    Failures come back as ``PageFailure``; only bad usage raises.
    """

    def __init__(self, limits: RenderLimits | None = None) -> None:
        self.limits = limits or RenderLimits()
        self.restarts = 0  # children replaced because they died, hung or grew
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._loaded: tuple[str, str | None, str] | None = None  # path, password and sha256 of what the child has open
        self._ahead: dict[str, Any] | None = None  # a request for a page of it that is sent and not yet answered
        self._holder: list[Child] = []
        self._finalizer = weakref.finalize(self, _kill_all, self._holder)

    def __enter__(self) -> Renderer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child process. The renderer may be used again; that starts a new one."""
        with self._lock:
            self._stop()

    def open(
        self, uri: str, *, password: str | None = None, path: str | None = None
    ) -> tuple[DocRef, int] | PageFailure:
        """Identify a document.

        Args:
            uri: a path or ``s3://`` URI: what the answer names.
            password: user or owner password, for encrypted PDFs.
            path: where its bytes lie, if not at ``uri``: a local copy, or a member taken out of a container.

        Returns:
            The document (its sha256 is of the bytes as stored) and its number of pages, or the failure.
        """
        with self._lock:
            answer = self._open(path or uri, password)
        if "reason" in answer:
            return _failure(uri, answer.get("sha256"), None, "open", answer)
        return DocRef(uri, answer["sha256"], answer["size"], answer["kind"]), answer["pages"]

    def render(
        self,
        ref: PageRef,
        *,
        long_side: int | None = None,
        password: str | None = None,
        rotate: int = 0,
        path: str | None = None,
        then: int | None = None,
    ) -> PageImage | PageFailure:
        """Render one page.

        Args:
            ref: the page, as ``open`` identified its document; a file that changed since is a failure.
            long_side: pixels of the longer side. PDF pages get exactly that; images are only ever reduced to it.
            password: as for ``open``.
            rotate: 0, 90, 180 or 270 degrees clockwise on top of what the page says; ``rotation`` tells the sum.
            path: as for ``open``.
            then: index of the page of the same document that will be asked for next, and alike; the child begins it
                before this one is done. Asked for otherwise, it is lost, and drawn again when its turn comes.

        Raises:
            ConfigError: ``long_side`` is not between 1 and ``limits.max_long_side``, or ``rotate`` no quarter turn.
        """
        long_side = self.limits.target_long_side if long_side is None else long_side
        if not 1 <= long_side <= self.limits.max_long_side:
            raise ConfigError(f"long_side is {long_side}; choose 1 to {self.limits.max_long_side} pixels")
        if rotate not in (0, 90, 180, 270):
            raise ConfigError(f"rotate is {rotate}; choose 0, 90, 180 or 270 degrees clockwise")
        look = {"long_side": long_side, "rotate": rotate}
        with self._lock:
            answer, png = self._render(ref, path or ref.doc.uri, password, look, then)
        if "reason" in answer:
            stage: Literal["open", "render"] = "open" if answer.get("opening") else "render"
            return _failure(ref.doc.uri, ref.doc.sha256, ref.index, stage, answer)
        answer["notes"] = tuple(answer["notes"])
        return PageImage(ref=ref, png=png, **answer)

    def _render(
        self, ref: PageRef, path: str, password: str | None, look: dict[str, int], then: int | None
    ) -> tuple[dict[str, Any], bytes]:
        """A child may die of what earlier pages left behind, or of the page it has begun: only one that is fresh is
        believed at once, and it is asked for one page alone."""
        wanted = (path, password, ref.doc.sha256)
        request = {"do": "render", "index": ref.index, **look}
        following = None if then is None else {"do": "render", "index": then, **look}
        if self._ahead is not None:
            held, begun, self._ahead = self._loaded == wanted, self._ahead, None
            if held and begun == request:
                answer, png = self._ask(None, following)
                if answer.get("reason") != "render_crash":
                    return answer, png
            else:
                self._ask(None)  # another's page, or this one looked at otherwise
        for _ in range(2):
            fresh = self._child is None or self._child.pages == 0
            opened = self._ensure_open(*wanted)
            if opened is not None:
                return {**opened, "opening": True}, b""
            answer, png = self._ask(request, None if fresh else following)
            if fresh or answer.get("reason") != "render_crash":
                break
        return answer, png

    def _ensure_open(self, path: str, password: str | None, sha256: str) -> dict[str, Any] | None:
        """Make the child hold the document; the answer where that fails."""
        if self._child is not None and self._worn_out(self._child):
            self._stop()
            self.restarts += 1
        if self._child is not None and self._loaded == (path, password, sha256):
            return None
        answer = self._open(path, password)
        if "reason" in answer:
            return answer
        if answer["sha256"] != sha256:
            return {"reason": "unreadable_file", "detail": "the file's bytes changed since it was identified"}
        return None

    def _worn_out(self, child: Child) -> bool:
        return child.pages >= self.limits.pages_per_child or child.private_mb() > self.limits.recycle_mb

    def _open(self, path: str, password: str | None) -> dict[str, Any]:
        if self._ahead is not None:
            self._ahead = None
            self._ask(None)
        self._loaded = None
        answer, _ = self._ask({"do": "open", "uri": path, "password": password, "max_pixels": self.limits.max_pixels})
        if "reason" not in answer:
            self._loaded = (path, password, answer["sha256"])
        return answer

    def _ask(
        self, request: dict[str, Any] | None, following: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], bytes]:
        """The answer to a request (None: to the one sent ahead); ``following`` is sent ahead of it. Within the limits:
        a child that breaks them is gone afterwards and its answer a failure."""
        opening = request is not None and request["do"] == "open"
        seconds = self.limits.seconds_open if opening else self.limits.seconds_page
        if self._child is None:
            self._child = Child(self.limits.memory_mb)
            self._holder[:] = [self._child]
        try:
            if request is not None:
                self._child.send(request)
            if following is not None and not self._worn_out(self._child):
                self._child.send(following)
                self._ahead = following
            return self._child.receive(seconds)
        except OutOfTime:
            return self._lost("render_timeout", f"stopped after {seconds:g} s", retryable=True), b""
        except ChildDied as death:
            return self._lost("render_crash", str(death), retryable=False), b""

    def _lost(self, reason: str, detail: str, *, retryable: bool) -> dict[str, Any]:
        self._stop()
        self.restarts += 1
        return {"reason": reason, "detail": detail, "retryable": retryable}

    def _stop(self) -> None:
        if self._child is not None:
            self._child.kill()
        self._child, self._loaded, self._ahead = None, None, None
        self._holder.clear()


def _kill_all(children: list[Child]) -> None:
    for child in children:
        child.kill()


def _failure(
    uri: str, sha256: str | None, index: int | None, stage: Literal["open", "render"], answer: dict[str, Any]
) -> PageFailure:
    return PageFailure(
        uri, sha256, index, stage, answer["reason"], answer.get("detail", ""), answer.get("retryable", False)
    )
