"""One shard written: its documents' Markdown and page map, its JSONL, its rows for the failures view, and its counts.

A shard is a task: run again, it writes the same names with the same bytes. Its receipt, written last, says what it
wrote; whoever finds a receipt of the same fingerprint need not write again. One document is in memory at a time.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from jocr import storage
from jocr.archive import dolma
from jocr.archive.layout import DOCUMENTS, JSONL, PARTS, ManifestPage, place
from jocr.archive.ledger import Ledger
from jocr.archive.manifest import read_pages
from jocr.archive.page_map import PAGE_MAP_SCHEMA, Page, map_rows, texts_of
from jocr.archive.samples import Candidate, rank, reduce
from jocr.archive.shards import Shard
from jocr.config import OutputSettings
from jocr.documents import compose
from jocr.errors import LedgerError
from jocr.parsing.table import SCHEMA, to_table
from jocr.records import ParsedPage

BAD = {"failed", "loop", "truncated"}  # statuses of the failures view
BIN = 64  # tokens of a page, a step of the histogram
WRITERS = 8  # Markdown files on their way at once
_SPOOL = 32 << 20


@dataclass
class Written:
    """What a shard came to: all that the report needs of its rows."""

    number: int
    fingerprint: str
    jsonl: str | None  # name of its file, where it has one
    documents: int = 0
    pages: int = 0
    unfinished_documents: int = 0  # some of their pages have no row yet: nothing is written for them
    pending_pages: int = 0
    failures: int = 0
    tokens: dict[int, int] = field(default_factory=Counter)  # decoded pages by tokens // BIN
    attempts: dict[int, int] = field(default_factory=Counter)  # pages by number of attempts
    running: int = 0  # pages with a header or footer
    gallery: list[Candidate] = field(default_factory=list)

    def to_json(self) -> bytes:
        values = {**vars(self), "gallery": [asdict(candidate) for candidate in self.gallery]}
        return json.dumps(values, ensure_ascii=True).encode("ascii")

    @classmethod
    def from_json(cls, data: bytes) -> Written:
        found = json.loads(data)
        for name in ("tokens", "attempts"):
            found[name] = Counter({int(key): value for key, value in found[name].items()})
        return cls(**found | {"gallery": [Candidate(**candidate) for candidate in found["gallery"]]})


def receipt_name(number: int) -> str:
    return f"{number:06d}.json"


def table_name(number: int, kind: str) -> str:
    """``kind``: ``documents`` or ``failures``."""
    return f"{number:06d}.{kind}.parquet"


def read_written(out: str, number: int) -> Written | None:
    """The receipt of a shard; None where it has none, or what is there is no receipt."""
    try:
        return Written.from_json(storage.read_bytes(place(out, PARTS, receipt_name(number))))
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def write_shard(ledger: Ledger, shard: Shard, settings: OutputSettings) -> Written:
    """Write a shard, unless its receipt says that it is written.

    Raises:
        LedgerError: rows are not what their marker says.
        StorageError: the result is not readable or writable.
    """
    earlier = read_written(ledger.out, shard.number)
    if earlier is not None and earlier.fingerprint == shard.fingerprint:
        return earlier
    receipt = Written(shard.number, shard.fingerprint, f"part-{shard.number:06d}.jsonl.gz" if settings.jsonl else None)
    with _Writer(ledger.out, receipt, settings) as writer:
        for pages in _documents(ledger, shard):
            writer.take(pages)
        writer.publish()
    storage.atomic_write(place(ledger.out, PARTS, receipt_name(shard.number)), receipt.to_json())
    return receipt


def _documents(ledger: Ledger, shard: Shard) -> Iterator[list[Page]]:
    """The shard's documents, each as its pages in page order; the rows of one unit are held at a time, besides."""
    for _, pages in groupby(_pages(ledger, shard), key=lambda page: page.manifest.output):
        yield sorted(pages, key=lambda page: page.manifest.index)


def _pages(ledger: Ledger, shard: Shard) -> Iterator[Page]:
    for stretch in shard.stretches:
        commit = stretch.commit
        rows = {row.key: row for row in ledger.rows(commit)} if commit else {}
        for at, page in enumerate(read_pages(stretch.part, stretch.start, stretch.stop), stretch.start):
            row = rows.get(page.key)
            if commit and (row is None or row.page != page.index + 1):
                raise LedgerError(f"{page.uri}: unit {commit.unit} has no row for page {page.index + 1}")
            yield Page(page, row, commit.unit if commit else "", commit.created if commit else "", stretch.part, at)


