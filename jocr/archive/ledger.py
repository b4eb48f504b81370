"""The ledger of an archive's result: which units are committed, and what their markers say of their pages.

A commit is two writes: the rows under a name derived from their bytes, then a small marker by a conditional write. Who
reads trusts markers only, so rows without one do not exist, and of any number of writers of one unit one alone counts.
Nothing is renamed or overwritten. Of a unit's generations the highest counts; a redrive adds one.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime

import pyarrow.parquet as pq

from jocr import storage
from jocr.archive.layout import COMMITS, PAGES, RETIRED, Unit, place
from jocr.errors import LedgerError
from jocr.parsing.table import plain, to_table
from jocr.records import ParsedPage

READERS = 16  # markers fetched at a time
_MARKER = re.compile(r"(?P<unit>.+)\.(?P<generation>\d+)\.json")
_DATA = re.compile(r"(?P<unit>.+)\.(?P<generation>\d+)-(?P<content>[0-9a-f]+)\.parquet")


@dataclass(frozen=True, slots=True)
class Commit:
    """One committed unit, as its marker tells it: enough to plan, count and report without reading rows."""

    unit: str
    generation: int
    data: str  # name of the Parquet file in the settings' folder of pages
    pages: int
    counts: dict[str, int]  # per status; the sum is ``pages``
    reasons: dict[str, int]  # per reason code
    tokens: int
    prompt_tokens: int
    render_seconds: float  # summed over the pages
    decode_seconds: float  # summed over the pages, which overlap in a batch
    busy_seconds: float  # wall time that a decoder spent on this commit: what is paid for
    carried: int  # rows copied from earlier commits, of ``pages``
    created: str  # UTC, ISO 8601
    collections: dict[str, dict[str, int]]  # collection -> pages, tokens, and pages per status
    packed_keys: bytes  # keys of the pages in their order, 8 bytes each, big-endian, signed

    @property
    def keys(self) -> tuple[int, ...]:
        """Keys of the pages, in the order of the rows."""
        packed = self.packed_keys
        return tuple(int.from_bytes(packed[i : i + 8], "big", signed=True) for i in range(0, len(packed), 8))

    def to_json(self) -> bytes:
        keys = base64.b64encode(self.packed_keys).decode("ascii")
        return json.dumps({**asdict(self), "packed_keys": keys}, ensure_ascii=False).encode("utf-8")

    @classmethod
    def from_json(cls, data: bytes, uri: str = "marker") -> Commit:
        """The commit a marker holds. ``LedgerError`` where it holds none."""
        try:
            found = json.loads(data)
            values = {field.name: found[field.name] for field in fields(cls)}
            return cls(**{**values, "packed_keys": base64.b64decode(values["packed_keys"])})
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerError(
                f"{uri} is not a marker of this program ({error!r}); remove it to do its unit again"
            ) from error


@dataclass(frozen=True, slots=True)
class Ledger:
    """The commits of one result under one hash of settings. Holds two strings: it travels to any process."""

    out: str  # folder or s3:// prefix of the result
    settings: str

    def names(self) -> dict[str, int]:
        """Unit -> its highest committed generation, from one listing and nothing else.

        Raises:
            StorageError: the markers cannot be listed.
        """
        highest: dict[str, int] = {}
        for unit, generation, _ in self._markers():
            highest[unit] = max(generation, highest.get(unit, -1))
        return highest

    def committed(self) -> dict[str, Commit]:
        """Unit -> its highest commit, in order of unit name; see ``names``.

        Raises:
            StorageError: a marker cannot be listed or read.
            LedgerError: a marker is damaged.
        """
        return {commit.unit: commit for commit in self.read(sorted(self.names().items()))}

    def history(self) -> Iterator[Commit]:
        """Every commit, superseded ones too: what a redrive cost is in them. Raises as ``committed``."""
        return self.read(sorted((unit, generation) for unit, generation, _ in self._markers()))

    def read(self, names: Iterable[tuple[str, int]]) -> Iterator[Commit]:
        """The commits of (unit, generation), in this order, ``READERS`` markers fetched at a time."""
        uris = [self._marker(unit, generation) for unit, generation in names]
        with ThreadPoolExecutor(READERS) as pool:
            yield from pool.map(_read_marker, uris)

    def has(self, unit: Unit) -> bool:
        """Whether this generation of the unit is committed."""
        return storage.exists(self._marker(unit.name, unit.generation))

    def rows(self, commit: Commit) -> list[ParsedPage]:
        """The rows of a commit, in the order of its keys.

        Raises:
            LedgerError: they are gone or are not what the marker says: the result was changed by other means.
            StorageError: they cannot be read.
        """
        uri = self._data(commit.data)
        remedy = f"remove {self._marker(commit.unit, commit.generation)} to have the unit done again"
        try:
            table = pq.read_table(io.BytesIO(self._bytes(commit.data)))
        except FileNotFoundError:
            raise LedgerError(f"{uri} is gone though its marker stands; {remedy}") from None
        except (OSError, ValueError) as error:  # pyarrow.ArrowInvalid is a ValueError
            raise LedgerError(f"{uri} is damaged ({error}); {remedy}") from error
        rows = [ParsedPage.from_row(row) for row in table.to_pylist()]
        if tuple(row.key for row in rows) != commit.keys:
            raise LedgerError(f"{uri} holds other pages than its marker says; {remedy}")
        return rows

    def commit(
        self,
        unit: Unit,
        rows: Iterable[ParsedPage],
        keys: Sequence[int],
        *,
        busy_seconds: float = 0.0,
        carried: int = 0,
    ) -> Commit | None:
        """Make the rows of a unit count, unless somebody else's do already.

        Args:
            unit: what is committed; its generation too.
            rows: one for every page, in any order.
            keys: of the unit's pages, in the order of the manifest.
            busy_seconds: wall time a decoder spent on it.
            carried: how many of the rows were copied from earlier commits.

        Returns:
            The commit, or None where this generation was committed before; then the rows written here are gone.

        Raises:
            LedgerError: ``rows`` are not exactly the unit's pages; nothing is written.
            StorageError: the result is not writable.
        """
        ordered = _in_order(unit, rows, keys)
        data = _parquet(ordered)
        name = f"{unit.name}.{unit.generation}-{hashlib.sha256(data).hexdigest()[:20]}.parquet"
        commit = _summary(unit, name, ordered, busy_seconds, carried)
        storage.atomic_write(self._data(name), data)
        marker = self._marker(unit.name, unit.generation)
        if storage.put_if_absent(marker, commit.to_json()):
            return commit
        if _read_marker(marker).data != name:
            storage.delete(self._data(name))
        return None

    def prune(self, *, alone: bool = False) -> int:
        """Remove rows that no marker names: lost races, crashes before the marker, superseded generations.

        Rows that a writer at work may still commit are kept (those of a generation that has no marker yet), unless
        ``alone`` says that there is no writer. Returns how many files went.

        Raises:
            StorageError: the storage refuses.
        """
        committed = self.committed()
        removed = 0
        for entry in storage.list_below(place(self.out, PAGES, self.settings)):
            name = _name_of(entry.uri)
            found = _DATA.fullmatch(name)
            if found is None:
                continue
            commit = committed.get(found["unit"])
            decided = commit is not None and int(found["generation"]) <= commit.generation
            if (decided or alone) and (commit is None or commit.data != name):
                storage.delete(entry.uri)
                removed += 1
        return removed

    def settle(self, units: Collection[str]) -> None:
        """Have the folder of pages hold the rows of ``units`` and no other unit's, committed or left by a crash: those
        wait in ``RETIRED``, are read by ``rows`` as before, and come back when their unit does. To be called after
        ``prune``.

        Raises:
            StorageError: the storage refuses; called again it goes on.
        """
        here, there = (place(self.out, folder, self.settings) for folder in (PAGES, RETIRED))
        counted, waiting = ({_name_of(entry.uri) for entry in storage.list_below(at)} for at in (here, there))
        for name in counted:
            found = _DATA.fullmatch(name)
            if found is not None and found["unit"] not in units:
                _move(place(here, name), place(there, name))
        for unit, commit in self.committed().items():
            if unit in units and commit.data in waiting:
                _move(place(there, commit.data), place(here, commit.data))

    def _bytes(self, data: str) -> bytes:
        for folder in (PAGES, RETIRED):  # by ``settle`` it is in both before it is in one
            with contextlib.suppress(FileNotFoundError):
                return storage.read_bytes(place(self.out, folder, self.settings, data))
        return storage.read_bytes(self._data(data))

    def _markers(self) -> Iterator[tuple[str, int, str]]:
        for entry in storage.list_below(place(self.out, COMMITS, self.settings)):
            if found := _MARKER.fullmatch(_name_of(entry.uri)):
                yield found["unit"], int(found["generation"]), entry.uri

    def _marker(self, unit: str, generation: int) -> str:
        return place(self.out, COMMITS, self.settings, f"{unit}.{generation}.json")

    def _data(self, name: str) -> str:
        return place(self.out, PAGES, self.settings, name)


def _name_of(uri: str) -> str:
    return uri.rpartition("/")[2]


def _move(source: str, target: str) -> None:
    with contextlib.suppress(FileNotFoundError):  # somebody else did
        storage.atomic_write(target, storage.read_bytes(source))
    storage.delete(source)


def _read_marker(uri: str) -> Commit:
    try:
        return Commit.from_json(storage.read_bytes(uri), uri)
    except FileNotFoundError:
        raise LedgerError(f"{uri} went away while it was read; no other program may change a result") from None


def _in_order(unit: Unit, rows: Iterable[ParsedPage], keys: Sequence[int]) -> list[ParsedPage]:
    """The rows in the order of ``keys``; ``LedgerError`` where they are not one for each."""
    rows = list(rows)
    by_key = {row.key: row for row in rows}
    expected = set(keys)
    doubled = [key for key, times in Counter(row.key for row in rows).items() if times > 1]
    problems = {
        "missing": [key for key in keys if key not in by_key],
        "doubled": doubled,
        "foreign": [key for key in by_key if key not in expected],
        "expected twice": [key for key, times in Counter(keys).items() if times > 1],
    }
    told = [f"{len(found)} {what} (first: {found[0]})" for what, found in problems.items() if found]
    if len(keys) != unit.pages:
        told.append(f"{len(keys)} keys for {unit.pages} pages")
    if told:
        raise LedgerError(f"unit {unit.name}: the rows are not exactly its pages: {', '.join(told)}")
    return [by_key[key] for key in keys]


def _parquet(rows: list[ParsedPage]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(to_table(rows), sink, compression="zstd")
    return sink.getvalue()


def _summary(unit: Unit, data: str, rows: list[ParsedPage], busy_seconds: float, carried: int) -> Commit:
    collections: dict[str, Counter[str]] = {}
    for row in rows:
        count = collections.setdefault(plain(row.collection), Counter())
        count.update({"pages": 1, "tokens": row.tokens, row.status: 1})
    return Commit(
        unit=unit.name,
        generation=unit.generation,
        data=data,
        pages=len(rows),
        counts=dict(Counter(row.status for row in rows)),
        reasons=dict(Counter(row.reason for row in rows if row.reason)),
        tokens=sum(row.tokens for row in rows),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        render_seconds=round(sum(row.render_seconds for row in rows), 6),
        decode_seconds=round(sum(row.decode_seconds for row in rows), 6),
        busy_seconds=round(busy_seconds, 6),
        carried=carried,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        collections={name: dict(count) for name, count in collections.items()},
        packed_keys=b"".join(row.key.to_bytes(8, "big", signed=True) for row in rows),
    )
