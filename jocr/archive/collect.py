"""A listing on local disk: counted, freed of files reached twice, its output names settled. Memory grows by some 30
bytes a file, whatever their names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from operator import attrgetter
from pathlib import Path

import numpy as np
import pyarrow as pa

from jocr.archive.listing import File
from jocr.archive.names import Digests, OutputNames, digest, stored, to_array, to_list
from jocr.errors import ConfigError
from jocr.parsing.names import SUFFIX, safe_path

CHUNK_FILES, CHUNK_BYTES = 256, 256 << 20  # a chunk is closed by whichever comes first
SPREAD = 64  # a small listing makes at least so many chunks, if it has so many files
_ROWS = 4096
LONGEST_OUTPUT = 768  # bytes of an output's path: room for the result's own below an S3 key's 1,024
_NAMES = [field.name for field in fields(File)]
_values = attrgetter(*_NAMES)
SCHEMA = pa.schema([pa.field(name, pa.int64() if name == "size" else pa.string(), False) for name in _NAMES])


def output_of(name: str) -> str:
    """Relative path of a document's Markdown: the name itself, made safe, and ``.md``.

    Object stores take UTF-8 keys of at most 1,024 bytes, so that a part of the path that is not UTF-8 stands in its
    stored form, and of a path too long the end is its hash, wherever the result lies.
    """
    path = safe_path("/".join(map(stored, name.split("/"))))
    raw = path.encode("utf-8")
    if len(raw) > LONGEST_OUTPUT:
        begin = raw[:LONGEST_OUTPUT].rpartition(b"/")[0].decode("utf-8")
        path = f"{begin}/~{hashlib.sha256(raw).hexdigest()[:24]}"
    return path + SUFFIX


class Listing:
    """What ``collect`` found; iterate it for the files, as often as wanted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.again: np.ndarray = np.empty(0, bool)  # rows that repeat an earlier file

    def __len__(self) -> int:
        return self.count - int(self.again.sum())

    def __iter__(self) -> Iterator[File]:
        for row, file in enumerate(self.everything()):
            if not self.again[row]:
                yield file

    def everything(self) -> Iterator[File]:
        """Also what comes twice."""
        with pa.OSFile(str(self.path)) as source, pa.ipc.open_stream(source) as reader:
            for batch in reader:
                yield from from_table(pa.Table.from_batches([batch]))

    def chunks(self) -> Iterator[list[File]]:
        """Runs of neighbouring files, small enough to be opened by one task."""
        chunk: list[File] = []
        total, most = 0, min(CHUNK_FILES, 1 + len(self) // SPREAD)
        for file in self:
            chunk.append(file)
            total += file.size
            if len(chunk) >= most or total >= CHUNK_BYTES:
                yield chunk
                chunk, total = [], 0
        if chunk:
            yield chunk


def collect(files: Iterable[File], folder: Path, progress: Callable[[int], None] = lambda listed: None) -> Listing:
    """Write a listing to ``folder`` and check it.

    Args:
        files: as ``list_sources`` yields them.
        progress: told the number of files listed so far, now and then and at the end.

    Raises:
        ConfigError: no file at all, or two outputs that are one; the message names both and the remedy.
    """
    listing = Listing(folder / "listing.arrow")
    seen, outputs = Digests(), OutputNames()
    with pa.OSFile(str(listing.path), "wb") as sink, pa.ipc.new_stream(sink, SCHEMA, options=_options()) as writer:
        for batch in _batches(files):
            for file in batch:
                seen.add(file.identity or file.uri)
                if not file.reason:
                    outputs.add(output_of(file.name))
            writer.write_table(to_table(batch))
            listing.count += len(batch)
            progress(listing.count)
    if not listing.count:
        raise ConfigError("the sources hold no file but results of this program; name another source")
    listing.again = _again(listing, seen)
    outputs.check(lambda: ((output_of(file.name), file.uri) for file in listing if not file.reason))
    return listing


def to_table(files: list[File]) -> pa.Table:
    columns = zip(*map(_values, files), strict=True) if files else ([] for _ in _NAMES)
    arrays = [
        pa.array(values, pa.int64()) if name == "size" else to_array(values)
        for name, values in zip(_NAMES, columns, strict=True)
    ]
    return pa.table(arrays, schema=SCHEMA)


def from_table(table: pa.Table) -> list[File]:
    columns = [table[name].to_pylist() if name == "size" else to_list(table[name]) for name in _NAMES]
    return [File(*values) for values in zip(*columns, strict=True)]


def _again(listing: Listing, seen: Digests) -> np.ndarray:
    again = np.zeros(listing.count, bool)
    suspects = seen.repeated()
    if suspects:
        known: set[str] = set()
        for row, file in enumerate(listing.everything()):
            identity = file.identity or file.uri
            if digest(identity) in suspects:
                again[row] = identity in known
                known.add(identity)
    return again


def _batches(files: Iterable[File]) -> Iterator[list[File]]:
    batch: list[File] = []
    for file in files:
        batch.append(file)
        if len(batch) == _ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _options() -> pa.ipc.IpcWriteOptions:
    return pa.ipc.IpcWriteOptions(compression="zstd")
