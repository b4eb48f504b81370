"""From what the tasks found to a manifest: rows in listing order, groups, parts, and the file that makes it count."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jocr import storage
from jocr.archive.groups import group_ends
from jocr.archive.layout import MANIFEST, place
from jocr.archive.manifest import PART_ROWS, ROW_GROUP, SCHEMA, SKIPPED, ManifestInfo, Part, encode, save
from jocr.archive.names import OutputNames, original
from jocr.errors import ConfigError, JocrError

Tables = Callable[[], Iterator[pa.Table]]  # the tables of ``inventory.to_table``, in listing order, as often as asked
_PAGES_AT_ONCE = 50_000


@dataclass
class Totals:
    """What a first look at all documents tells."""

    id: str = ""
    pages: int = 0
    documents: int = 0
    skipped: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    skipped_reasons: Counter[str] = field(default_factory=Counter)


def assemble(
    tables: Tables, out: str, *, unit: int, sources: tuple[str, ...] = (), selection: str | None = None
) -> ManifestInfo:
    """Check and write a manifest.

    Raises:
        ConfigError: two documents would write one output, or nothing is left to parse.
        JocrError: two pages have one key (64 bits of a hash: one archive of a hundred million pages in 4,000).
        StorageError: ``out`` cannot be written; without the last file the manifest does not count.
    """
    totals = survey(tables, unit, selection)
    parts = []
    for number, (table, groups) in enumerate(_parts(tables, unit)):
        parts.append(Part(f"part-{number:05d}.parquet", table.num_rows, groups))
        storage.atomic_write(place(out, MANIFEST, totals.id, parts[-1].file), encode(table))
    info = ManifestInfo(
        id=totals.id,
        parts=tuple(parts),
        pages=totals.pages,
        documents=totals.documents,
        failed=totals.reasons.total(),
        groups=sum(part.groups for part in parts),
        skipped=totals.skipped,
        kinds=dict(totals.kinds),
        reasons=dict(totals.reasons),
        skipped_reasons=dict(totals.skipped_reasons),
        sources=sources,
        selection=selection,
        unit=unit,
        created=datetime.now(UTC).isoformat(timespec="microseconds"),
        out=out,
    )
    storage.atomic_write(info.skipped_uri, _skipped(tables))
    save(info)
    return info


def survey(tables: Tables, unit: int, selection: str | None) -> Totals:
    """Counts and the manifest's id; outputs and keys are seen to be unique. Raises as ``assemble``."""
    totals, outputs = Totals(), OutputNames()
    keys: list[np.ndarray] = []
    identity, left_out = hashlib.sha256(f"{unit}\0{selection}\0".encode()), hashlib.sha256()
    for table in tables():  # what is skipped by itself: taken over from an earlier inventory it stands behind the rest
        identity.update(b"".join(table.filter(pc.invert(table["skipped"]))["digest"].to_pylist()))
        left_out.update(b"".join(table.filter(table["skipped"])["digest"].to_pylist()))
        _count(table, totals, outputs)
        keys.append(pc.list_flatten(table["keys"].combine_chunks()).to_numpy())
    every = np.sort(np.concatenate(keys)) if keys else np.empty(0, np.int64)
    if not len(every):
        raise ConfigError("the sources hold no page to parse: no file is a document, or the pages chosen are not there")
    if (every[1:] == every[:-1]).any():
        raise JocrError("two pages of the manifest have one key; parse half of the sources into another directory")
    outputs.check(lambda: _outputs(tables))
    identity.update(left_out.digest())
    totals.pages, totals.id = len(every), identity.hexdigest()[:24]
    return totals


