"""Edit-distance helpers of the matcher: cost matrices, best windows, assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np


def ned(a: str, b: str) -> float:
    """Levenshtein distance over the longer length; two empty strings are equal (0)."""
    from rapidfuzz.distance import Levenshtein

    longest = max(len(a), len(b))
    return Levenshtein.distance(a, b) / longest if longest else 0.0


def matrix(rows: Sequence[str], columns: Sequence[str]) -> np.ndarray:
    """``(len(rows), len(columns))`` float64 of ``ned``."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    if not rows or not columns:
        return np.zeros((len(rows), len(columns)))
    distance = cdist(rows, columns, scorer=Levenshtein.distance, dtype=np.int32).astype(np.float64)
    longest = np.maximum.outer([len(r) for r in rows], [len(c) for c in columns]).astype(np.float64)
    return distance / np.maximum(longest, 1.0)


def best_window(text: str, part: str, limit: float) -> float | None:
    """Least ``distance / len(part)`` of ``part`` against any window of its own length in ``text``.

    Exact up to ``limit``; anything worse is reported as some value above it. None where ``part`` is empty or longer
    than ``text``: no window exists.
    """
    from rapidfuzz.distance import Levenshtein

    width = len(part)
    if not width or width > len(text):
        return None
    most = int(limit * width) + 1  # the first distance that is above the limit
    shared = (Counter(part) & Counter(text)).total()
    if width - shared >= most:  # every window lacks these characters
        return 1.0
    best = most
    for i in range(len(text) - width + 1):
        found = Levenshtein.distance(text[i : i + width], part, score_cutoff=best)
        if found < best:
            best = found
            if best == 0:
                break
    return best / width if best < most else 1.0


def assign(costs: np.ndarray) -> list[tuple[int, int]]:
    """Minimum-cost one-to-one pairs (row, column), in row order."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(costs)
    return [(int(r), int(c)) for r, c in zip(rows, columns, strict=True)]
