"""Repeated tails: the cut that one published runner applies before scoring, and the share of pages that need it.

jina-ocr-v1's OmniDocBench number was made with this cut on. Scores are reported with and without it.
"""

from __future__ import annotations

MIN_LENGTH = 8000  # characters before a page is looked at
MAX_PERIOD = 200
MIN_REPEATS = 5
MIN_REPEATED = 100  # characters the repeats must cover


def cut_tail(text: str) -> str:
    """``text`` with a repeated tail shortened to one unit; unchanged below the thresholds above."""
    if len(text) < MIN_LENGTH:
        return text
    found = _tail(text, MIN_REPEATS, MAX_PERIOD, MIN_REPEATED)
    if found is None:
        return text
    period, covered = found
    return text[: len(text) - covered + period]


def ends_in_loop(text: str) -> bool:
    """Whether the page ends in at least ten repeats of a unit of two or more characters."""
    text = text.rstrip()
    return _tail(text, 10, MAX_PERIOD, 20, min_period=2) is not None


def _tail(
    text: str, min_repeats: int, max_period: int, min_covered: int, *, min_period: int = 1
) -> tuple[int, int] | None:
    """Smallest period whose whole repeats at the end suffice, and the characters those repeats cover."""
    n = len(text)
    for period in range(min_period, min(max_period, n // min_repeats) + 1):
        unit = text[n - period :]
        if min_period > 1 and len(set(unit)) == 1:
            continue  # a run of one character has period 1
        covered = period
        while covered + period <= n and text[n - covered - period : n - covered] == unit:
            covered += period
        if covered // period >= min_repeats and covered >= min_covered:
            return period, covered
    return None
