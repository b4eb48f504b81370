"""Formulas: tokens in one spelling, case and fonts kept, every formula of either side accounted for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from jocr.errors import MarkupError, UnscoredError
from jocr.records import Sample
from jocr.rewards.base import Outcome, check_time, term
from jocr.rewards.view import view

MATHML_FROM = 0.5  # token similarity from which equality of the MathML is worth asking
MATHML_CALLS = 16  # per page
MAX_PAIRS = 40_000  # formulas of one side times those of the other
Tokens = tuple[str, ...]


@term("formula")
def formula(prediction: str, reference: Sample) -> Outcome | None:
    """1 - D / max(tokens), D the least edit distance in tokens over all pairings; what is left unpaired counts whole.

    Two spellings that KaTeX turns into the same MathML are the same formula. Extra formulas, longer formulas around
    the right one, dropped radicals and changed case all cost tokens.
    """
    expected, found = view(reference.markdown).formula_tokens, view(prediction).formula_tokens
    if not expected:
        return None
    total = max(sum(map(len, expected)), sum(map(len, found)))
    if not total:
        return 1.0, {"reference": len(expected), "prediction": len(found)}
    if len(expected) * len(found) > MAX_PAIRS:
        raise UnscoredError(f"{len(expected)} x {len(found)} formulas, cap {MAX_PAIRS} pairs")
    pairs = _pairing(expected, found)
    latex = [f.latex for f in view(reference.markdown).formulas], [f.latex for f in view(prediction).formulas]
    _prepare_mathml(pairs, expected, found, latex)
    distance, worst, asked = 0, [], MATHML_CALLS
    for i, j, d in pairs:
        longest = max(len(expected[i]), len(found[j]), 1)
        if d and asked and 1 - d / longest >= MATHML_FROM:
            asked -= 1
            check_time()
            d = 0 if _same_mathml(latex[0][i], latex[1][j]) else d
        distance += d
        if d:
            worst.append((d, latex[0][i], latex[1][j]))
    distance += _unpaired(expected, {i for i, _, _ in pairs}) + _unpaired(found, {j for _, j, _ in pairs})
    detail: dict[str, Any] = {
        "reference": len(expected),
        "prediction": len(found),
        "distance": distance,
        "tokens": total,
        "worst": [{"edits": d, "reference": r[:200], "prediction": p[:200]} for d, r, p in sorted(worst)[-3:][::-1]],
    }
    return 1 - distance / total, detail


def _prepare_mathml(
    pairs: list[tuple[int, int, int]], expected: list[Tokens], found: list[Tokens], latex: tuple[list[str], list[str]]
) -> None:
    """One call into KaTeX for all pairs that will be asked about."""
    from jocr.markup.katex import prepare

    near = [(i, j) for i, j, d in pairs if d and 1 - d / max(len(expected[i]), len(found[j]), 1) >= MATHML_FROM]
    prepare([side[k] for pair in near[:MATHML_CALLS] for side, k in zip(latex, pair, strict=True)])


def _unpaired(formulas: list[Tokens], paired: set[int]) -> int:
    return sum(len(f) for k, f in enumerate(formulas) if k not in paired)


def _pairing(expected: list[Tokens], found: list[Tokens]) -> list[tuple[int, int, int]]:
    """Pairs (reference, prediction, distance) of least total cost; equal formulas in equal order need no search."""
    if not found:
        return []
    if expected == found:
        return [(i, i, 0) for i in range(len(expected))]
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist
    from scipy.optimize import linear_sum_assignment

    symbols: dict[str, str] = {}
    rows, columns = _encode(expected, symbols), _encode(found, symbols)
    distance = cdist(rows, columns, scorer=Levenshtein.distance, dtype=np.int32).astype(np.int64)
    lengths = np.add.outer([len(r) for r in rows], [len(c) for c in columns])
    # a hair's preference for the page's own order settles ties between equal formulas
    place = np.abs(np.subtract.outer(np.linspace(0, 1, len(rows)), np.linspace(0, 1, len(columns))))
    r, c = linear_sum_assignment(distance - lengths + 1e-6 * place)
    return [(int(i), int(j), int(distance[i, j])) for i, j in zip(r, c, strict=True)]


def _encode(formulas: list[Tokens], symbols: dict[str, str]) -> list[str]:
    """One character per token, so that Levenshtein counts tokens."""
    return ["".join(symbols.setdefault(t, chr(0x100 + len(symbols))) for t in f) for f in formulas]


def _same_mathml(a: str, b: str) -> bool:
    """Whether KaTeX draws both alike. Where it cannot, or not in time: no; the token distance then stands."""
    first = _mathml(a)
    return first is not None and first == _mathml(b)


@lru_cache(maxsize=4096)
def _mathml(latex: str) -> str | None:
    from jocr.markup.katex import presentation

    try:
        return presentation(latex)
    except (MarkupError, UnscoredError):
        return None
