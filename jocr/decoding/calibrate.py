"""Measure what plain rounds and drafts cost, before the first page, so that ``AutoDepth`` starts from facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from statistics import median

from jocr.decoding.depth import MAX_DEPTH, Costs, Prices
from jocr.decoding.speculative import PageState, speculate
from jocr.decoding.steps import Steps

START = 64  # positions already in the cache of a scratch page
ROUNDS = 8  # of one timed call, where a round is quick
QUICK = 0.005  # seconds
REPEATS = 9  # each compared with the plain rounds beside it: what else the machine does hits both


def calibrate(steps: Steps, costs: Costs, vocab: int, page_counts: Iterable[int]) -> None:
    """Time rounds in which none, one and all of so many scratch pages draft, 1 and 5 deep. No page may be running."""
    cache, random = steps.cache, Random(0)
    cache.reserve(START + ROUNDS * (MAX_DEPTH + 1) + 1)
    cache.clear(START)

    def seconds(depths: Sequence[int], most: int) -> float:
        """Of one round."""
        pages = [PageState("", slot, START, 999, [random.randrange(vocab)], START) for slot in range(len(depths))]
        outcome = speculate(steps, pages, depths, most=most)
        return outcome.seconds / outcome.ran.rounds

    for count in sorted(set(page_counts)):
        cases = _cases(count)
        for depths in cases:
            seconds(depths, 1)  # a warm-up: kernels are loaded, buffers made
        quick = seconds(cases[0], 1) < QUICK
        repeats = REPEATS if quick else 1
        times = [[seconds(d, ROUNDS if quick else 1) for d in cases] for _ in range(repeats)]
        plain = min(row[0] for row in times)
        over = [median(case / row[0] for row, case in zip(times, column, strict=True))
                for column in zip(*times, strict=True)]  # fmt: skip
        costs.set(count, _prices(count, *(plain * share for share in over)))


def _cases(count: int) -> list[list[int]]:
    """None drafts; one and all draft once; one and all draft to the end."""
    one = [[depth, *[0] * (count - 1)] for depth in (1, MAX_DEPTH)]
    return [[0] * count, one[0], [1] * count, one[1], [MAX_DEPTH] * count]


def _prices(count: int, plain: float, one: float, every: float, one_deep: float, every_deep: float) -> Prices:
    steps = MAX_DEPTH - 1
    first, further = _split(count, one - plain, every - plain), _split(
        count, (one_deep - one) / steps, (every_deep - every) / steps
    )  # fmt: skip
    return Prices(plain, *first, *further)


def _split(count: int, one: float, every: float) -> tuple[float, float]:
    """What is paid once, and for each page, where one page costs ``one`` and ``count`` pages cost ``every``."""
    if count == 1:
        return 0.0, max(0.0, min(one, every))
    each = min(max(0.0, (every - one) / (count - 1)), every / count)
    return max(0.0, one - each), each
