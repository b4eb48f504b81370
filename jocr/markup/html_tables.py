"""An HTML table as a grid.

The reader is a small tag scanner of its own: it is linear in the text, closes what the writer forgot to close, and
never raises on malformed markup. Occupancy follows the HTML standard's "forming a table": a cell takes the first free
column of its row; rowspans reach down and block later rows.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from jocr.errors import MarkupError
from jocr.markup.grid import Cell, Grid
from jocr.markup.plain_tables import spanless_table

MAX_SPAN = 1000  # as in the HTML standard for colspan; keeps a broken attribute from allocating a huge grid
MAX_CELLS = 200_000  # occupied grid positions; past it the rest of the table is left out
_TAG = re.compile(r"<!--.*?-->|<(/?)([a-zA-Z][^\s<>/]*)([^<>]*)>", re.DOTALL)
_SPAN = {name: re.compile(rf"\b{name}\s*=\s*[\"']?\s*(\d{{1,6}})", re.IGNORECASE) for name in ("rowspan", "colspan")}
_ROW_TAGS = {"tr", "thead", "tbody", "tfoot"}


@dataclass(slots=True)
class _Builder:
    """The state of one pass over the tags of a table."""

    cells: list[Cell] = field(default_factory=list)
    taken: dict[tuple[int, int], bool] = field(default_factory=dict)
    row: int = -1
    col: int = 0
    in_row: bool = False
    tall: bool = False  # whether any cell spans rows
    in_head: bool = False
    parts: list[str] | None = None  # text of the open cell
    attrs: tuple[int, int, bool] = (1, 1, False)

    def open_row(self) -> None:
        self.close_cell()
        self.row += 1
        self.col = 0
        self.in_row = True

    def close_row(self) -> None:
        self.close_cell()
        self.in_row = False

    def open_cell(self, tag: str, attrs: str) -> None:
        self.close_cell()
        if not self.in_row:
            self.open_row()
        rowspan = _span(attrs, "rowspan") or MAX_SPAN  # 0: down to the last row
        self.attrs = (rowspan, _span(attrs, "colspan") or 1, tag == "th" or self.in_head)
        self.parts = []

    def close_cell(self) -> None:
        if self.parts is None:
            return
        rowspan, colspan, header = self.attrs
        while (self.row, self.col) in self.taken:
            self.col += 1
        if len(self.taken) + rowspan * colspan > MAX_CELLS:
            rowspan = colspan = 1
        if len(self.taken) < MAX_CELLS:
            self.cells.append(Cell(_clean("".join(self.parts)), self.row, self.col, rowspan, colspan, header))
            if rowspan == colspan == 1:
                self.taken[self.row, self.col] = True
            else:
                self.tall = self.tall or rowspan > 1
                rows, cols = range(self.row, self.row + rowspan), range(self.col, self.col + colspan)
                self.taken.update(((r, c), True) for r in rows for c in cols)
        self.col += colspan
        self.parts = None

    def grid(self) -> Grid:
        self.close_row()
        rows = self.row + 1
        cells = tuple(self.cells)
        if self.tall:
            cells = tuple(c._replace(rowspan=min(c.rowspan, rows - c.row)) for c in cells)
        return Grid(cells, rows, max((c.col + c.colspan for c in cells), default=0))


def _span(attrs: str, name: str) -> int:
    """The span in ``attrs``; 1 where it is missing or not a number."""
    found = _SPAN[name].search(attrs) if attrs else None
    return min(int(found[1]), MAX_SPAN) if found else 1


def _clean(text: str) -> str:
    if "&" in text:
        text = html.unescape(text)
    if "\x00" not in text:
        return " ".join(text.split())
    lines = (" ".join(line.split()) for line in text.split("\x00"))
    return "\n".join(lines).strip()


def _tokens(source: str) -> Iterator[tuple[str, str, str]]:
    """(kind, name or text, attributes) with kind in ``text | open | close``; comments vanish."""
    at = 0
    for tag in _TAG.finditer(source):
        if tag.start() > at:
            yield "text", source[at : tag.start()], ""
        at = tag.end()
        if tag[2]:
            yield ("close" if tag[1] else "open"), tag[2].lower(), tag[3]
    if at < len(source):
        yield "text", source[at:], ""


@lru_cache(maxsize=64)
def parse_html_table(html: str) -> Grid:
    """The first table of ``html`` as a grid; text of a nested table belongs to the cell around it.

    Raises:
        MarkupError: there is no ``<table>`` tag.
    """
    plain = spanless_table(html)
    if plain is not None:
        placed = ((r, c, cell) for r, row in enumerate(plain) for c, cell in enumerate(row))
        cells = tuple(Cell(" ".join(cell.text.split()), r, c, 1, 1, cell.tag == "th") for r, c, cell in placed)
        return Grid(cells, len(plain), max(map(len, plain), default=0))
    builder, depth = _Builder(), 0
    for kind, name, attrs in _tokens(html.replace("\x00", "")):
        if kind == "text":
            if builder.parts is not None:
                builder.parts.append(name)
        elif name == "table":
            depth += 1 if kind == "open" else -1
            if depth == 0 and kind == "close":
                break
            depth = max(depth, 0)
        elif depth == 1:
            _table_tag(builder, kind, name, attrs)
        if kind != "text" and depth > 1 and builder.parts is not None:
            builder.parts.append(" ")
    else:
        if depth == 0:
            raise MarkupError("no <table> in this HTML")
    return builder.grid()


def _table_tag(builder: _Builder, kind: str, name: str, attrs: str) -> None:
    if name in ("td", "th"):
        if kind == "open":
            builder.open_cell(name, attrs)
        else:
            builder.close_cell()
    elif name in _ROW_TAGS:
        if name != "tr":
            builder.close_row()
            builder.in_head = name == "thead" and kind == "open"
        elif kind == "open":
            builder.open_row()
        else:
            builder.close_row()
    elif builder.parts is not None and name in ("br", "p", "div", "li"):
        builder.parts.append("\x00" if name == "br" else " ")
