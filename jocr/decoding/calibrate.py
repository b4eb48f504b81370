"""Measure what a round of each depth costs, before the first page, so that ``AutoDepth`` starts from facts."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from jocr.decoding.depth import MAX_DEPTH, Costs
from jocr.decoding.speculative import PageState, speculate
from jocr.decoding.steps import Steps

START = 64  # positions already in the cache of a scratch page
REPEATS = 3  # the fastest counts: anything else on the machine only ever adds


def calibrate(steps: Steps, costs: Costs, vocab: int, page_counts: Iterable[int]) -> None:
    """Time rounds of depth 0..5 for each number of pages, on scratch slots. No page may be running."""
    cache, random = steps.cache, Random(0)
    cache.reserve(START + MAX_DEPTH + 2)
    for part in (cache.k, cache.v):
        part[:, :, :, :START] = 0
    cache.hidden[:, :START] = 0
    for count in sorted(set(page_counts)):
        pages = [PageState("", slot, START, 99, [random.randrange(vocab)], START) for slot in range(count)]
        for depth in (0, *range(MAX_DEPTH + 1)):  # the first is a warm-up
            for page in pages:
                page.tokens[:] = [random.randrange(vocab)]
            times = [speculate(steps, pages, [depth] * count).seconds for _ in range(REPEATS)]
            costs.set(count, depth, min(times))
