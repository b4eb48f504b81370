"""A unit's journal: what was begun and never ended, so that a page that kills its process is found and then let be.

An attempt is one small object, written before the unit's pages are decoded and removed when decoding ends, by whatever
way the process survives. One that is still there belongs to a process that died (or to one thought dead that still
works: objects are named apart, so the two do not disturb each other). The first attempt takes the whole unit at full
batch and writes nothing more. After a death comes care: one page at a time, the attempt's object says which, and every
finished row is kept, so a death costs and charges exactly the page that was in flight.

::

    OUT/attempts/<settings>/<unit>/<generation>/begun/<attempt>.json     {"careful": ..., "page": key or null, ...}
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
from typing import Any

from jocr import storage
from jocr.archive.layout import ATTEMPTS, Unit, place
from jocr.errors import LedgerError, StorageError
from jocr.records import ParsedPage

READERS = 16  # saved rows fetched at a time
_BEGUN, _ROWS = "begun", "rows"


@dataclass(frozen=True, slots=True)
class Journal:
    """The attempts at one generation of one unit. Travels to any process."""

    out: str  # folder or s3:// prefix of the result
    settings: str
    unit: Unit

    def begin(self) -> Attempt:
        """Record that an attempt begins, and tell what earlier ones left. One listing and one small write.

        Raises:
            StorageError: the journal cannot be read or written.
            LedgerError: it is damaged.
        """
        deaths, rows = self._deaths(), {}
        if deaths:
            with ThreadPoolExecutor(READERS) as pool:
                rows = {row.key: row for row in pool.map(_read_row, self._uris(_ROWS))}
        lone = Counter(int(record["page"]) for record in deaths if record["page"] is not None)
        for key in rows:
            del lone[key]
        attempt = Attempt(
            uri=self._place(_BEGUN, f"{uuid.uuid4().hex}.json"),
            rows_folder=self._place(_ROWS),
            deaths=len(deaths),
            whole=any(not record["careful"] for record in deaths),
            lone=dict(lone),
            rows=rows,
        )
        attempt._record(None)
        return attempt

    def clear(self) -> None:
        """Forget the unit's attempts: it is committed. Needed only where ``Attempt.careful`` was true.

        Raises:
            StorageError: the storage refuses; a journal of a committed unit is dead weight and harms nothing.
        """
        for entry in storage.list_below(self._place()):
            storage.delete(entry.uri)

    def _deaths(self) -> list[dict[str, Any]]:
        return [record for uri in self._uris(_BEGUN) if (record := _read(uri)) is not None]

    def _uris(self, kind: str) -> list[str]:
        return [entry.uri for entry in storage.list_below(self._place(kind)) if entry.uri.endswith(".json")]

    def _place(self, *parts: str) -> str:
        return place(self.out, ATTEMPTS, self.settings, self.unit.name, str(self.unit.generation), *parts)


@dataclass(slots=True)
class Attempt:
    """One attempt at a unit. As a context manager it is ended when the block is left, by an exception too.

    A careful attempt goes through the pages that have no row yet, one at a time: where one is ``exhausted``, it is not
    begun; else ``started``, decode, ``saved``.
    """

    uri: str
    rows_folder: str
    deaths: int  # earlier attempts that never ended
    whole: bool  # whether one of them had the whole unit in flight
    lone: dict[int, int]  # page -> how many of them died with just this page in flight
    rows: dict[int, ParsedPage] = field(default_factory=dict)  # finished by earlier attempts

    @property
    def careful(self) -> bool:
        """Whether pages are to be taken one at a time: somebody died here."""
        return self.deaths > 0

    def charged(self, key: int) -> int:
        """How many starts of this page ended in its process's death; an attempt at the whole unit is one for every
        page."""
        return 0 if key in self.rows else self.lone.get(key, 0) + self.whole

    def exhausted(self, key: int, budget: int) -> bool:
        """Whether the page has used up its ``budget`` of starts. Never before it was in flight alone: that another page
        of its unit killed the process is not its fault."""
        return bool(self.lone.get(key)) and self.charged(key) >= budget

    def started(self, key: int) -> None:
        """Record, in a careful attempt, that this page and no other is now in flight.

        Raises:
            StorageError: the record cannot be written; the page must not be started.
        """
        self._record(key)

    def saved(self, row: ParsedPage) -> None:
        """Keep a finished row for the attempts to come, in a careful attempt.

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

    def _record(self, page: int | None) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        record = {"careful": self.careful, "page": page, "written": now}
        storage.atomic_write(self.uri, json.dumps(record).encode("ascii"), durable=self.careful)


def _read(uri: str) -> dict[str, Any] | None:
    """A record; None where its attempt has ended since it was listed."""
    try:
        data = storage.read_bytes(uri)
        record = json.loads(data) if data else {"careful": False, "page": None}  # a power cut emptied it
        return {"careful": bool(record["careful"]), "page": record["page"]}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise LedgerError(f"{uri} is not a record of this program ({error!r}); remove it") from error


def _read_row(uri: str) -> ParsedPage:
    try:
        return ParsedPage.from_row(json.loads(storage.read_bytes(uri)))
    except (ValueError, TypeError) as error:
        raise LedgerError(f"{uri} is not a row of this program ({error!r}); remove it") from error
