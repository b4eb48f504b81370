"""A unit's journal: what was begun and never ended, so that a page that kills its process is found and then let be.

An attempt is one small object, written before the unit's pages are decoded and removed when decoding ends, by whatever
way the process survives. One that is still there belongs to a process that died (or to one thought dead that still
works: objects are named apart, so the two do not disturb each other). How an attempt takes its pages:

``together``  the first: the whole unit at full batch beside other units; nothing more is written
``apart``     after an earlier run broke off here: the whole unit at full batch, the decoder to itself, every finished
              row kept
``alone``     after a death within one run, or of ``apart``: one page at a time, the object says which, finished rows
              are kept, so that a death costs and charges exactly the page that was in flight. With a budget of one
              start this is the first way too: of pages that share a batch nobody can tell whose fault a death was

A run whose driver dies takes its decoders along, and no page is to blame. So an attempt of an earlier run that was the
only one there charges nobody: had the decoder died by itself, that run would have begun another. ``apart`` and
``alone`` charge always, so that pages which take the driver with them end too.

::

    OUT/attempts/<settings>/<unit>/<generation>/begun/<attempt>.json     {"run": ..., "mode": ..., "page": key or null}
    OUT/attempts/<settings>/<unit>/<generation>/rows/<key>.json          a finished row
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from jocr import storage
from jocr.archive.layout import ATTEMPTS, Unit, place
from jocr.errors import LedgerError, StorageError
from jocr.records import ParsedPage

READERS = 16  # saved rows fetched at a time
_BEGUN, _ROWS = "begun", "rows"

Mode = Literal["together", "apart", "alone"]


@dataclass(frozen=True, slots=True)
class Journal:
    """The attempts at one generation of one unit. Travels to any process."""

    out: str  # folder or s3:// prefix of the result
    settings: str
    unit: Unit
    run: str = ""  # the run that begins attempts; another command, or the same one started again, has another

    def begin(self, budget: int) -> Attempt:
        """Record that an attempt begins, and tell what earlier ones left. One listing and one small write.

        Args:
            budget: starts that a page gets in all.

        Raises:
            StorageError: the journal cannot be read or written.
            LedgerError: it is damaged.
        """
        deaths, rows = self._deaths(), {}
        if deaths or budget == 1:
            with ThreadPoolExecutor(READERS) as pool:
                rows = {row.key: row for row in pool.map(_read_row, self._uris(_ROWS))}
        lone = Counter(death.page for death in deaths if death.page is not None)
        for key in rows:
            del lone[key]
        attempt = Attempt(
            uri=self._place(_BEGUN, f"{uuid.uuid4().hex}.json"),
            rows_folder=self._place(_ROWS),
            run=self.run,
            budget=budget,
            deaths=len(deaths),
            whole=self._blamed(deaths),
            apart=any(death.mode == "apart" for death in deaths),
            lone=dict(lone),
            rows=rows,
        )
        attempt._record("together" if attempt.mode == "together" else "alone", None)
        return attempt

    def _blamed(self, deaths: list[_Death]) -> bool:
        """Whether pages that were in flight together are charged for a death: not where it may have been the driver's,
        whose run left this one record and nothing after it."""
        records = Counter(death.run for death in deaths)
        return any(death.mode == "together" and (death.run == self.run or records[death.run] > 1) for death in deaths)

    def clear(self) -> None:
        """Forget the unit's attempts: it is committed. Needed only where ``Attempt.kept`` was true.

        Raises:
            StorageError: the storage refuses; a journal of a committed unit is dead weight and harms nothing.
        """
        for entry in storage.list_below(self._place()):
            storage.delete(entry.uri)

    def _deaths(self) -> list[_Death]:
        return [death for uri in self._uris(_BEGUN) if (death := _read(uri)) is not None]

    def _uris(self, kind: str) -> list[str]:
        return [entry.uri for entry in storage.list_below(self._place(kind)) if entry.uri.endswith(".json")]

    def _place(self, *parts: str) -> str:
        return place(self.out, ATTEMPTS, self.settings, self.unit.name, str(self.unit.generation), *parts)


@dataclass(frozen=True, slots=True)
class _Death:
    """What an attempt that never ended left behind."""

    run: str
    mode: Mode
    page: int | None  # in flight alone


@dataclass(slots=True)
class Attempt:
    """One attempt at a unit. As a context manager it is ended when the block is left, by an exception too.

    Unless its ``mode`` is ``together``, pages that have a row in ``rows`` are done. ``apart``: ``parted``, then decode,
    each row ``saved``. ``alone``: where a page is ``exhausted`` it is not begun; else ``started``, decode, ``saved``.
    """

    uri: str
    rows_folder: str
    run: str
    budget: int  # starts that a page gets
    deaths: int  # earlier attempts that never ended
    whole: bool  # whether one of them had the whole unit in flight, and no driver's death explains it
    apart: bool  # whether one of them had all that is left of the unit in flight, by itself
    lone: dict[int, int]  # page -> how many of them died with just this page in flight
    rows: dict[int, ParsedPage] = field(default_factory=dict)  # finished by earlier attempts

    @property
    def mode(self) -> Mode:
        """How the pages are to be taken."""
        if self.budget == 1 or self.whole or self.apart or self.lone:
            return "alone"
        return "apart" if self.deaths else "together"

    @property
    def kept(self) -> bool:
        """Whether rows are kept, so that there is a journal to clear in the end."""
        return self.mode != "together"

    def charged(self, key: int) -> int:
        """How many starts of this page ended in its process's death."""
        return 0 if key in self.rows else self.lone.get(key, 0) + self.whole + self.apart

    def exhausted(self, key: int) -> bool:
        """Whether the page has used up its starts. Never before it was in flight alone: that another page of its unit
        killed the process is not its fault."""
        return bool(self.lone.get(key)) and self.charged(key) >= self.budget

    def parted(self) -> None:
        """Record that all pages without a row are now in flight, and no other unit's. Raises as ``started``."""
        self._record("apart", None)

    def started(self, key: int) -> None:
        """Record that this page and no other is now in flight.

        Raises:
            StorageError: the record cannot be written; the page must not be started.
        """
        self._record("alone", key)

    def saved(self, row: ParsedPage) -> None:
        """Keep a finished row for the attempts to come.

        Raises:
            StorageError: it cannot be written.
        """
        storage.atomic_write(storage.join(self.rows_folder, f"{row.key}.json"), json.dumps(row.row()).encode("ascii"))
        self.rows[row.key] = row

    def ended(self) -> None:
        """Record that the process lived to see the end, good or bad: nothing is charged for this attempt.

        Raises:
            StorageError: the storage refuses; the attempt then counts as a death.
        """
        storage.delete(self.uri)

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(StorageError):  # the work is done, or its own error matters more
            self.ended()

    def _record(self, mode: Mode, page: int | None) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        record = {"run": self.run, "mode": mode, "page": page, "written": now}
        storage.atomic_write(self.uri, json.dumps(record).encode("ascii"), durable=mode != "together")


def _read(uri: str) -> _Death | None:
    """A record; None where its attempt has ended since it was listed."""
    try:
        data = storage.read_bytes(uri)
        record = json.loads(data) if data else {"mode": "together", "run": "", "page": None}  # a power cut emptied it
        mode: Any = record["mode"]
        page = record["page"]
        if mode not in get_args(Mode):
            raise ValueError(f"mode {mode!r}")
        return _Death(str(record["run"]), mode, None if page is None else int(page))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise LedgerError(f"{uri} is not a record of this program ({error!r}); remove it") from error


def _read_row(uri: str) -> ParsedPage:
    try:
        return ParsedPage.from_row(json.loads(storage.read_bytes(uri)))
    except (ValueError, TypeError) as error:
        raise LedgerError(f"{uri} is not a row of this program ({error!r}); remove it") from error
