"""Scores of matched pairs, page by page and pooled: edit distance, TEDS, reading order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jocr.evaluation.omnidocbench.costs import ned
from jocr.evaluation.omnidocbench.matching import Pair


@dataclass(frozen=True, slots=True)
class Readout:
    """One metric read three ways; None where nothing of the kind was scored."""

    page: float | None  # mean over pages of the page's value: what the leaderboard prints
    pooled: float | None  # one value over everything (edit: sum of distances over sum of lengths)
    sample: float | None  # mean over samples
    pages: int
    samples: int


def distance(a: str, b: str) -> tuple[int, int]:
    """Levenshtein distance and the longer length."""
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.distance(a, b), max(len(a), len(b))


def edit_readout(samples: Iterable[tuple[str, str, str]]) -> tuple[Readout, dict[str, float]]:
    """Edit distance over ``(page, reference, prediction)`` samples, and the value of every page."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    each: list[float] = []
    for page, reference, prediction in samples:
        d, longest = distance(reference, prediction)
        sums[page][0] += d
        sums[page][1] += longest
        each.append(d / longest if longest else 0.0)
    per_page = {page: d / longest if longest else 0.0 for page, (d, longest) in sums.items()}
    total = sum(longest for _, longest in sums.values())
    pooled = sum(d for d, _ in sums.values()) / total if total else None
    return Readout(mean(per_page.values()), pooled, mean(each), len(per_page), len(each)), per_page


def value_readout(samples: Iterable[tuple[str, float]]) -> tuple[Readout, dict[str, float]]:
    """A score per sample (TEDS, CDM): page means, and the plain mean as both pooled and sample value."""
    by_page: dict[str, list[float]] = defaultdict(list)
    for page, value in samples:
        by_page[page].append(value)
    per_page = {page: sum(v) / len(v) for page, v in by_page.items()}
    each = [v for values in by_page.values() for v in values]
    return Readout(mean(per_page.values()), mean(each), mean(each), len(per_page), len(each)), per_page


def mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None


def table_scores(reference: str, prediction: str, *, timeout_s: float = 120.0) -> tuple[float, float]:
    """TEDS and TEDS-S of two normalised tables. Raises UnscoredError past its limits."""
    from jocr.markup.trees import teds

    return (
        teds(prediction, reference, timeout_s=timeout_s),
        teds(prediction, reference, structure_only=True, timeout_s=timeout_s),
    )


def reading_order(pairs: Sequence[Pair]) -> tuple[list[int], list[int], float] | None:
    """Annotated order, order as predicted, and their normalised edit distance; None on a page without ordered blocks.

    Blocks without a prediction are missing from the second list; a pair of several blocks keeps their inner order.
    """
    with_order = [p for p in pairs if p.order]
    if not with_order:
        return None
    expected = sorted(o for p in with_order for o in p.order)
    found = sorted((p for p in with_order if p.position is not None), key=lambda p: p.position or 0)
    predicted = [o for p in found for o in sorted(p.order)]
    return expected, predicted, ned(symbols(expected), symbols(predicted))


def symbols(order: Sequence[int]) -> str:
    """A string that compares as the list does."""
    return "".join(chr(0x100 + o) for o in order)
