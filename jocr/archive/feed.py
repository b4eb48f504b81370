"""One decoder shared by the units in flight: their pages meet in one batch, which therefore never drains between units.

A decoder takes pages from one iterator and belongs to one thread. ``Feed`` is that thread: other threads hand it pages
and wait for their transcripts. When no page comes for a moment the iterator ends, so that pages being decoded are not
held up by a slow renderer; the next page begins a new one.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count

from jocr.decoding.protocol import Decoder
from jocr.errors import EngineError
from jocr.records import PageInput, Transcript

PATIENCE = 0.2  # seconds that pages being decoded may be held up for the next page


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a page: ``number`` is its place among those asked for."""

    number: int
    transcript: Transcript
    share: float  # seconds of the decoder's time: what passes is shared equally by the pages in flight


@dataclass(frozen=True, slots=True)
class _Asked:
    number: int
    page: PageInput
    answers: queue.SimpleQueue[Answer | EngineError]
    last: bool = False  # nothing else is to join it


class Feed:
    """A decoder that any number of threads may use at once.

    Args:
        decoder: owned by the feed from here on.
        lost: called with a sentence, once, when the decoder has died or ends no page for ``stall_seconds``; meant to
            end the process. Where it returns, all who wait get an ``EngineError``.
        stall_seconds: how long pages may be in flight without one of them ending.
    """

    def __init__(self, decoder: Decoder, lost: Callable[[str], None], *, stall_seconds: float,
                 patience: float = PATIENCE) -> None:  # fmt: skip
        self.info = decoder.info
        self._decoder, self._lost = decoder, lost
        self._stall, self._patience = stall_seconds, patience
        self._queue: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._flying: dict[str, tuple[_Asked, float]] = {}  # with the reading of ``_spent`` at admission
        self._spent, self._read = 0.0, time.monotonic()  # decoder's seconds per page in flight so far, and as of when
        self._names = count(1)
        self._dead: EngineError | None = None
        self._moved = time.monotonic()  # when a page last ended, or the first of several came
        self._state = threading.Lock()
        self._turn = _Turn()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jocr-feed", daemon=True)
        self._thread.start()
        threading.Thread(target=self._watch, name="jocr-watchdog", daemon=True).start()

    @property
    def flying(self) -> int:
        """Pages in the decoder now."""
        return len(self._flying)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold while pages go to the common batch; several threads may."""
        with self._turn.shared():
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold to have the decoder alone: nobody else's page is in flight, so a death is one's own."""
        with self._turn.exclusive():
            yield

    def decode(self, pages: Iterable[PageInput]) -> Iterator[Answer]:
        """One answer for each page, in order of completion, decoded together with what other threads ask for.

        Raises:
            EngineError: the decoder has died.
        """
        answers: queue.SimpleQueue[Answer | EngineError] = queue.SimpleQueue()
        waiting = 0
        for page in pages:
            self._queue.put(_Asked(waiting, page, answers))
            waiting += 1
        for _ in range(waiting):
            yield self._answer(answers)

    def alone(self, page: PageInput) -> Answer:
        """The answer for one page that nothing joins in the batch; to be called while holding ``exclusive``."""
        answers: queue.SimpleQueue[Answer | EngineError] = queue.SimpleQueue()
        self._queue.put(_Asked(0, page, answers, last=True))
        return self._answer(answers)

    def close(self) -> None:
        """End the thread and the decoder, when nothing is in flight."""
        self._queue.put(None)
        self._closed.set()

    def _answer(self, answers: queue.SimpleQueue[Answer | EngineError]) -> Answer:
        if self._dead is not None:
            raise self._dead
        answer = answers.get()
        if isinstance(answer, EngineError):
            raise answer
        return answer

    def _run(self) -> None:
        try:
            while (first := self._queue.get()) is not None:
                for transcript in self._decoder.decode(self._stream(first)):
                    self._deliver(transcript)
                if self._flying:
                    raise EngineError(f"the decoder gave no answer for {len(self._flying)} pages")
            self._decoder.close()
        except BaseException as error:  # whatever ended the decoder, nobody may wait for it any longer
            self._give_up(f"the decoder died: {type(error).__name__}: {error}", error)

    def _stream(self, asked: _Asked | None) -> Iterator[PageInput]:
        while asked is not None:
            yield self._admit(asked)
            if asked.last:
                return
            try:
                asked = self._queue.get(timeout=self._patience)
            except queue.Empty:
                return
        self._queue.put(None)  # ``close`` was called; the thread must see it too

    def _admit(self, asked: _Asked) -> PageInput:
        """Take a page into flight under an id of its own: two pages may be the same bytes."""
        page = asked.page
        with self._state:
            self._tick()
            if not self._flying:
                self._moved = time.monotonic()
            if page.page_id in self._flying:
                page = replace(page, page_id=f"{page.page_id}@{next(self._names)}")
            self._flying[page.page_id] = (asked, self._spent)
        return page

    def _deliver(self, transcript: Transcript) -> None:
        with self._state:
            self._tick()
            self._moved = time.monotonic()
            taken = self._flying.pop(transcript.page_id, None)
        if taken is None:
            raise EngineError(f"the decoder answered a page it was not given, or twice: {transcript.page_id}")
        asked, before = taken
        transcript = replace(transcript, page_id=asked.page.page_id)
        asked.answers.put(Answer(asked.number, transcript, self._spent - before))

    def _tick(self) -> None:
        now = time.monotonic()
        if self._flying:
            self._spent += (now - self._read) / len(self._flying)
        self._read = now

    def _watch(self) -> None:
        while self._dead is None and not self._closed.wait(min(1.0, self._stall / 4)):
            with self._state:
                still = time.monotonic() - self._moved if self._flying else 0.0
                pages = len(self._flying)
            if still > self._stall:
                self._give_up(f"{pages} pages in flight and none of them ended for {still:.0f} s", None)

    def _give_up(self, why: str, cause: BaseException | None) -> None:
        dead = EngineError(why)
        dead.__cause__ = cause
        with self._state:
            if self._dead is not None:
                return
            self._dead = dead
        self._lost(why)
        with self._state:
            flying = [asked for asked, _ in self._flying.values()]
        for asked in flying:
            asked.answers.put(dead)
        while not self._queue.empty():
            waiting = self._queue.get()
            if waiting is not None:
                waiting.answers.put(dead)


class _Turn:
    """Many together, or one alone; who wants to be alone is not kept waiting by those who come after."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._together = 0
        self._alone = False
        self._wishes = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._alone and not self._wishes)
            self._together += 1
        try:
            yield
        finally:
            with self._changed:
                self._together -= 1
                self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._changed:
            self._wishes += 1
            self._changed.wait_for(lambda: not self._alone and not self._together)
            self._wishes -= 1
            self._alone = True
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()
