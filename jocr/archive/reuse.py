"""What the last inventory found, looked up by file: some 28 bytes of memory a file, rows read when they are wanted."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jocr import storage
from jocr.archive.inventory import Document
from jocr.archive.manifest import ROW_GROUP, ManifestInfo, read_column
from jocr.archive.names import digest, original, to_list

Rows = tuple[int, int, int]  # number of the part (-1: the skipped list), first row, row after the last


@dataclass(frozen=True, slots=True)
class Earlier:
    """Where an earlier manifest's rows lie: what a task needs to read those of its files."""

    parts: tuple[str, ...]
    skipped: str

    def documents(self, uri: str, rows: Sequence[int]) -> list[Document]:
        """What was found at ``uri``, members in order, what was no document behind them.

        Args:
            rows: of ``Index.rows``, one after another.
        """
        found: list[Document] = []
        for part, start, stop in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
            place = self.skipped if part < 0 else self.parts[part]
            found += [document for document in _documents(place, start, stop) if document.uri == uri]
        members: dict[tuple[str, bool], Document] = {}
        for document in found:
            members.setdefault((document.member, document.skipped), document)
        return list(members.values())


class Index:
    """Rows of a manifest by the file they come from."""

    def __init__(self, info: ManifestInfo | None) -> None:
        found: list[np.ndarray] = []
        if info is not None:
            for number, table in enumerate(read_column(info, "uri")):
                found.append(_runs(number, table["uri"]))
            if info.skipped:
                found.append(_runs(-1, _read(info.skipped_uri, ["uri"])["uri"]))
        self._rows = np.concatenate(found) if found else np.empty(0, _RUN)
        self._rows.sort(order=["digest", "part", "start"])
        self._digests = np.ascontiguousarray(self._rows["digest"])

    def rows(self, uri: str) -> list[Rows]:
        """Where rows of ``uri`` lie; seldom also some of another uri with the same digest."""
        value = np.uint64(digest(uri))
        left, right = np.searchsorted(self._digests, value), np.searchsorted(self._digests, value, "right")
        runs = self._rows[left:right]
        plain = [(int(run["part"]), int(run["start"]), int(run["stop"])) for run in runs]
        return sorted(plain, key=lambda run: (run[0] < 0, run))


def earlier(info: ManifestInfo) -> Earlier:
    """The places of ``info``'s rows."""
    return Earlier(tuple(info.part_uri(part) for part in info.parts), info.skipped_uri)


_RUN = np.dtype([("digest", np.uint64), ("part", np.int32), ("start", np.int64), ("stop", np.int64)])


def _runs(part: int, uris: pa.ChunkedArray) -> np.ndarray:
    """Runs of equal neighbours."""
    values = uris.combine_chunks() if isinstance(uris, pa.ChunkedArray) else uris
    starts = _changes(values)
    runs = np.empty(len(starts), _RUN)
    runs["part"], runs["start"] = part, starts
    runs["stop"] = np.append(starts[1:], len(values))
    runs["digest"] = [digest(uri) for uri in to_list(values.take(pa.array(starts)))]
    return runs


def _changes(*columns: pa.Array) -> np.ndarray:
    """Rows that differ from the one before."""
    count = len(columns[0])
    differs = np.zeros(count, bool)
    for column in columns:
        codes = column.dictionary_encode().indices.to_numpy(zero_copy_only=False)
        differs |= np.diff(codes, prepend=-1) != 0
    return np.flatnonzero(differs)


def _documents(place: str, start: int, stop: int) -> list[Document]:
    found: list[Document] = []
    for group in range(start // ROW_GROUP, max(start, stop - 1) // ROW_GROUP + 1):
        first = group * ROW_GROUP
        left, right = max(start - first, 0), min(stop - first, ROW_GROUP)
        table = _row_group(place, group).slice(left, right - left)
        firsts = _changes(table["uri"].combine_chunks(), table["member"].combine_chunks())
        found += [_document(row) for row in table.take(pa.array(firsts)).to_pylist()]
    return found


def _document(row: dict) -> Document:
    text = {key: original(value) for key, value in row.items() if isinstance(value, str)}
    skipped = "key" not in row
    return Document(
        uri=text["uri"],
        member=text["member"],
        name="",
        output="",
        collection="",
        etag=text["etag"],
        sha256=text.get("sha256", ""),
        size=row.get("size", 0),
        kind=text.get("kind", ""),
        pages=row.get("pages", 0),
        reason=text.get("reason", ""),
        detail=text["detail"],
        skipped=skipped,
    )


@lru_cache(maxsize=8)
def _row_group(place: str, group: int) -> pa.Table:
    return _file(place).read_row_group(group)


@lru_cache(maxsize=2)
def _file(place: str) -> pq.ParquetFile:
    return pq.ParquetFile(io.BytesIO(storage.read_bytes(place)))


def _read(place: str, columns: list[str]) -> pa.Table:
    return pq.read_table(io.BytesIO(storage.read_bytes(place)), columns=columns)
