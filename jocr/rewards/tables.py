"""Tables: TEDS for content and structure, TEDS-S for structure alone, extra and missing tables counted."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from jocr.errors import UnscoredError
from jocr.markup.text import edit_distance
from jocr.records import Sample
from jocr.rewards.base import Outcome, check_time, remaining, term
from jocr.rewards.view import view

MAX_NODES = 4000
TIMEOUT_S = 5.0
_NODES = re.compile(r"<(?:t[dhr]|table)\b", re.IGNORECASE)


@term("table")
def table(prediction: str, reference: Sample) -> Outcome | None:
    """Mean of TEDS and TEDS-S over the larger number of tables; a table without its pair scores 0.

    A predicted table past the node cap scores what no table of its size can pass (1 - difference in nodes / nodes),
    when that bound alone is below 0.25; otherwise, and where the reference itself is too large, the page is unscored.
    """
    expected, found = view(reference.markdown).table_html, view(prediction).table_html
    if not expected:
        return None
    scores = []
    for i, j in _pairing(tuple(expected), tuple(found)):
        check_time()
        scores.append((i, j, *_teds(found[j], expected[i])))
    most = max(len(expected), len(found))
    full, structure = sum(s[2] for s in scores) / most, sum(s[3] for s in scores) / most
    detail = {
        "reference": len(expected),
        "prediction": len(found),
        "teds": round(full, 6),
        "teds_s": round(structure, 6),
        "pairs": [
            {"reference": i, "prediction": j, "teds": round(t, 6), "teds_s": round(s, 6)} for i, j, t, s in scores
        ],
    }
    return (full + structure) / 2, detail


def _teds(found: str, expected: str) -> tuple[float, float]:
    if found == expected:
        return 1.0, 1.0
    nodes = _nodes(found), _nodes(expected)
    if nodes[0] > MAX_NODES >= nodes[1]:
        bound = nodes[1] / nodes[0]
        if bound < 0.25:
            return bound, bound
    from jocr.markup.trees import teds

    seconds = remaining(TIMEOUT_S)
    if seconds <= 0:
        raise UnscoredError("the page's time budget is spent")
    full = teds(found, expected, max_nodes=MAX_NODES, timeout_s=seconds)
    if found.count("<t") == expected.count("<t") and _shape(found) == _shape(expected):
        return full, 1.0
    return full, teds(found, expected, structure_only=True, max_nodes=MAX_NODES, timeout_s=seconds)


def _nodes(html: str) -> int:
    return len(_NODES.findall(html))


@lru_cache(maxsize=512)
def _shape(html: str) -> str:
    """The table's tags with their spans and without its text."""
    return "".join(re.findall(r"<[^<>]*>", html.replace("<th", "<td").replace("</th", "</td").replace("<br>", "")))


def _pairing(expected: tuple[str, ...], found: tuple[str, ...]) -> list[tuple[int, int]]:
    """Which predicted table answers which reference table: least edit distance of their HTML."""
    if len(expected) == len(found) == 1 or expected == found:
        return [(i, i) for i in range(len(expected))]
    if not found:
        return []
    if len(expected) * len(found) > 2500:
        raise UnscoredError(f"{len(expected)} x {len(found)} tables")
    from scipy.optimize import linear_sum_assignment

    similar = np.zeros((len(expected), len(found)))
    for i, a in enumerate(expected):
        for j, b in enumerate(found):
            check_time()
            similar[i, j] = 1 - edit_distance(a, b) / max(len(a), len(b), 1)
    place = np.abs(np.subtract.outer(np.linspace(0, 1, len(expected)), np.linspace(0, 1, len(found))))
    rows, columns = linear_sum_assignment(-similar + 1e-6 * place)
    return [(int(r), int(c)) for r, c in zip(rows, columns, strict=True)]
