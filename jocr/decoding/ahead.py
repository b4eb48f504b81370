"""One page made ready on a thread of its own while others decode: on two cores vision then costs a page no time.

Small models decode on one thread and spend about as long before a page's first token as after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import torch

from jocr.decoding.scheduler import Job
from jocr.records import PageInput

Prepare = Callable[[PageInput], Job | None]
"""Makes a page ready; None where it cannot be, which the maker has noted."""


def spare_cores(threads: int) -> int:
    """Cores this process may use beside so many threads."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(0, mine - threads)


def encoder_thread(cores: int) -> ThreadPoolExecutor:
    """A thread whose tensor operations take at most ``cores`` threads. It starts with its first task."""

    def begin() -> None:
        torch.set_num_threads(min(torch.get_num_threads(), cores))

    return ThreadPoolExecutor(1, "encode", initializer=begin)


class Ahead(Iterator[Job]):
    """Jobs in the order of ``pages``. While one is out, the next is in the works; no more than that is held.

    ``pages`` is read by the caller's thread.
    """

    def __init__(self, pages: Iterator[PageInput], prepare: Prepare, thread: ThreadPoolExecutor) -> None:
        self._pages, self._prepare, self._thread = pages, prepare, thread
        self._next: Future[Job | None] | None = None
        self._begun = False

    def ready(self) -> bool:
        """Whether asking for the next job would not wait for its preparation."""
        return self._begun and (self._next is None or self._next.done())

    def __next__(self) -> Job:
        if not self._begun:
            self._begun = True
            self._start()
        while self._next is not None:
            job = self._next.result()
            self._start()
            if job is not None:
                return job
        raise StopIteration

    def _start(self) -> None:
        page = next(self._pages, None)
        self._next = None if page is None else self._thread.submit(self._prepare, page)
