"""Whether the money is spent, over all runs of a result: each writes down, while it holds decoders, for how long.

::

    OUT/runs/<settings>/<run>.json     {"before": decoder-seconds of earlier runs, "held": of this one, "written": ...}
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from jocr import storage
from jocr.archive.cost import Meter
from jocr.archive.layout import RUN, RUNS, place
from jocr.archive.ledger import Ledger
from jocr.archive.progress import Progress
from jocr.config import ParseRecipe
from jocr.errors import StorageError

EVERY = 5.0  # seconds: so much of what a killed run held is forgotten at most


@dataclass
class Purse:
    """Whether the money is spent: what earlier runs used of decoders, and this one's since it began."""

    meter: Meter
    before: float  # decoder-seconds of earlier runs
    decoders: int
    record: str = ""  # where this run writes down what it held; empty: nowhere

    @classmethod
    def of(cls, recipe: ParseRecipe, ledger: Ledger, run: str = "") -> Purse:
        """What earlier runs tell: ``run.json`` and each one's own record, killed ones too. Where there is a budget,
        the ledger's history is asked too, for results that are older than those records."""
        meter = Meter(recipe.cost, recipe.ray.decoders)
        spent = max(_concluded(ledger), _recorded(ledger))
        if recipe.cost.budget is not None:
            spent = max(spent, sum(commit.busy_seconds for commit in ledger.history()))
        record = place(ledger.out, RUNS, ledger.settings, f"{run}.json") if run else ""
        return cls(meter, spent, recipe.ray.decoders, record)

    def used(self, progress: Progress | None = None) -> float:
        """Decoder-seconds in all. A decoder is paid for while it is held, busy or not; of a pool that grew, at least
        what it was busy. A run that has nothing to read holds none."""
        return self.before + self._held(progress)

    def empty(self, progress: Progress | None = None) -> bool:
        """Whether it is."""
        return self.meter.exhausted(self.used(progress))

    def write(self, progress: Progress) -> None:
        """Write down what this run has held so far. That it cannot be written is not worth a run."""
        held = self._held(progress)
        if self.record and held:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            data = json.dumps({"before": self.before, "held": round(held, 3), "written": now})
            with suppress(StorageError):
                storage.atomic_write(self.record, data.encode("ascii"), durable=False)

    def _held(self, progress: Progress | None) -> float:
        reads = progress is not None and progress.total > progress.before
        return max(progress.seconds * self.decoders, progress.busy_seconds) if progress and reads else 0.0


@dataclass
class Ticker:
    """Calls a function every ``EVERY`` seconds from a thread of its own, and a last time when it is closed."""

    call: Callable[[], None]
    every: float = EVERY
    _closed: threading.Event = field(default_factory=threading.Event, init=False)

    def start(self) -> Ticker:
        threading.Thread(target=self._run, name="jocr-purse", daemon=True).start()
        return self

    def close(self) -> None:
        self._closed.set()
        self.call()

    def _run(self) -> None:
        while not self._closed.wait(self.every):
            self.call()


def _concluded(ledger: Ledger) -> float:
    """Decoder-seconds that the last run with these settings wrote down at its end, those before it included."""
    try:
        found = json.loads(storage.read_bytes(place(ledger.out, RUN)))
        return float(found["cost"]["decoder_seconds"]) if found["settings"] == ledger.settings else 0.0
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return 0.0


def _recorded(ledger: Ledger) -> float:
    """By the runs' own records: what they held together (two may have run at a time), or what the last one knew of
    when it began and what it held itself, whichever is more."""
    records = list(_records(ledger))
    return max([sum(held for _, held in records), *(before + held for before, held in records)])


def _records(ledger: Ledger) -> Iterator[tuple[float, float]]:
    for entry in storage.list_below(place(ledger.out, RUNS, ledger.settings)):
        with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            found = json.loads(storage.read_bytes(entry.uri))
            yield float(found["before"]), float(found["held"])
