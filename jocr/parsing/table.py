"""The page table: one Arrow row per page, with a schema that does not depend on the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jocr.records import ParsedPage

TYPES: dict[str, pa.DataType] = {
    "page": pa.int32(),
    "tokens": pa.int32(),
    "prompt_tokens": pa.int32(),
    "seconds": pa.float64(),
    "render_seconds": pa.float64(),
    "decode_seconds": pa.float64(),
    "tau": pa.float64(),
    "acceptance": pa.float64(),
    "width": pa.int32(),
    "height": pa.int32(),
    "rotation": pa.int32(),
    "dpi": pa.float64(),
    "attempts": pa.int32(),
    "key": pa.int64(),
}
NULLABLE = {"reason", "stop", "tau", "acceptance", "width", "height", "rotation", "dpi", "renderer"}
NULLABLE |= {"model", "revision", "prompt_hash", "engine"}
SCHEMA = pa.schema([pa.field(f.name, TYPES.get(f.name, pa.string()), f.name in NULLABLE) for f in fields(ParsedPage)])


def to_table(rows: Iterable[ParsedPage]) -> pa.Table:
    """Rows as one Arrow table of ``SCHEMA``."""
    return pa.Table.from_pylist([_clean(row.row()) for row in rows], schema=SCHEMA)


def read_rows(path: Path) -> Iterator[ParsedPage]:
    """Rows of a page table in file order, a batch at a time."""
    with path.open("rb") as file:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=256):
            for row in batch.to_pylist():
                yield ParsedPage.from_row(row)


def plain(text: str) -> str:
    """``text`` as valid Unicode: what a file name holds outside UTF-8 becomes a visible escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    return {key: plain(value) if isinstance(value, str) else value for key, value in row.items()}
