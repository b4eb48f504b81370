"""A live line while a run goes on: pages done, failed, pages per second, time left. Silent where nobody watches."""

from __future__ import annotations

from contextlib import AbstractContextManager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from jocr.parsing.rendering import Opened
from jocr.records import ParsedPage


class ProgressLine(AbstractContextManager["ProgressLine"]):
    """A ``Sink``. The total is known only when all documents are open; until then it is extrapolated from those that
    are."""

    def __init__(self, n_documents: int, console: Console) -> None:
        self._n_documents = n_documents
        self._seen = 0  # documents opened or given up
        self._expected = 0  # pages of those
        self._failed = 0
        self._known: set[int] = set()
        self._progress = Progress(
            TextColumn("pages"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TextColumn("[red]{task.fields[failed]}"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task("parse", total=None, speed="", failed="")

    def __enter__(self) -> ProgressLine:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @property
    def total(self) -> int:
        """Pages expected in all."""
        if not self._seen:
            return 0
        return round(self._expected / self._seen * self._n_documents)

    def opened(self, document: Opened) -> None:
        self._meet(document.number, len(document.indices))

    def page(self, number: int, row: ParsedPage) -> None:
        if number not in self._known:
            self._meet(number, 1)
        self._failed += row.status == "failed"
        speed = self._progress.tasks[0].finished_speed or self._progress.tasks[0].speed
        self._progress.update(
            self._task,
            advance=1,
            total=self.total,
            speed=f"{speed:.2f}/s" if speed else "",
            failed=f"{self._failed} failed" if self._failed else "",
        )

    def _meet(self, number: int, pages: int) -> None:
        self._known.add(number)
        self._seen += 1
        self._expected += pages
        self._progress.update(self._task, total=self.total)
