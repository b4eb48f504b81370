"""Documents to page images, in a child process that may be killed: the parent keeps the clock and the memory limit.

Native renderers hang and crash on bad files, and signals do not reach threads of other frameworks, so nothing native
runs here. One page is in flight per child; a page that kills its child costs that page and a restart.
"""

from __future__ import annotations

import threading
import time
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
            answer, _ = self._ask("open", path or uri, password)
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
    ) -> PageImage | PageFailure:
        """Render one page.

        Args:
            ref: the page, as ``open`` identified its document; a file that changed since is a failure.
            long_side: pixels of the longer side. PDF pages get exactly that; images are only ever reduced to it.
            password: as for ``open``.
            rotate: 0, 90, 180 or 270 degrees clockwise on top of what the page says; ``rotation`` tells the sum.
            path: as for ``open``.

        Raises:
            ConfigError: ``long_side`` is not between 1 and ``limits.max_long_side``, or ``rotate`` no quarter turn.
        """
        long_side = self.limits.target_long_side if long_side is None else long_side
        if not 1 <= long_side <= self.limits.max_long_side:
            raise ConfigError(f"long_side is {long_side}; choose 1 to {self.limits.max_long_side} pixels")
        if rotate not in (0, 90, 180, 270):
            raise ConfigError(f"rotate is {rotate}; choose 0, 90, 180 or 270 degrees clockwise")
        started = time.perf_counter()
        with self._lock:
            answer, png = self._render(ref, path or ref.doc.uri, password, long_side=long_side, rotate=rotate)
        if "reason" in answer:
            stage: Literal["open", "render"] = "open" if answer.get("opening") else "render"
            return _failure(ref.doc.uri, ref.doc.sha256, ref.index, stage, answer)
        answer["notes"] = tuple(answer["notes"])
        return PageImage(ref=ref, png=png, **answer | {"seconds": time.perf_counter() - started})

    def _render(self, ref: PageRef, path: str, password: str | None, **look: Any) -> tuple[dict[str, Any], bytes]:
        """A child may die of what earlier pages left behind: only one that is fresh is believed at once."""
        for _ in range(2):
            fresh = self._child is None or self._child.pages == 0
            opened = self._ensure_open(path, ref.doc.sha256, password)
            if opened is not None:
                return {**opened, "opening": True}, b""
            answer, png = self._ask("render", index=ref.index, **look)
            if fresh or answer.get("reason") != "render_crash":
                break
        return answer, png

    def _ensure_open(self, path: str, sha256: str, password: str | None) -> dict[str, Any] | None:
        """Make the child hold the document; the answer where that fails."""
        if self._child is not None and self._worn_out(self._child):
            self._stop()
            self.restarts += 1
        if self._child is not None and self._loaded == (path, password, sha256):
            return None
        answer, _ = self._ask("open", path, password)
        if "reason" in answer:
            return answer
        if answer["sha256"] != sha256:
            return {"reason": "unreadable_file", "detail": "the file's bytes changed since it was identified"}
        return None

    def _worn_out(self, child: Child) -> bool:
        return child.pages >= self.limits.pages_per_child or child.private_mb() > self.limits.recycle_mb

    def _ask(
        self, verb: str, path: str | None = None, password: str | None = None, **request: Any
    ) -> tuple[dict[str, Any], bytes]:
        """One request within its limits; a child that breaks them is gone afterwards and its answer a failure."""
        seconds = self.limits.seconds_page
        if verb == "open":
            request = {"uri": path, "password": password, "max_pixels": self.limits.max_pixels}
            seconds, self._loaded = self.limits.seconds_open, None
        if self._child is None:
            self._child = Child(self.limits.memory_mb)
            self._holder[:] = [self._child]
        try:
            answer, blob = self._child.ask({"do": verb, **request}, seconds)
        except OutOfTime:
            return self._lost("render_timeout", f"stopped after {seconds:g} s", retryable=True), b""
        except ChildDied as death:
            return self._lost("render_crash", str(death), retryable=False), b""
        if verb == "open" and path is not None and "reason" not in answer:
            self._loaded = (path, password, answer["sha256"])
        return answer, blob

    def _lost(self, reason: str, detail: str, *, retryable: bool) -> dict[str, Any]:
        self._stop()
        self.restarts += 1
        return {"reason": reason, "detail": detail, "retryable": retryable}

    def _stop(self) -> None:
        if self._child is not None:
            self._child.kill()
        self._child, self._loaded = None, None
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
