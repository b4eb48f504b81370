"""One page, one reward: every term, combined, within a time budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jocr.errors import UnscoredError
from jocr.markup.trees import warm_up
from jocr.records import Sample
from jocr.rewards.base import Deadline, Term, TermFunction
from jocr.rewards.combine import Preset, combine
from jocr.rewards.content import content
from jocr.rewards.formats import format_
from jocr.rewards.formulas import formula
from jocr.rewards.repetition import repetition
from jocr.rewards.structure import structure
from jocr.rewards.tables import table
from jocr.rewards.unit_tests import unit_tests

TERMS: dict[str, TermFunction] = {
    "content": content,
    "formula": formula,
    "table": table,
    "structure": structure,
    "unit_tests": unit_tests,
    "repetition": repetition,
    "format": format_,
}
MAX_CHARS = 200_000  # of a prediction; longer ones are unscored, whatever they hold
BUDGET_S = 10.0


@dataclass(frozen=True, slots=True)
class Reward:
    """``value`` in [0, 1], or None where the page could not be scored: then ``unscored_reason`` says why.

    An unscored page is left out of training and of every mean; it is never a zero.
    """

    value: float | None
    terms: tuple[Term, ...]
    unscored_reason: str = ""


def score_page(
    prediction: str,
    sample: Sample,
    *,
    preset: Preset = "product",
    budget_s: float = BUDGET_S,
    floors: Mapping[str, float] | None = None,
) -> Reward:
    """The reward of ``prediction`` for ``sample`` (its reference Markdown and checks).

    Malformed predictions lower terms and never raise. Raises ConfigError where the sample's checks are no checks.
    """
    terms: list[Term] = []
    at = "page"
    try:
        if len(prediction) > MAX_CHARS:
            raise UnscoredError(f"{len(prediction)} characters, cap {MAX_CHARS}")
        warm_up()
        with Deadline(budget_s):
            for name, function in TERMS.items():
                at = name
                terms.append(function(prediction, sample))
    except UnscoredError as e:
        return Reward(None, tuple(terms), f"{at}: {e}")
    return Reward(combine(terms, preset, floors), tuple(terms))
