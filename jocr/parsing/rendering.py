"""Render threads: each owns one renderer process, and together they keep a short queue of page images filled.

Rendering runs ahead of decoding by a few images and no more, so memory does not depend on the documents' sizes.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from jocr.parsing.plan import PageSelection, Plan
from jocr.records import DocRef, PageFailure, PageImage, PageRef


class Renderer(Protocol):
    """What this module needs of ``jocr.pages.render.Renderer``."""

    def open(self, uri: str, *, password: str | None = None) -> tuple[DocRef, int] | PageFailure: ...

    def render(
        self, ref: PageRef, *, long_side: int, password: str | None = None, then: int | None = None
    ) -> PageImage | PageFailure: ...


T = TypeVar("T")
RendererFactory = Callable[[], AbstractContextManager[Renderer]]


@dataclass(frozen=True, slots=True)
class Opened:
    """A document is open; ``indices`` are the pages that will follow, in any order."""

    number: int
    doc: DocRef
    n_pages: int
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rendered:
    """One page (or document that does not open): its image or why there is none."""

    number: int
    result: PageImage | PageFailure
    attempts: int


@dataclass(frozen=True, slots=True)
class RenderJob:
    """How pages are rendered."""

    long_side: int
    password: str | None
    selection: PageSelection
    workers: int
    ahead: int = 4  # images that may wait; four a worker where that is more


Item = Opened | Rendered | BaseException | None


class Crew(AbstractContextManager["Crew"]):
    """The render threads at work on a plan; leaving the context stops them. Taken from by one thread."""

    def __init__(self, plan: Plan, job: RenderJob, factory: RendererFactory) -> None:
        self.job = job
        self.factory = factory
        self._out: queue.Queue[Item] = queue.Queue(max(job.ahead, 4 * job.workers))
        self._stop = threading.Event()
        self._turn = threading.Lock()
        self._documents = iter(plan.documents)
        self._current: tuple[int, DocRef, deque[int]] | None = None
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(job.workers)]
        self._working = job.workers

    def __enter__(self) -> Crew:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def finished(self) -> bool:
        """Everything there was has been taken."""
        return not self._working

    def take(self, seconds: float | None) -> Opened | Rendered | None:
        """``Opened`` for each document that opens and ``Rendered`` for each page of it, as they become ready.

        Returns None where nothing is within ``seconds`` (None: as long as it takes), or nothing is left (``finished``).

        Raises:
            what a render thread raised.
        """
        while self._working:
            try:
                item = self._out.get(timeout=seconds)
            except queue.Empty:
                return None
            if item is None:
                self._working -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                return item
        return None

    def _work(self) -> None:
        try:
            with self.factory() as renderer:
                while not self._stop.is_set() and (task := self._next(renderer)) is not None:
                    number, ref, then = task
                    self._put(render_page(renderer, number, ref, self.job, then))
        except BaseException as error:  # handed to the consumer, which raises it
            self._put(error)
        self._put(None)

    def _next(self, renderer: Renderer) -> tuple[int, PageRef, int | None] | None:
        """The next page to render, and which one of its document this thread will be given after it, where that is
        known; opens the next document where the current one is used up."""
        with self._turn:
            while not self._stop.is_set():
                if self._current is not None:
                    number, doc, indices = self._current
                    if indices:
                        index = indices.popleft()
                        return number, PageRef(doc, index), indices[0] if indices and self.job.workers == 1 else None
                    self._current = None
                planned = next(self._documents, None)
                if planned is None:
                    return None
                self._open(renderer, planned.number, planned.uri)
        return None

    def _open(self, renderer: Renderer, number: int, uri: str) -> None:
        opened = open_document(renderer, number, uri, self.job)
        self._put(opened)
        if isinstance(opened, Opened):
            self._current = (number, opened.doc, deque(opened.indices))

    def _put(self, item: Item) -> None:
        while not self._stop.is_set():
            try:
                return self._out.put(item, timeout=0.2)
            except queue.Full:
                continue


def open_document(renderer: Renderer, number: int, uri: str, job: RenderJob) -> Opened | Rendered:
    """Identify a document and choose its pages; ``Rendered`` with the failure where it does not open."""
    result, attempts = _twice(lambda: renderer.open(uri, password=job.password))
    if isinstance(result, PageFailure):
        return Rendered(number, result, attempts)
    doc, n_pages = result
    if n_pages < 1:
        failure = PageFailure(uri, doc.sha256, None, "open", "no_pages", "the document says it has no pages")
        return Rendered(number, failure, attempts)
    return Opened(number, doc, n_pages, tuple(job.selection.indices(n_pages)))


def render_page(renderer: Renderer, number: int, ref: PageRef, job: RenderJob, then: int | None = None) -> Rendered:
    """Render one page, with a second try where the failure may pass; ``then`` as for ``Renderer.render``."""
    result, attempts = _twice(lambda: renderer.render(ref, long_side=job.long_side, password=job.password, then=then))
    return Rendered(number, result, attempts)


def _twice(call: Callable[[], T]) -> tuple[T, int]:
    """Call again, once, where the first result is a failure that may pass (a stalled or lost child process)."""
    result = call()
    if isinstance(result, PageFailure) and result.retryable:
        return call(), 2
    return result, 1
