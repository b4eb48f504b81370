"""A run over an archive, whatever machinery carries it: what was asked, what it came to, when it ends early."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jocr import storage
from jocr.archive.cost import Meter
from jocr.archive.layout import REPORT, RUN, place
from jocr.archive.ledger import Ledger
from jocr.archive.passes import Outcome
from jocr.archive.plan import Plan
from jocr.archive.progress import Progress
from jocr.archive.work import Receipt
from jocr.config import ParseRecipe
from jocr.errors import ConfigError, StorageError
from jocr.parsing.plan import PageSelection
from jocr.records import REASONS

OVER_BUDGET = 4  # exit code: stopped for money, resumably


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run came to. Counts are of the whole result, runs before this one included."""

    out: str
    settings: str
    pages: int  # that have a row
    counts: dict[str, int]  # per status
    reasons: dict[str, int]
    pages_read: int  # by this run
    seconds: float  # of its passes
    passes: int
    pages_left: int = 0  # above 0 where the budget ended it
    report: str | None = None  # URI of report.html

    @property
    def failed_share(self) -> float:
        return self.counts.get("failed", 0) / self.pages if self.pages else 0.0

    def exit_code(self, fail_above: float | None) -> int:
        """4 where the budget ended the run, 3 where more than ``fail_above`` of the pages failed, else 0."""
        if self.pages_left:
            return OVER_BUDGET
        return 3 if fail_above is not None and self.failed_share > fail_above else 0


def summary(
    recipe: ParseRecipe, ledger: Ledger, found: dict[str, Any], progress: Progress, outcome: Outcome
) -> Summary:
    """The summary of a run whose ``run.json`` holds ``found``."""
    return Summary(
        out=recipe.out,
        settings=ledger.settings,
        pages=found["pages"],
        counts=found["counts"],
        reasons=found["reasons"],
        pages_read=progress.read,
        seconds=progress.seconds,
        passes=outcome.passes,
        pages_left=outcome.pages_pending,
        report=place(recipe.out, REPORT),
    )


def check(recipe: ParseRecipe) -> None:
    """Everything that can be told from the settings alone, in seconds and before a cluster is used.

    Raises:
        ConfigError: the message says the remedy.
    """
    if not recipe.out:
        raise ConfigError("no result directory: set out to a folder or an s3:// prefix, as with --set out=DIR")
    if not recipe.sources:
        raise ConfigError("nothing to parse: set sources, as with --set 'sources=[\"/data/scans\"]'")
    PageSelection.parse(recipe.pages)
    Meter(recipe.cost, recipe.ray.decoders)
    if recipe.job.redrive is not None and recipe.job.redrive not in REASONS:
        raise ConfigError(f"job.redrive = {recipe.job.redrive!r} is no reason; choose of: {', '.join(REASONS)}")
    if recipe.ray.max_decoders is not None and recipe.ray.max_decoders < recipe.ray.decoders:
        raise ConfigError("ray.max_decoders is less than ray.decoders; raise it or leave it out")
    try:
        storage.check_writable(recipe.out)
    except StorageError as error:
        raise ConfigError(str(error)) from error


@dataclass
class Purse:
    """Whether the money is spent: what earlier runs used of decoders, and this one's since it began."""

    meter: Meter
    before: float  # decoder-seconds of earlier runs
    decoders: int

    @classmethod
    def of(cls, recipe: ParseRecipe, ledger: Ledger) -> Purse:
        """Earlier runs tell in ``run.json`` for how long they held decoders; of one that was killed, where there is a
        budget, the ledger's history tells what they were busy."""
        meter = Meter(recipe.cost, recipe.ray.decoders)
        spent = _held_before(ledger)
        if recipe.cost.budget is not None:
            spent = max(spent, sum(commit.busy_seconds for commit in ledger.history()))
        return cls(meter, spent, recipe.ray.decoders)

    def used(self, progress: Progress | None = None) -> float:
        """Decoder-seconds in all. A decoder is paid for while it is held, busy or not; of a pool that grew, at least
        what it was busy. A run that has nothing to read holds none."""
        reads = progress is not None and progress.total > progress.before
        held = max(progress.seconds * self.decoders, progress.busy_seconds) if progress and reads else 0.0
        return self.before + held

    def empty(self, progress: Progress | None = None) -> bool:
        """Whether it is."""
        return self.meter.exhausted(self.used(progress))


def _held_before(ledger: Ledger) -> float:
    """Decoder-seconds that the last run with these settings wrote down, those before it included."""
    try:
        found = json.loads(storage.read_bytes(place(ledger.out, RUN)))
        return float(found["cost"]["decoder_seconds"]) if found["settings"] == ledger.settings else 0.0
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return 0.0


@dataclass
class Watch:
    """Takes receipts: counts, says, measures, and asks for the end when the money is spent."""

    progress: Progress
    purse: Purse
    left: Callable[[int], None] = field(default=lambda pages: None)

    def __call__(self, receipt: Receipt) -> bool:
        self.progress.add(receipt)
        self.left(self.progress.left)
        return self.purse.empty(self.progress)


def start(plan: Plan, recipe: ParseRecipe, ledger: Ledger, left: Callable[[int], None]) -> Watch:
    """The watch over a plan."""
    return Watch(Progress(plan.pages + plan.pages_done, plan.pages_done), Purse.of(recipe, ledger), left)
