"""One line about a run: pages done, failed and left, speed, time left. Live on a terminal, now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TextIO

from jocr.archive.work import Receipt
from jocr.parsing.progress import clock_time

EVERY = 10.0  # seconds between lines where nobody watches live


class Progress:
    """Adds up receipts and says so.

    Args:
        total: pages of the run, those done before included.
        before: pages that were done before it.
    """

    def __init__(self, total: int, before: int, *, stream: TextIO | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:  # fmt: skip
        self.total, self.before = total, before
        self.pages = 0  # since the start, whoever committed them
        self.read = 0  # of those, read here and now: speed comes from them
        self.failed_earlier: int | None = 0  # pages that failed before it, as ``before`` counts; None: not known
        self._failed = 0  # since the start
        self._replaced: dict[str, int] = {}
        self.counts: Counter[str] = Counter()  # of pages committed here
        self.reasons: Counter[str] = Counter()
        self.tokens = 0
        self.busy_seconds = 0.0
        self._stream = stream or sys.stderr
        self._clock = clock
        self._started = self._said = clock()
        self._width = 0
        self._last = ""

    @property
    def seconds(self) -> float:
        """Since the start."""
        return self._clock() - self._started

    @property
    def left(self) -> int:
        return max(0, self.total - self.before - self.pages)

    @property
    def speed(self) -> float:
        """Pages read per second."""
        return self.read / self.seconds if self.seconds > 0 else 0.0

    @property
    def failed(self) -> int | None:
        """Of all pages, those done before included; None where it is not known how many of those."""
        return None if self.failed_earlier is None else self.failed_earlier + self._failed

    def failed_before(self, units: Mapping[str, int]) -> None:
        """Unit -> pages of it that failed before this run; where a unit comes again, it counts as it is then."""
        self.failed_earlier = sum(units.values())
        self._replaced = dict(units)

    def add(self, receipt: Receipt) -> None:
        """Count a unit, and say so where it is time to."""
        self.pages += receipt.pages
        self._failed += receipt.counts.get("failed", 0) - self._replaced.pop(receipt.unit, 0)
        if receipt.mine:
            self.read += receipt.pages - receipt.carried
            self.counts.update(receipt.counts)
            self.reasons.update(receipt.reasons)
            self.tokens += receipt.tokens
            self.busy_seconds += receipt.busy_seconds
        if self._stream.isatty() or self._clock() - self._said >= EVERY:
            self.say()

    def line(self) -> str:
        read = f"{self.before + self.pages} of {self.total} pages"
        text = f"{read}{self._failures()}, {self.left} left, {self.speed:.2f} pages/s"
        eta = f", ETA {clock_time(self.left / self.speed)}" if self.left and self.speed else ""
        return text + eta

    def _failures(self) -> str:
        if self.failed is None:
            return f", {self._failed} failed now, earlier ones not counted"
        return f", {self.failed} failed" if self.failed else ""

    def say(self) -> None:
        """Write the line now."""
        self._said, text = self._clock(), self.line()
        self._last = text
        if self._stream.isatty():
            self._stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Say it a last time and leave the line."""
        if self.line() != self._last:
            self.say()
        if self._stream.isatty():
            self._stream.write("\n")
