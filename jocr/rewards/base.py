"""What every reward term shares: its result, the parsed page it looks at, and the time it may take."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from jocr.errors import UnscoredError
from jocr.records import Sample


@dataclass(frozen=True, slots=True)
class Term:
    """One verifiable quality of a page. A term that does not apply has no say in the reward; its value is 1."""

    name: str
    value: float  # in [0, 1]
    applies: bool
    detail: dict[str, Any] = field(default_factory=dict)  # JSON-ready evidence


TermFunction = Callable[[str, Sample], Term]
Outcome = tuple[float, dict[str, Any]]

_UNSEEN = re.compile(r"<!--.*?(?:-->|\Z)|</?[a-zA-Z][^<>]*>", re.DOTALL)
_deadline: ContextVar[float | None] = ContextVar("reward_deadline", default=None)


def visible(markdown: str) -> bool:
    """Whether there is a letter or digit of any script to read, outside tags and comments."""
    return any(c.isalnum() for c in _UNSEEN.sub("", markdown))


def term(name: str) -> Callable[[Callable[[str, Sample], Outcome | None]], TermFunction]:
    """Make a term of a function that returns (value, detail), or None where it does not apply.

    A page with nothing to read earns 0 in every term that applies, unless the reference has nothing either: an empty
    page passes every "must be absent" test and has no loop and no broken brace, and none of that is merit.
    """

    def decorate(function: Callable[[str, Sample], Outcome | None]) -> TermFunction:
        @wraps(function)
        def scored(prediction: str, reference: Sample) -> Term:
            check_time()
            outcome = function(prediction, reference)
            if outcome is None:
                return Term(name, 1.0, False)
            value, detail = outcome
            if not visible(prediction) and visible(reference.markdown):
                return Term(name, 0.0, True, {**detail, "empty": True})
            return Term(name, min(1.0, max(0.0, value)), True, detail)

        return scored

    return decorate


class Deadline:
    """``with Deadline(seconds):`` limits what runs inside; ``remaining`` and ``check_time`` see it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._token = _deadline.set(time.monotonic() + self._seconds)

    def __exit__(self, *exc: object) -> None:
        _deadline.reset(self._token)


def remaining(most: float) -> float:
    """Seconds left, at most ``most``."""
    end = _deadline.get()
    return most if end is None else min(most, end - time.monotonic())


def check_time() -> None:
    """Raises UnscoredError past the deadline."""
    if remaining(1.0) <= 0:
        raise UnscoredError("the page's time budget is spent")
