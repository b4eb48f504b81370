"""A run over an archive, whatever machinery carries it: what was asked, what it came to, when it ends early."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jocr import storage
from jocr.archive.cost import Meter
from jocr.archive.layout import REPORT, place
from jocr.archive.ledger import Ledger
from jocr.archive.passes import Outcome
from jocr.archive.plan import Plan
from jocr.archive.progress import Progress
from jocr.archive.purse import Purse, Ticker
from jocr.archive.work import Receipt
from jocr.config import ParseRecipe
from jocr.errors import ConfigError, JocrError, StorageError
from jocr.parsing.plan import PageSelection
from jocr.records import REASONS

log = logging.getLogger(__name__)
COUNT_SECONDS = 10.0  # that the end of a run waits for a count
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
class Watch:
    """Takes receipts: counts, says, measures, and asks for the end when the money is spent. To be closed."""

    progress: Progress
    purse: Purse
    left: Callable[[int], None] = field(default=lambda pages: None)
    ticker: Ticker | None = None  # writes the purse
    counter: threading.Thread | None = None  # counts pages that failed before

    def __call__(self, receipt: Receipt) -> bool:
        self.progress.add(receipt)
        self.left(self.progress.left)
        return self.purse.empty(self.progress)

    def close(self) -> None:
        """Say the line a last time, write the purse a last time."""
        if self.counter is not None:
            self.counter.join(COUNT_SECONDS)
        self.progress.close()
        if self.ticker is not None:
            self.ticker.close()


def start(plan: Plan, recipe: ParseRecipe, ledger: Ledger, left: Callable[[int], None], name: str = "") -> Watch:
    """The watch over a plan; ``name`` is the run's."""
    progress = Progress(plan.pages + plan.pages_done, plan.pages_done)
    counter = None
    if plan.failed is not None:
        progress.failed_before(plan.failed)
    elif plan.committed:
        progress.failed_earlier = None
        counter = threading.Thread(target=_count_failed, args=(plan, ledger, progress), daemon=True)
        counter.start()
    if plan.pages_missing:
        log.warning("%d pages have no row yet; without job.redrive the same command reads them", plan.pages_missing)
    purse = Purse.of(recipe, ledger, name)
    return Watch(progress, purse, left, Ticker(lambda: purse.write(progress)).start(), counter)


def _count_failed(plan: Plan, ledger: Ledger, progress: Progress) -> None:
    """How many pages failed before this run; it takes a while to read so many markers, and nobody waits for it. Where
    they cannot be read, the line says that it does not know."""
    try:
        progress.failed_earlier = sum(commit.counts.get("failed", 0) for commit in ledger.read(plan.committed))
    except JocrError as error:
        log.warning("pages that failed before this run are not counted: %s", error)
