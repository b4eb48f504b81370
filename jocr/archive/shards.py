"""Which documents are written together: runs of whole documents, cut where a document ends, each a task of its own.

A shard takes the documents that begin in a run of manifest rows, to the end of the last, so that its pages lie in a few
neighbouring units. What it will write is known by its ``fingerprint``: a shard that is asked for again and would write
the same is not written again.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jocr.archive.groups import Keys, unit_name
from jocr.archive.ledger import Commit
from jocr.archive.manifest import ManifestInfo, read_column
from jocr.config import OutputSettings

FORM = 1  # raised when shards come to be written differently
PAGES = 2048  # a shard ends with the first document that ends beyond so many


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows ``start`` to ``stop`` of one manifest part: pages of one unit, or some of them."""

    part: str  # URI
    start: int
    stop: int
    commit: Commit | None  # of their unit; None while it is pending

    @property
    def pages(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Shard:
    """Whole documents, in the order of the manifest."""

    number: int
    stretches: tuple[Stretch, ...]
    fingerprint: str

    @property
    def pages(self) -> int:
        return sum(stretch.pages for stretch in self.stretches)


def plan_shards(
    info: ManifestInfo, commits: Mapping[str, Commit], settings: OutputSettings, *, pages: int = PAGES
) -> Iterator[Shard]:
    """All shards of a manifest, in order; one manifest part is in memory at a time.

    Args:
        info: the manifest.
        commits: unit name -> its commit that counts, as ``Ledger.committed`` gives it.
        settings: what will be written.
        pages: how many make a shard, at least.
    """
    gathered = _Gathered(0, settings)
    last = ""
    for part, table in zip(info.parts, read_column(info, "key", "group", "output", "name"), strict=True):
        rows = _Rows.of(info.part_uri(part), table, last)
        last = rows.outputs[-1]
        at = 0
        while at < len(rows.keys):
            next_begin = int(np.searchsorted(rows.begins, at + max(0, pages - gathered.pages)))
            found = next_begin < len(rows.begins)
            end = int(rows.begins[next_begin]) if found else len(rows.keys)
            gathered.add(rows, at, end, commits)
            if found and gathered.pages:
                yield gathered.close()
                gathered = _Gathered(gathered.number + 1, settings)
            at = end
    if gathered.pages:
        yield gathered.close()


@dataclass(frozen=True)
class _Rows:
    """One manifest part: where its documents and its units begin."""

    uri: str
    keys: Keys
    bounds: list[int]  # first row of each group, and the number of rows
    begins: NDArray[np.int64]  # first row of each document that begins here
    outputs: list[str]
    names: list[str]

    @classmethod
    def of(cls, uri: str, table: pa.Table, last: str) -> _Rows:
        """``last`` is the output of the row before the part's first."""
        outputs, group = table["output"].to_pylist(), table["group"].to_numpy()
        changes = [a != b for a, b in zip([last, *outputs], outputs, strict=False)]
        bounds = [*np.flatnonzero(np.diff(group, prepend=-1)).tolist(), len(group)]
        return cls(uri, table["key"].to_numpy(), bounds, np.flatnonzero(changes), outputs, table["name"].to_pylist())

    def stretches(self, start: int, stop: int, commits: Mapping[str, Commit]) -> Iterator[Stretch]:
        """The rows from ``start`` to ``stop``, unit by unit."""
        first, last = bisect_right(self.bounds, start) - 1, bisect_left(self.bounds, stop)
        for low, high in pairwise(self.bounds[first : last + 1]):
            commit = commits.get(unit_name(self.keys[low:high]))
            yield Stretch(self.uri, max(low, start), min(high, stop), commit)


class _Gathered:
    """The shard that is being put together."""

    def __init__(self, number: int, settings: OutputSettings) -> None:
        self.number = number
        self.pages = 0
        self._stretches: list[Stretch] = []
        self._hash = hashlib.sha256(f"{FORM} {number} {settings.model_dump_json()}".encode())

    def add(self, rows: _Rows, start: int, stop: int, commits: Mapping[str, Commit]) -> None:
        if start == stop:
            return
        self.pages += stop - start
        self._hash.update(np.ascontiguousarray(rows.keys[start:stop], "<i8").tobytes())
        self._hash.update("\0".join([*rows.outputs[start:stop], *rows.names[start:stop]]).encode("utf-8"))
        for stretch in rows.stretches(start, stop, commits):
            self._stretches.append(stretch)
            commit = stretch.commit
            self._hash.update(f"{stretch.pages} {commit and (commit.data, commit.created)}".encode())

    def close(self) -> Shard:
        return Shard(self.number, tuple(self._stretches), self._hash.hexdigest()[:24])
