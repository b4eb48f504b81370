"""Shards put together: one page map, one failures view, and nothing left of what the result no longer holds."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jocr import storage
from jocr.archive.layout import FAILURES, JSONL, PAGE_MAP, PARTS, place
from jocr.archive.names import Digests, digest, original
from jocr.archive.outputs import Written, receipt_name, table_name
from jocr.archive.page_map import PAGE_MAP_SCHEMA
from jocr.archive.shards import Shard
from jocr.config import OutputSettings
from jocr.parsing.table import SCHEMA

ROW_GROUP = 32_768


def begin(out: str, shards: Iterable[Shard]) -> None:
    """Before shards are written: forget the receipts of all that is not planned now, so that none is ever believed
    after its documents were written over."""
    planned = {receipt_name(shard.number): shard.fingerprint for shard in shards}
    for entry in storage.list_below(place(out, PARTS)):
        name = entry.uri.rpartition("/")[2]
        if name.endswith(".json") and not _is_of(entry.uri, planned.get(name)):
            storage.delete(entry.uri)


def _is_of(uri: str, fingerprint: str | None) -> bool:
    if fingerprint is None:
        return False
    try:
        return Written.from_json(storage.read_bytes(uri)).fingerprint == fingerprint
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return False


def merge(out: str, written: list[Written], settings: OutputSettings) -> None:
    """Write ``failures.parquet`` and ``documents.parquet``, and remove what belongs to an earlier result: Markdown of
    documents that are gone, JSONL parts and pieces of shards that are no more."""
    _join(out, written, "failures", FAILURES, SCHEMA)
    _remove_documents(out, written if settings.markdown else [])
    if settings.markdown:
        _join(out, written, "documents", PAGE_MAP, PAGE_MAP_SCHEMA)
    else:
        storage.delete(place(out, PAGE_MAP))
    _remove_others(place(out, JSONL), {shard.jsonl for shard in written if shard.jsonl})
    kinds = ("documents", "failures") if settings.markdown else ("failures",)
    names = {table_name(shard.number, kind) for shard in written for kind in kinds}
    _remove_others(place(out, PARTS), names | {receipt_name(shard.number) for shard in written})


def _join(out: str, written: list[Written], kind: str, target: str, schema: pa.Schema) -> None:
    def write(file: io.BufferedIOBase) -> None:
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            waiting = schema.empty_table()
            for shard in written:
                table = _read(place(out, PARTS, table_name(shard.number, kind)))
                waiting = pa.concat_tables([waiting, table])
                if waiting.num_rows >= ROW_GROUP:
                    writer.write_table(waiting)
                    waiting = schema.empty_table()
            if waiting.num_rows:
                writer.write_table(waiting)

    storage.atomic_write(place(out, target), write)  # type: ignore[arg-type]


def _remove_documents(out: str, written: list[Written]) -> None:
    """Markdown that the earlier page map names and the shards of now do not."""
    try:
        earlier = pq.ParquetFile(io.BytesIO(storage.read_bytes(place(out, PAGE_MAP))))
    except (FileNotFoundError, pa.ArrowInvalid):
        return
    present = Digests()
    for shard in written:
        for name in _names(_read(place(out, PARTS, table_name(shard.number, "documents")), ["markdown"])["markdown"]):
            present.add(name)
    known = present.sorted()
    for batch in earlier.iter_batches(batch_size=ROW_GROUP, columns=["markdown"]):
        for name in _names(batch["markdown"]):
            at = int(np.searchsorted(known, np.uint64(digest(name))))
            if at == len(known) or int(known[at]) != digest(name):
                storage.delete(place(out, original(name)))


def _names(column: pa.Array | pa.ChunkedArray) -> Iterator[str]:
    """Each of neighbouring equal names once."""
    last = None
    for name in column.to_pylist():
        if name != last:
            yield name
        last = name


def _remove_others(folder: str, names: set[str]) -> None:
    for entry in storage.list_below(folder):
        if entry.uri.rpartition("/")[2] not in names:
            storage.delete(entry.uri)


def _read(uri: str, columns: list[str] | None = None) -> pa.Table:
    return pq.read_table(io.BytesIO(storage.read_bytes(uri)), columns=columns)
