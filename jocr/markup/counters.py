"""Loops that count: the same lines over and over, where only numbers move, each by a constant step.

``12. The meeting was adjourned.`` / ``13. The meeting was adjourned.`` ... Ledgers and lists vary in more than a
counter (amounts, dates, names), so a stretch qualifies only if *every* number is constant or an arithmetic progression,
with enough constant text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from jocr.markup.loop_rules import PAGE_ROWS
from jocr.markup.runs import periodic_runs

MIN_COUNT = 30
MIN_LETTERS = 16  # constant letters in a unit
FEW_LETTERS = 6  # units of so few letters must pass what a sheet holds
MAX_PERIOD = 8  # lines

_NUMBER = re.compile(r"\d+")
_TAG = re.compile(r"<[^<>]*>")


def counting_runs(units: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, int, int]]:
    """(period in lines, copies, start, end) of each counting loop over ``units`` of (start, end, line)."""
    ids: dict[str, int] = {}
    masked = [_NUMBER.sub("0", line.strip()) for _, _, line in units]
    codes = np.array([ids.setdefault(line, len(ids)) for line in masked], np.int64)
    for p, a, b in periodic_runs(codes, max_period=MAX_PERIOD, min_count=MIN_COUNT, min_length=MIN_COUNT):
        letters = sum(c.isalpha() for line in masked[a : a + p] for c in _TAG.sub("", line))
        allowed = MIN_COUNT if letters >= MIN_LETTERS else PAGE_ROWS if letters >= FEW_LETTERS else 1 << 60
        copies = (b - a) // p
        if copies < allowed:
            continue
        counted = _counted_copies([line for _, _, line in units[a : a + copies * p]], p)
        if counted >= allowed:
            yield p, counted, units[a][0], units[a + counted * p - 1][1]


def _counted_copies(lines: list[str], period: int) -> int:
    """How many copies from the first on keep each of their numbers on its arithmetic progression."""
    numbers = [
        [int(n[:18]) for line in lines[i : i + period] for n in _NUMBER.findall(line)]
        for i in range(0, len(lines), period)
    ]
    steps = [b - a for a, b in zip(numbers[0], numbers[1], strict=True)]
    for i in range(1, len(numbers)):
        if [b - a for a, b in zip(numbers[i - 1], numbers[i], strict=True)] != steps:
            return i
    return len(numbers)
