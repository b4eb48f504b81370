"""Unit tests: the share of the page's checks that pass, with no credit for tests that an empty page passes."""

from __future__ import annotations

import pickle
from functools import lru_cache

from jocr.checks import Check, parse_check, run_checks
from jocr.checks.text_checks import Present
from jocr.records import Sample
from jocr.rewards.base import Outcome, term
from jocr.rewards.view import view

FREE = ("absent", "baseline")  # an empty or tiny page passes these, or nearly


@term("unit_tests")
def unit_tests(prediction: str, reference: Sample) -> Outcome | None:
    """Passed / all. A passed "absent" or "baseline" test counts only as far as the page is as long as the reference;
    a "present" test whose text is longer than the page is not passed (the benchmark would search it the other way).

    Math tests run strictly (same symbols, structures and fonts, not the benchmark's lenient glyph rule), and all tests
    run on what a reader sees: hidden text meets none.
    """
    if not reference.checks:
        return None
    checks = _parse(pickle.dumps(reference.checks))
    verdicts = run_checks(checks, view(prediction).shown, strict=True)
    found, expected = len(view(prediction).text), len(view(reference.markdown).text)
    earned = min(1.0, found / expected) if expected else 1.0
    credits = [float(v.passed) * _credit(c, found, earned) for c, v in zip(checks, verdicts, strict=True)]
    failed = [
        {"id": c.id, "type": c.kind, "why": v.detail} for c, v in zip(checks, verdicts, strict=True) if not v.passed
    ]
    detail = {"tests": len(checks), "passed": len(checks) - len(failed), "failed": failed[:20]}
    return sum(credits) / len(checks), detail


def _credit(check: Check, length: int, earned: float) -> float:
    if check.kind in FREE:
        return earned
    return float(not isinstance(check, Present) or length >= len(check.text))


@lru_cache(maxsize=512)
def _parse(pickled: bytes) -> tuple[Check, ...]:
    """The checks of one sample, kept over its rollouts; the records come pickled, as dicts cannot be cache keys."""
    return tuple(parse_check(record) for record in pickle.loads(pickled))
