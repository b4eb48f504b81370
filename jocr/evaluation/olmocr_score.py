"""olmOCR-Bench: from page texts to verdicts, and from verdicts to the numbers people quote."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jocr.checks import Check, PageText
from jocr.checks.page import MathBackend
from jocr.errors import UnscoredError
from jocr.evaluation.olmocr_data import Bench, PageKey

DRAWS = 1000
HEADERS = "headers_footers"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test over all repeats of its page. ``passed`` is None where it could not be scored (``detail`` says why)."""

    id: str
    category: str
    kind: str
    pdf: str
    page: int
    passed: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Rate:
    """Tests passed of tests scored; unscored ones are in neither count."""

    passed: int
    total: int
    unscored: int = 0

    @property
    def value(self) -> float | None:
        return self.passed / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class Overall:
    """Mean of category rates (0..1) with the 2.5 and 97.5 percentiles of the bootstrap."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def judge(bench: Bench, texts: Mapping[PageKey, Sequence[str]], math: MathBackend = "mathml") -> list[Outcome]:
    """The outcome of every test: the majority (more than half) of the verdicts on its page's repeats."""
    by_page: dict[PageKey, list[tuple[str, Check]]] = defaultdict(list)
    for category, checks in bench.categories.items():
        for check in checks:
            by_page[check.pdf, check.page].append((category, check))
    outcomes = {}
    for key, asked in by_page.items():
        pages = [PageText(text, math=math) for text in texts[key]]
        for category, check in asked:
            outcomes[check.id] = _outcome(category, check, pages)
    return [outcomes[check.id] for checks in bench.categories.values() for check in checks]


def _outcome(category: str, check: Check, pages: Sequence[PageText]) -> Outcome:
    verdicts: list[bool] = []
    detail = ""
    for page in pages:
        try:
            verdict = check.run(page)
        except UnscoredError as error:
            return Outcome(check.id, category, check.kind, check.pdf, check.page, None, str(error))
        verdicts.append(verdict.passed)
        detail = detail or verdict.detail
    passed = 2 * sum(verdicts) > len(verdicts)
    return Outcome(check.id, category, check.kind, check.pdf, check.page, passed, "" if passed else detail)


def rates(outcomes: Sequence[Outcome], by: str = "category") -> dict[str, Rate]:
    """Rate per category (or per ``kind``), in order of first appearance."""
    passed, total, unscored = Counter[str](), Counter[str](), Counter[str]()
    names = dict.fromkeys(getattr(outcome, by) for outcome in outcomes)
    for outcome in outcomes:
        name = getattr(outcome, by)
        if outcome.passed is None:
            unscored[name] += 1
        else:
            total[name] += 1
            passed[name] += outcome.passed
    return {name: Rate(passed[name], total[name], unscored[name]) for name in names}


def overall(
    categories: Mapping[str, Rate], *, headers: bool = True, draws: int = DRAWS, seed: int = 0
) -> Overall | None:
    """Plain mean of the category rates, with a bootstrap interval; None where nothing was scored.

    Each draw resamples the tests inside every category. For tests that pass or fail, drawing n of n with replacement
    and counting the passes is drawing from a binomial distribution, which is what is done.

    Args:
        headers: with or without the category ``headers_footers``, which rewards leaving text out.
    """
    used = [rate for name, rate in categories.items() if rate.total and (headers or name != HEADERS)]
    if not used:
        return None
    means = np.mean([rate.passed / rate.total for rate in used])
    rng = np.random.default_rng(seed)
    samples = np.mean([rng.binomial(r.total, r.passed / r.total, size=draws) / r.total for r in used], axis=0)
    low, high = np.percentile(samples, [2.5, 97.5])
    return Overall(float(means), float(low), float(high))
