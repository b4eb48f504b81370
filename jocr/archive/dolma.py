"""A document as one line of JSON in the form that Dolma and olmOCR use: its text, and which part of it each page is.

``text[start:end]`` (in characters) is a page's text for ``[start, end, page]`` of ``attributes.pdf_page_numbers``; a
page without text has an empty span. Every line is valid JSON, whatever names or text hold.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from jocr.archive.layout import ManifestPage
from jocr.archive.names import stored
from jocr.markup.running_lines import Edges
from jocr.parsing.table import plain
from jocr.records import ParsedPage

SOURCE = "jocr"
BETWEEN = "\n\n"  # pages with text


def line(
    doc: ManifestPage, pages: Sequence[tuple[ParsedPage, str, Edges]], *, created: str, running_lines: str
) -> bytes:
    """The document's line, with its line feed.

    Args:
        doc: the manifest's row of any of its pages.
        pages: row, text as it is to appear, and the running lines in that text, in page order.
        created: when the last of it was read, ISO 8601.
        running_lines: ``keep`` or ``drop``: what was done to the texts.
    """
    text, spans, running = _laid_out(pages)
    rows = [row for row, _, _ in pages]
    record = {
        "id": identity(doc),
        "text": text,
        "source": SOURCE,
        "added": _zulu(created),
        "created": _zulu(created),
        "metadata": {**_source(doc), **_reading(rows), "running_lines": running_lines},
        "attributes": {
            "pdf_page_numbers": spans,
            "page_status": [[start, end, row.status] for (start, end, _), row in zip(spans, rows, strict=True)],
            "running_lines": running,
        },
    }
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"


def identity(doc: ManifestPage) -> str:
    """A document's id, 40 hex digits: where it lies and what its bytes are."""
    parts = (doc.uri, doc.member, doc.sha256 or doc.etag)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _laid_out(pages: Sequence[tuple[ParsedPage, str, Edges]]) -> tuple[str, list[list[int]], list[list[Any]]]:
    """The joined text, the pages' spans, and the spans of running lines kept in it."""
    pieces: list[str] = []
    spans, running = [], []
    at = 0
    for row, text, edges in pages:
        text = plain(text)
        if text and at:
            pieces.append(BETWEEN)
            at += len(BETWEEN)
        spans.append([at, at + len(text), row.page])
        if edges.header_end:
            running.append([at, at + edges.header_end, "header"])
        if edges.footer_start < len(text):
            running.append([at + edges.footer_start, at + len(text), "footer"])
        pieces.append(text)
        at += len(text)
    return "".join(pieces), spans, running


def _source(doc: ManifestPage) -> dict[str, Any]:
    names = {name: stored(getattr(doc, name)) for name in ("uri", "member", "name", "collection", "etag", "output")}
    return {**names, "sha256": doc.sha256, "bytes": doc.size, "kind": doc.kind, "pages": doc.pages}


def _reading(rows: Sequence[ParsedPage]) -> dict[str, Any]:
    first = next((row for row in rows if row.model), rows[0])
    return {
        "pages_by_status": dict(Counter(row.status for row in rows)),
        "tokens": sum(row.tokens for row in rows),
        "model": first.model,
        "revision": first.revision,
        "prompt_hash": first.prompt_hash,
        "engine": first.engine,
    }


def _zulu(moment: str) -> str:
    return moment.replace("+00:00", "Z")
