"""Repetition: loops of any period, anywhere on the page, and paragraphs said twice."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

from jocr.markup.repeats import find_loop
from jocr.records import Sample
from jocr.rewards.base import Outcome, term

LENIENCE = 3.0
MIN_LINE = 24  # characters from which a line said twice counts as said twice


@term("repetition")
def repetition(prediction: str, reference: Sample) -> Outcome:
    """(1 - repeated share of the page)², beyond what the reference itself repeats. No floor protects this term.

    Repeated is what a loop adds after its first unit (characters, lines or table rows) or what lines add that occur
    more often than in the reference; the larger of the two counts.
    """
    length = max(1, len(prediction))
    loop = loop_evidence(prediction)
    allowed = loop_evidence(reference.markdown)
    looped = max(0, loop.get("extra", 0) - allowed.get("extra", 0))
    doubled = _doubled(prediction, reference.markdown)
    share = min(1.0, max(looped, doubled) / length)
    detail: dict[str, Any] = {"share": round(share, 4)}
    if looped:
        detail["loop"] = loop
    if doubled:
        detail["doubled_characters"] = doubled
    return (1 - share) ** 2, detail


@lru_cache(maxsize=256)
def loop_evidence(markdown: str) -> dict[str, Any]:
    """What ``find_loop`` calls a loop (LENIENCE times fewer copies suffice: the reference's own repetition is allowed
    for) with the characters beyond its first copy (``extra``), or {}."""
    loop = find_loop(markdown, lenience=LENIENCE)
    if loop is None:
        return {}
    unit = max(1, (loop.end - loop.start) // loop.count)
    return {"level": loop.level, "period": loop.period, "count": loop.count, "start": loop.start,
            "extra": unit * (loop.count - 1), "text": markdown[loop.start : loop.start + min(unit, 200)]}  # fmt: skip


def _doubled(prediction: str, reference: str) -> int:
    """Characters of long lines beyond the number of times the reference says them (at least once is free)."""
    said, known = _lines(prediction), _lines(reference)
    return sum(len(line) * (n - max(1, known[line])) for line, n in said.items() if n > max(1, known[line]))


@lru_cache(maxsize=256)
def _lines(markdown: str) -> Counter[str]:
    return Counter(s for line in markdown.splitlines() if len(s := line.strip()) >= MIN_LINE)