class _Writer:
    """Takes documents, whole and in order, and writes what ``settings`` ask for."""

    def __init__(self, out: str, receipt: Written, settings: OutputSettings) -> None:
        self._out, self._receipt, self._settings = out, receipt, settings
        self._pool = ThreadPoolExecutor(WRITERS)
        self._waiting: list[Future[None]] = []
        self._lines = _Lines() if settings.jsonl else None
        self._map: list[dict[str, Any]] = []
        self._failures: list[ParsedPage] = []
        self._gallery: list[Candidate] = []

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        if self._lines:
            self._lines.close()

    def take(self, pages: list[Page]) -> None:
        known = [(page, page.row) for page in pages if page.row is not None]
        for page, row in known:
            self._count(page, row)
        if len(known) < len(pages):
            self._receipt.unfinished_documents += 1
            self._receipt.pending_pages += len(pages) - len(known)
            return
        self._receipt.documents += 1
        self._write(pages[0].manifest, pages, [row for _, row in known])

    def _count(self, page: Page, row: ParsedPage) -> None:
        receipt = self._receipt
        receipt.pages += 1
        receipt.attempts[row.attempts] = receipt.attempts.get(row.attempts, 0) + 1
        if row.stop is not None:
            receipt.tokens[row.tokens // BIN] = receipt.tokens.get(row.tokens // BIN, 0) + 1
        if row.status in BAD:
            self._failures.append(row)
        self._gallery.append(
            Candidate(rank(row.key), row.key, row.status, row.collection, page.unit, page.part, page.place)
        )
        if len(self._gallery) > 4096:
            self._gallery = reduce(self._gallery)

    def _write(self, doc: ManifestPage, pages: list[Page], rows: list[ParsedPage]) -> None:
        dropped = self._settings.running_lines == "drop"
        texts = texts_of(rows, drop=dropped)
        self._receipt.running += sum(edges.found for edges in texts)
        if self._settings.markdown:
            markdown, spans = compose([(row, text.shown) for row, text in zip(rows, texts, strict=True)])
            self._map += map_rows([page.manifest for page in pages], rows, texts, markdown, spans)
            self._send(place(self._out, DOCUMENTS, doc.output), markdown.encode("utf-8"))
        if self._lines:
            laid = [(row, text.shown, text.edges) for row, text in zip(rows, texts, strict=True)]
            created = max(page.created for page in pages)
            self._lines.write(dolma.line(doc, laid, created=created, running_lines=self._settings.running_lines))

    def _send(self, uri: str, data: bytes) -> None:
        while len(self._waiting) >= 2 * WRITERS:
            self._waiting.pop(0).result()
        self._waiting.append(self._pool.submit(storage.atomic_write, uri, data))

    def publish(self) -> None:
        """Wait for the documents, then write the tables and the JSONL."""
        for future in self._waiting:
            future.result()
        self._receipt.failures = len(self._failures)
        self._receipt.gallery = reduce(self._gallery)
        number = self._receipt.number
        if self._settings.markdown:
            table = pa.Table.from_pylist(self._map, schema=PAGE_MAP_SCHEMA)
            storage.atomic_write(place(self._out, PARTS, table_name(number, "documents")), _parquet(table))
        failures = to_table(self._failures) if self._failures else SCHEMA.empty_table()
        storage.atomic_write(place(self._out, PARTS, table_name(number, "failures")), _parquet(failures))
        if self._lines and self._receipt.jsonl:
            storage.atomic_write(place(self._out, JSONL, self._receipt.jsonl), self._lines.copy_to)


class _Lines:
    """Gzipped lines, on disk beyond some size; the same lines make the same bytes."""

    def __init__(self) -> None:
        self._spool: IO[bytes] = tempfile.SpooledTemporaryFile(_SPOOL)  # noqa: SIM115 (closed by ``close``)
        self._zip = gzip.GzipFile(fileobj=self._spool, mode="wb", mtime=0, compresslevel=6)

    def write(self, line: bytes) -> None:
        self._zip.write(line)

    def copy_to(self, file: IO[bytes]) -> None:
        self._zip.close()
        self._spool.seek(0)
        shutil.copyfileobj(self._spool, file, 1 << 20)

    def close(self) -> None:
        self._zip.close()
        self._spool.close()


def _parquet(table: pa.Table) -> bytes:
    target = io.BytesIO()
    pq.write_table(table, target, compression="zstd")
    return target.getvalue()


def total(receipts: Iterable[Written]) -> Written:
    """The sum of receipts, as one."""
    whole = Written(0, "", None, tokens=Counter(), attempts=Counter())
    for receipt in receipts:
        for name in ("documents", "pages", "unfinished_documents", "pending_pages", "failures", "running"):
            setattr(whole, name, getattr(whole, name) + getattr(receipt, name))
        whole.tokens = Counter(whole.tokens) + Counter(receipt.tokens)
        whole.attempts = Counter(whole.attempts) + Counter(receipt.attempts)
        whole.gallery = reduce([*whole.gallery, *receipt.gallery])
    return whole
