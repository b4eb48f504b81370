"""Where each page's text lies in its document's Markdown: one row a page, in characters and in bytes.

``start`` and ``end`` count characters (Unicode code points, as Python, Arrow and JavaScript's ``[...text]`` do) of the
Markdown file; ``byte_start`` and ``byte_end`` are the same places in its UTF-8 bytes, for a ranged read. Running lines
that are kept lie before ``header_end`` and from ``footer_start`` on; without any these are ``start`` and ``end``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from jocr.archive.layout import DOCUMENTS, ManifestPage
from jocr.archive.names import stored
from jocr.markup.running_lines import Edges, find_running_lines
from jocr.parsing.table import plain
from jocr.records import ParsedPage

_NAMES = ("uri", "member", "name", "collection", "markdown", "sha256", "status", "reason")
_PLACES = ("start", "end", "header_end", "footer_start", "byte_start", "byte_end")
PAGE_MAP_SCHEMA = pa.schema(
    [pa.field(name, pa.string(), name == "reason") for name in _NAMES]
    + [pa.field("key", pa.int64(), False), pa.field("page", pa.int32(), False)]
    + [pa.field(name, pa.int64(), False) for name in _PLACES]
)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the manifest with its row, where it has one."""

    manifest: ManifestPage
    row: ParsedPage | None
    unit: str
    created: str  # when its unit was committed
    part: str  # URI of the manifest part it stands in
    place: int  # row of that part


@dataclass(frozen=True, slots=True)
class Text:
    """What a page contributes to its document."""

    shown: str
    edges: Edges  # of ``shown``
    found: bool  # the page has a running line, kept or dropped


def texts_of(rows: Sequence[ParsedPage], *, drop: bool) -> list[Text]:
    """Text of each page, with its running lines or without; a failed page has none."""
    full = ["" if row.status == "failed" else plain(row.markdown) for row in rows]
    return [_text(text, edges, drop) for text, edges in zip(full, find_running_lines(full), strict=True)]


def _text(text: str, edges: Edges, drop: bool) -> Text:
    if not (drop and edges.cuts(text)):
        return Text(text, edges, edges.cuts(text))
    body = edges.body(text)
    return Text(body, Edges(0, len(body)), True)


def map_rows(
    pages: Sequence[ManifestPage],
    rows: Sequence[ParsedPage],
    texts: Sequence[Text],
    markdown: str,
    spans: Sequence[tuple[int, int]],
) -> Iterator[dict[str, Any]]:
    """Rows of ``PAGE_MAP_SCHEMA`` for one document, in page order."""
    at = at_bytes = 0
    for page, row, text, (start, end) in zip(pages, rows, texts, spans, strict=True):
        byte_start = at_bytes + len(markdown[at:start].encode("utf-8"))
        at, at_bytes = end, byte_start + len(markdown[start:end].encode("utf-8"))
        yield {
            "uri": stored(page.uri),
            "member": stored(page.member),
            "name": stored(page.name),
            "collection": stored(page.collection),
            "markdown": stored(f"{DOCUMENTS}/{page.output}"),
            "sha256": page.sha256,
            "status": row.status,
            "reason": row.reason,
            "key": page.key,
            "page": row.page,
            "start": start,
            "end": end,
            "header_end": min(end, start + text.edges.header_end),
            "footer_start": min(end, start + text.edges.footer_start),
            "byte_start": byte_start,
            "byte_end": at_bytes,
        }
