"""A live line while a run goes on: pages done, failed, pages per second, time left. Silent where nobody watches."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jocr.parsing.rendering import Opened
from jocr.records import ParsedPage


class ProgressLine(AbstractContextManager["ProgressLine"]):
    """A ``Sink``. The total is known only when all documents are open; until then it is extrapolated from those that
    are. (rich forgets its own speed when a total changes, so speed and time left are computed here.)"""

    def __init__(self, n_documents: int, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._n_documents = n_documents
        self._clock = clock
        self._started: float | None = None  # when the first document was open
        self._known: set[int] = set()  # documents opened or given up
        self._expected = 0  # pages of those
        self._done = 0
        self._failed = 0
        self._progress = Progress(
            TextColumn("pages"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TextColumn("[red]{task.fields[failed]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task("parse", total=None, speed="", failed="", left="")

    def __enter__(self) -> ProgressLine:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @property
    def total(self) -> int:
        """Pages expected in all."""
        if not self._known:
            return 0
        return round(self._expected / len(self._known) * self._n_documents)

    @property
    def speed(self) -> float:
        """Pages per second since the first document was open."""
        seconds = self._clock() - self._started if self._started is not None else 0.0
        return self._done / seconds if seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """None before there is a speed to tell it from."""
        return (self.total - self._done) / self.speed if self.speed else None

    def opened(self, document: Opened) -> None:
        self._meet(document.number, len(document.indices))

    def page(self, number: int, row: ParsedPage) -> None:
        self._meet(number, 1)  # a document that did not open is one row
        self._done += 1
        self._failed += row.status == "failed"
        left = self.seconds_left
        self._progress.update(
            self._task,
            completed=self._done,
            total=self.total,
            speed=f"{self.speed:.2f}/s",
            failed=f"{self._failed} failed" if self._failed else "",
            left=f"ETA {clock_time(left)}" if left is not None else "",
        )

    def _meet(self, number: int, pages: int) -> None:
        if self._started is None:
            self._started = self._clock()
        if number not in self._known:
            self._known.add(number)
            self._expected += pages
            self._progress.update(self._task, total=self.total)


def clock_time(seconds: float) -> str:
    """``h:mm:ss``"""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
