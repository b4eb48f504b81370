"""The manifest: one row per page in Parquet parts, and a small JSON that says the manifest is whole.

Manifests of earlier inventories are kept, on purpose: each says what the sources held when it was made (``run.json``
names the one in force, a page that vanished can be looked up), and equal inputs add none. Who needs the room may remove
``manifest/<id>.json`` and the folder ``manifest/<id>`` of any but the latest; the next inventory then still reuses
what the latest knows.

Names are kept in the stored form of ``jocr.archive.names``; ``read_pages`` gives them back exactly.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jocr import storage
from jocr.archive.groups import Keys
from jocr.archive.layout import MANIFEST, ManifestPage, place
from jocr.archive.names import to_list
from jocr.errors import StorageError

PART_ROWS = 50_000  # a part is closed at the first group that ends beyond so many rows
ROW_GROUP = 8_192
NAMES = ("uri", "member", "name", "output", "collection", "etag", "detail")  # columns in stored form
_TYPES = {"key": pa.int64(), "size": pa.int64(), "index": pa.int32(), "pages": pa.int32(), "group": pa.int32()}
_COLUMNS = [field.name for field in fields(ManifestPage)]
SCHEMA = pa.schema([pa.field(name, _TYPES.get(name, pa.string()), name == "reason") for name in _COLUMNS])
SKIPPED = pa.schema([pa.field(name, pa.string(), False) for name in ("uri", "member", "etag", "reason", "detail")])


@dataclass(frozen=True, slots=True)
class Part:
    """One file of rows; ``file`` is its name in the manifest's folder."""

    file: str
    rows: int
    groups: int


@dataclass(frozen=True, slots=True)
class ManifestInfo:
    """What a manifest holds. ``id`` comes from its rows alone: equal inputs give an equal id."""

    id: str
    parts: tuple[Part, ...]
    pages: int
    documents: int
    failed: int  # documents that do not open, one page each
    groups: int
    skipped: int  # files and members that are no document; listed in ``skipped_uri``
    kinds: dict[str, int]  # documents by kind
    reasons: dict[str, int]  # documents that do not open, by reason
    skipped_reasons: dict[str, int]
    sources: tuple[str, ...]
    selection: str | None  # pages chosen; None: all
    unit: int
    created: str  # UTC, ISO 8601
    out: str  # where it was read from; not part of the file

    @property
    def skipped_uri(self) -> str:
        return place(self.out, MANIFEST, self.id, "skipped.parquet")

    def part_uri(self, part: Part) -> str:
        return place(self.out, MANIFEST, self.id, part.file)


def save(info: ManifestInfo) -> None:
    """Write ``manifest/<id>.json``; the parts and the skipped list must be there already."""
    data = asdict(info)
    del data["out"]
    storage.atomic_write(place(info.out, MANIFEST, f"{info.id}.json"), json.dumps(data, indent=1).encode("ascii"))


def load(out: str, manifest_id: str) -> ManifestInfo:
    """
    Raises:
        FileNotFoundError: there is no such manifest.
        StorageError: it cannot be read, or is none.
    """
    uri = place(out, MANIFEST, f"{manifest_id}.json")
    try:
        data = json.loads(storage.read_bytes(uri))
        parts = tuple(Part(**part) for part in data.pop("parts"))
        return ManifestInfo(**data | {"parts": parts, "sources": tuple(data["sources"]), "out": out})
    except (ValueError, TypeError, KeyError) as error:
        raise StorageError(f"{uri} is no manifest of this program: {error}") from None


def latest(out: str) -> ManifestInfo | None:
    """The manifest made last, or None."""
    uris = (entry.uri for entry in storage.list_below(place(out, MANIFEST)) if entry.uri.endswith(".json"))
    found = [load(out, uri.rpartition("/")[2].removesuffix(".json")) for uri in uris]
    return max(found, key=lambda info: (info.created, info.id), default=None)


def encode(table: pa.Table) -> bytes:
    """A part's bytes: Parquet, zstd, in row groups small enough to read one unit without the rest."""
    target = io.BytesIO()
    pq.write_table(table, target, compression="zstd", row_group_size=ROW_GROUP)
    return target.getvalue()


def read_groups(info: ManifestInfo) -> Iterator[tuple[str, int, int, Keys]]:
    """(URI of the part, first row, row after the last, keys) of every group, in order; two columns are read."""
    for part in info.parts:
        uri = info.part_uri(part)
        table = pq.read_table(io.BytesIO(storage.read_bytes(uri)), columns=["key", "group"])
        keys, group = table["key"].to_numpy(), table["group"].to_numpy()
        starts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
        for start, stop in zip(starts, [*starts[1:], len(keys)], strict=True):
            yield uri, start, stop, keys[start:stop]


def read_column(info: ManifestInfo, *columns: str) -> Iterator[pa.Table]:
    """Some columns of every part, a table each; names stay in stored form."""
    for part in info.parts:
        yield pq.read_table(io.BytesIO(storage.read_bytes(info.part_uri(part))), columns=list(columns))


def read_pages(part: str, start: int, stop: int) -> list[ManifestPage]:
    """Rows ``start`` to ``stop`` of the part at the URI ``part``."""
    return to_pages(read_rows(part, start, stop))


def read_rows(part: str, start: int, stop: int) -> pa.Table:
    """The same as a table; only the row groups it touches are decoded."""
    file = pq.ParquetFile(io.BytesIO(_bytes(part)))
    first, last = start // ROW_GROUP, max(start, stop - 1) // ROW_GROUP
    groups = list(range(first, min(last + 1, file.num_row_groups)))
    return file.read_row_groups(groups).slice(start - first * ROW_GROUP, stop - start)


def to_pages(table: pa.Table) -> list[ManifestPage]:
    """Rows of a part as records, with their original names."""
    columns = [to_list(table[name]) if name in NAMES else table[name].to_pylist() for name in SCHEMA.names]
    return [ManifestPage(*values) for values in zip(*columns, strict=True)]


@lru_cache(maxsize=4)
def _bytes(part: str) -> bytes:
    """A part's bytes, kept because a process works on neighbouring units; a part never changes under its name."""
    return storage.read_bytes(part)