def _count(table: pa.Table, totals: Totals, outputs: OutputNames) -> None:
    columns = ("skipped", "output", "kind", "reason", "keys")
    lengths = pc.list_value_length(table["keys"]).to_pylist()
    rows = zip(*(table[name].to_pylist() for name in columns[:-1]), lengths, strict=True)
    for skipped, output, kind, reason, chosen in rows:
        if skipped:
            totals.skipped += 1
            totals.skipped_reasons[reason] += 1
            continue
        outputs.add(original(output))
        if chosen:
            totals.documents += 1
            totals.kinds[kind or "unknown"] += 1
            totals.reasons.update([reason] if reason else [])


def _outputs(tables: Tables) -> Iterator[tuple[str, str]]:
    for table in tables():
        for row in table.select(["output", "uri", "member", "skipped"]).to_pylist():
            if not row["skipped"]:
                yield original(row["output"]), "/".join(filter(None, (original(row["uri"]), original(row["member"]))))


def _parts(tables: Tables, unit: int) -> Iterator[tuple[pa.Table, int]]:
    """(rows of a part, groups in it): where parts end does not depend on how the tables are cut."""
    pending, groups = SCHEMA.empty_table(), 0
    for rows in _pages(tables):
        pending = pa.concat_tables([pending, rows])
        while pending.num_rows >= PART_ROWS + unit:
            ends = group_ends(pending["key"].to_numpy(), unit, last=False)
            count = int(np.searchsorted(ends, PART_ROWS)) + 1
            yield _numbered(pending, ends[:count], groups), count
            pending, groups = pending.slice(int(ends[count - 1])), groups + count
    ends = group_ends(pending["key"].to_numpy(), unit)
    if len(ends):
        yield _numbered(pending, ends, groups), len(ends)


def _numbered(table: pa.Table, ends: np.ndarray, first: int) -> pa.Table:
    sizes = np.diff(ends, prepend=0)
    numbers = np.repeat(np.arange(first, first + len(ends), dtype=np.int32), sizes)
    column = SCHEMA.get_field_index("group")
    return table.slice(0, int(ends[-1])).set_column(column, SCHEMA.field("group"), pa.array(numbers)).combine_chunks()


def _pages(tables: Tables) -> Iterator[pa.Table]:
    """Page rows, their groups not numbered yet."""
    for table in tables():
        lengths = pc.list_value_length(table["keys"]).to_numpy()
        ends = np.cumsum(lengths)
        start = 0
        while start < table.num_rows:
            limit = (int(ends[start - 1]) if start else 0) + _PAGES_AT_ONCE
            stop = max(start + 1, int(np.searchsorted(ends, limit, "right")))
            yield _expanded(table.slice(start, stop - start))
            start = stop


def _expanded(table: pa.Table) -> pa.Table:
    keys, indices = table["keys"].combine_chunks(), table["indices"].combine_chunks()
    rows = table.drop_columns(["keys", "indices", "digest"]).take(pc.list_parent_indices(keys))
    opens = pc.equal(rows["reason"], "")
    own = {
        "key": pc.list_flatten(keys),
        "index": pc.list_flatten(indices),
        "reason": pc.if_else(opens, pa.scalar(None, pa.string()), rows["reason"]),
        "group": pa.array(np.zeros(rows.num_rows, np.int32)),  # numbered when it is known
    }
    return pa.table([own[name] if name in own else rows[name] for name in SCHEMA.names], schema=SCHEMA)


def _skipped(tables: Tables) -> bytes:
    target = io.BytesIO()
    with pq.ParquetWriter(target, SKIPPED, compression="zstd") as writer:
        waiting = SKIPPED.empty_table()
        for table in tables():
            rows = table.filter(table["skipped"]).select(SKIPPED.names)
            waiting = pa.concat_tables([waiting, rows.cast(SKIPPED)])
            while waiting.num_rows >= ROW_GROUP:
                writer.write_table(waiting.slice(0, ROW_GROUP), row_group_size=ROW_GROUP)
                waiting = waiting.slice(ROW_GROUP).combine_chunks()
        if waiting.num_rows:
            writer.write_table(waiting, row_group_size=ROW_GROUP)
    return target.getvalue()
