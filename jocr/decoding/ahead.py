"""Pages made ready on a thread of its own while others decode: on two cores vision then costs a page no time.

Small models decode on one thread and spend about as long before a page's first token as after it. While nobody waits
for the page, that thread reads its prompt too (``Prefiller``).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import local

import torch

from jocr.decoding.cache import SlotCache
from jocr.decoding.compiled_steps import CompiledSteps
from jocr.decoding.helping import Help
from jocr.decoding.scheduler import Job, fill
from jocr.records import PageInput

AHEAD = 3  # pages: one in the works, one that who waits for it may take on, one for a thread that is done first

Prepare = Callable[[PageInput], Job | None]
"""Makes a page ready; None where it cannot be, which the maker has noted."""
Fill = Callable[[Job], Job]
"""Reads a ready page's prompt into a slot, or leaves it as it is."""


def spare_cores(threads: int) -> int:
    """Cores this process may use beside so many threads."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(0, mine - threads)


def encoder_thread(cores: int) -> ThreadPoolExecutor:
    """A thread whose tensor operations take at most ``cores`` threads. It starts with its first task."""

    def begin() -> None:
        torch.set_num_threads(min(torch.get_num_threads(), cores))

    return ThreadPoolExecutor(1, "encode", initializer=begin)


@dataclass
class _Wishes:
    """How many wish a thread's tensor operations to take one thread, and how many they took before the first."""

    count: int = 0
    before: int = 0


_own = local()


@contextmanager
def one_thread() -> Iterator[None]:
    """Tensor operations of the calling thread take one thread, until the last of those who wish so has ended."""
    wishes = _own.__dict__.setdefault("wishes", _Wishes())  # kept: a generator may be closed by another thread
    if not wishes.count:
        wishes.before = torch.get_num_threads()
    wishes.count += 1
    torch.set_num_threads(1)
    try:
        yield
    finally:
        wishes.count -= 1
        if not wishes.count:
            torch.set_num_threads(wishes.before)


class Prefiller:
    """Reads a page's prompt into a spare slot of the cache, on another thread than the one that decodes.

    The rows' results are the same on either thread: the same compiled code reads them.
    """

    def __init__(self, steps: CompiledSteps) -> None:
        self.steps = steps.twin()

    def fill(self, prime: Callable[[], bool], job: Job) -> Job:
        """The job with its slot filled, and the draft's cache too where ``prime`` says so.

        As it was where the cache would have to grow, which the other thread may do alone, or where the prompt cannot
        be read, which that thread will find out and report.
        """
        cache = self.steps.cache
        if job.stopper.stop is not None or cache.slots < cache.pages + AHEAD:
            return job
        slot = cache.lease()
        try:
            with cache.lock:
                if job.ids.shape[0] + 1 <= cache.capacity:
                    return replace(job, filled=fill(self.steps, job, slot, prime()))
        except Exception:  # reported by whoever admits the page
            pass
        cache.release(slot)
        return job


@dataclass(slots=True)
class Coming:
    """A page on its way."""

    page: PageInput
    job: Future[Job | None]


class Ahead(Iterator[Job]):
    """Jobs in the order of ``pages``. While one is out, the next ``AHEAD`` are in the works; no more than that is held.

    ``pages`` is read by the caller's thread.

    Args:
        fill: what is done to a job that is ready while nobody waits for it.
        help: how the caller's thread waits for a job: by doing pieces of it, or else by preparing a later page.
    """

    def __init__(self, pages: Iterator[PageInput], prepare: Prepare, thread: ThreadPoolExecutor,
                 fill: Fill | None = None, help: Help | None = None) -> None:  # fmt: skip
        self._pages, self._prepare, self._thread, self._fill = pages, prepare, thread, fill
        self._help = help or Help()
        self._made: deque[Coming] = deque()
        self._begun = self._ended = False
        self._given = self._wanted = 0  # jobs handed out; jobs asked for

    def ready(self) -> bool:
        """Whether asking for the next job would not wait for its preparation."""
        return self._begun and (not self._made or self._made[0].job.done())

    def __next__(self) -> Job:
        self._begun = True
        self._start()
        while self._made:
            self._wanted = self._given + 1
            self._help.wait(self._made[0].job, self._take_on)
            job = self._made.popleft().job.result()
            self._given += 1
            self._start()
            if job is not None:
                return job
        raise StopIteration

    def close(self, cache: SlotCache) -> None:
        """Give back the slots of pages that nobody will ask for any more."""
        self._ended = True
        while self._made:
            left = self._made.pop().job
            job = None if left.cancel() else left.result()
            if job is not None and job.filled is not None:
                cache.release(job.filled.slot)

    def _start(self) -> None:
        while not self._ended and len(self._made) < AHEAD:
            page = next(self._pages, None)
            if page is None:
                self._ended = True
            else:
                number = self._given + len(self._made) + 1
                self._made.append(Coming(page, self._thread.submit(self._make, page, number)))

    def _take_on(self) -> bool:
        """Prepare a page that the other thread has not begun; False where there is none."""
        for coming in self._made:
            if coming.job.cancel():
                coming.job = Future()
                coming.job.set_result(self._prepare(coming.page))
                return True
        return False

    def _make(self, page: PageInput, number: int) -> Job | None:
        job = self._prepare(page)
        return job if job is None or self._fill is None or self._wanted >= number else self._fill(job)
