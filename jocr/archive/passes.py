"""Passes over an archive until nothing is pending: what dies on the way costs a pass, never a page.

Every pass plans from the ledger anew, so it does not matter how the last one ended, or who else commits meanwhile.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from jocr.archive.ledger import Ledger
from jocr.archive.plan import Plan
from jocr.archive.work import Receipt, Work
from jocr.errors import CheckpointError, ConfigError, EngineError, JocrError, StuckError

PAUSE = 5.0  # seconds after a pass that committed nothing, four times as long after the next: outages pass
IDLE = 3  # passes in a row without a commit, after which going on is pointless
HOPELESS = (ConfigError, CheckpointError, EngineError)  # the next pass would end the same way

log = logging.getLogger(__name__)

RunPass = Callable[[Sequence[Work]], Iterable[Receipt]]
CauseOf = Callable[[BaseException], JocrError | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the passes ended. ``pending`` is empty unless somebody asked for an early end."""

    passes: int
    pending: tuple[Work, ...]
    pages_pending: int


def run_passes(
    plan: Plan,
    ledger: Ledger,
    run: RunPass,
    tell: Callable[[Receipt], bool],
    cause_of: CauseOf,
    spent: Callable[[], bool] = lambda: False,
    wait: Callable[[float], None] = time.sleep,
    most: int | None = None,
) -> Outcome:
    """Run passes until every work of ``plan`` is committed.

    Args:
        most: works of one pass: what a machinery remembers of a pass, it forgets after it. None: all.
        run: does a pass; receipts come as units are done.
        tell: told of every receipt; true asks for an end, as when a budget is spent.
        spent: true where there is nothing left to begin a pass with.
        cause_of: the error of this project behind an exception of the machinery.

    Raises:
        ConfigError, CheckpointError, EngineError: a pass ended with it: the next would too.
        StuckError: ``IDLE`` passes in a row committed nothing.
    """
    passes = idle = 0
    last: Exception | None = None
    pending = plan.pending(ledger.names())
    tried: Counter[str] = Counter()
    while pending and not spent():
        passes += 1
        try:
            for receipt in run(_next(pending, tried, most)):
                if tell(receipt):
                    return _outcome(passes, plan.pending(ledger.names()))
        except Exception as error:
            cause = cause_of(error)
            if isinstance(cause, HOPELESS):
                raise cause from error
            last = error
            log.warning("pass %d ended early (%s); what is left is tried again", passes, _first_line(cause or error))
        before, pending = len(pending), plan.pending(ledger.names())
        idle = idle + 1 if len(pending) >= before else 0
        if idle == IDLE:
            raise _stuck(pending, last)
        if idle:
            wait(PAUSE * 4 ** (idle - 1))
    return _outcome(passes, pending)


def _next(pending: list[Work], tried: Counter[str], most: int | None) -> list[Work]:
    """The works of a pass: those tried least often, so that some that stand still do not keep all others waiting."""
    if most is None or len(pending) <= most:
        return pending
    chosen = sorted(pending, key=lambda work: tried[work.unit.name])[:most]
    tried.update(work.unit.name for work in chosen)
    return chosen


def _outcome(passes: int, pending: list[Work]) -> Outcome:
    return Outcome(passes, tuple(pending), sum(work.unit.pages for work in pending))


def _stuck(pending: list[Work], last: Exception | None) -> StuckError:
    names = ", ".join(work.unit.name for work in pending[:3]) + (", ..." if len(pending) > 3 else "")
    why = f"; the last pass ended with {_first_line(last)}" if last else ""
    error = StuckError(f"{IDLE} passes in a row committed none of {len(pending)} units ({names}){why}")
    error.__cause__ = last
    return error


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".strip().splitlines()[0][:300]
