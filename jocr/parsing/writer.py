"""A sink that turns rows into files: documents in plan order, pages in page order, whatever order they arrive in."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jocr import documents
from jocr.parsing.output import PAGES, ResultDirectory
from jocr.parsing.plan import Plan
from jocr.parsing.rendering import Opened
from jocr.parsing.table import SCHEMA, plain, to_table
from jocr.records import STATUSES, DocRef, ParsedPage

GROUP = 256  # rows of a Parquet row group, at least


@dataclass
class _Open:
    doc: DocRef
    n_pages: int | None
    expected: tuple[int, ...]  # page numbers counted from 1
    rows: dict[int, ParsedPage] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.rows) == len(self.expected)


class Writer:
    """Holds the rows of unfinished documents only. Since documents are rendered in plan order, a finished document
    waits for no more than those still in flight before it."""

    def __init__(self, plan: Plan, out: ResultDirectory) -> None:
        self._plan = plan
        self._out = out
        self._open: dict[int, _Open] = {}
        self._next = 0
        self._rows: list[ParsedPage] = []
        with out.writing(PAGES):
            self._file = pa.OSFile(os.fsencode(out.work / PAGES), "w")  # as a string, Arrow takes no name outside UTF-8
            self._parquet = pq.ParquetWriter(self._file, SCHEMA, compression="zstd")
        self.documents: list[dict[str, Any]] = []
        self.statuses: Counter[str] = Counter(dict.fromkeys(STATUSES, 0))
        self.reasons: Counter[str] = Counter()
        self.totals: Counter[str] = Counter()
        self.render_seconds = 0.0
        self.decode_seconds = 0.0
        self._drafted_tokens = 0
        self._rounds = 0.0

    @property
    def tau(self) -> float | None:
        """Tokens per verify round over all pages decoded with a draft; None where there was none."""
        return round(self._drafted_tokens / self._rounds, 3) if self._rounds else None

    def opened(self, document: Opened) -> None:
        pages = tuple(index + 1 for index in document.indices)
        self._open[document.number] = _Open(document.doc, document.n_pages, pages)
        self._flush()

    def page(self, number: int, row: ParsedPage) -> None:
        """Take a row.

        Raises:
            ValueError: a second row for a page, or a row nobody expects: a fault of the runner.
        """
        document = self._open.get(number)
        if document is None:  # it did not open: this row is all there will be
            document = self._open[number] = _Open(DocRef(row.uri, row.sha256, 0, ""), None, (row.page,))
        if row.page not in document.expected or row.page in document.rows or number < self._next:
            raise ValueError(f"{row.uri}: page {row.page} arrived twice or was not asked for")
        document.rows[row.page] = row
        self._count(row)
        self._flush()

    def close(self) -> None:
        """Finish the table.

        Raises:
            StorageError: the disk refuses.
            ValueError: a document or page of the plan has no row: nothing may be lost in silence.
        """
        if self._rows:
            self._write_rows()
        with self._out.writing(PAGES):
            self._parquet.close()
            self._file.close()
        if self._next != len(self._plan.documents):
            missing = self._plan.documents[self._next]
            raise ValueError(f"{missing.uri}: not every page has its row")

    def _flush(self) -> None:
        while (document := self._open.get(self._next)) is not None and document.complete:
            del self._open[self._next]
            self._write(self._next, document)
            self._next += 1

    def _write(self, number: int, document: _Open) -> None:
        planned = self._plan.documents[number]
        parsed = documents.assemble(document.doc, document.rows.values())
        if parsed.pages:
            self._rows.extend(parsed.pages)
            if len(self._rows) >= GROUP:
                self._write_rows()
            self._out.write(planned.output, plain(parsed.markdown).encode("utf-8"))
        self.documents.append(
            {
                "uri": plain(planned.uri),
                "name": plain(planned.name),
                "sha256": document.doc.sha256 or None,
                "kind": document.doc.kind or None,
                "markdown": plain(os.fspath(planned.output)) if parsed.pages else None,
                "pages_in_document": document.n_pages,
                "pages": dict(Counter(row.status for row in parsed.pages)),
            }
        )

    def _write_rows(self) -> None:
        with self._out.writing(PAGES):
            self._parquet.write_table(to_table(self._rows))
        self._rows.clear()

    def _count(self, row: ParsedPage) -> None:
        self.statuses[row.status] += 1
        if row.reason:
            self.reasons[row.reason] += 1
        self.totals["pages"] += 1
        self.totals["tokens"] += row.tokens
        self.totals["decoded"] += row.stop is not None
        if row.tau is not None and row.tau > 0:
            self._drafted_tokens += row.tokens
            self._rounds += row.tokens / row.tau
        self.render_seconds += row.render_seconds
        self.decode_seconds += row.decode_seconds
