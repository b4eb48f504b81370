"""HTML tables as the table check reads them, from markup of any quality.

Tags nest exactly as written (nothing is closed on the author's behalf): rows are all ``tr`` below a ``table``, so rows
of a nested table count in both; cells are the direct ``td`` and ``th`` children of a row.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from html.parser import HTMLParser

from jocr.checks.grid import MAX_COLSPAN, Cell, Grid
from jocr.errors import UnscoredError
from jocr.markup.plain_tables import spanless_table, split_plain

MAX_VISITS = 200_000  # rows and cells, counted once per table that holds them; beyond, the page is a bomb
MAX_CHARS = 50_000_000  # characters of cell text, counted once per cell that holds them
CLOCK_EVERY = 64
SECONDS = 2.0  # of processor time: html.parser takes quadratic time on some broken markup
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_SILENT = frozenset({"script", "style", "template"})


@dataclass(slots=True)
class _Element:
    tag: str
    attributes: dict[str, str | None]
    parent: _Element | None
    in_head: bool  # inside a thead
    start: int  # count of rows opened before this element
    begin: int  # count of pieces of text before this element
    end: int | None = None  # count of rows opened when it was closed
    finish: int | None = None  # count of pieces of text when it was closed
    cells: list[_Element] = field(default_factory=list)


class _Reader(HTMLParser):
    """Collects tables, rows and the text of cells; an end tag closes back to its start tag, a lone one is ignored."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[_Element] = []
        self.open: dict[str, int] = defaultdict(int)
        self.tables: list[_Element] = []
        self.rows: list[_Element] = []
        self.pieces: list[str] = []  # all text, in order
        self.deadline = time.thread_time() + SECONDS
        self.seen = 0  # pieces of data; the clock costs more than most of them

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.pieces.append("\n")
        if tag in _VOID:
            return
        parent = self.stack[-1] if self.stack else None
        head = tag == "thead" or (parent is not None and parent.in_head)
        element = _Element(tag, dict(attrs), parent, head, len(self.rows), len(self.pieces))
        self.stack.append(element)
        self.open[tag] += 1
        if tag == "table":
            self.tables.append(element)
        elif tag == "tr":
            self.rows.append(element)
        elif tag in ("td", "th") and parent is not None and parent.tag == "tr":
            parent.cells.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open[tag]:
            return
        while self.stack:
            element = self.stack.pop()
            self.open[element.tag] -= 1
            element.end, element.finish = len(self.rows), len(self.pieces)
            if element.tag == tag:
                return

    def handle_data(self, data: str) -> None:
        self.seen += 1
        if self.seen % CLOCK_EVERY == 0 and time.thread_time() > self.deadline:
            raise UnscoredError(f"HTML that takes more than {SECONDS:g} s to read")
        if self.stack and self.stack[-1].tag not in _SILENT:
            self.pieces.append(data)

    def text(self, cell: _Element) -> str:
        """All text below ``cell``, trimmed."""
        return "".join(self.pieces[cell.begin : cell.finish]).strip()


def html_tables(markup: str) -> list[Grid]:
    """Every ``table`` of the page as a grid, in order of appearance.

    Raises:
        UnscoredError: nesting or spans multiply rows, cells or text beyond the caps, or reading takes too long.
    """
    if "<table" not in markup.lower():
        return []
    plain = _plain_grids(markup)
    if plain is not None:
        return plain
    reader = _Reader()
    try:
        reader.feed(markup)
        reader.close()
    except AssertionError:  # html.parser gives up on some broken declarations; what came before stands
        pass
    return _grids(reader)


def _plain_grids(markup: str) -> list[Grid] | None:
    """The grids of a page whose only tags are those of plain tables without spans; None for any other page."""
    sources, rest = split_plain(markup)
    if not sources or rest.count("<") > len(sources):
        return None
    tables = [spanless_table(source) for source in sources]
    grids = []
    for rows in tables:
        if rows is None:
            return None
        grid = Grid()
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                heads = cell.tag == "th"
                grid.add(Cell(cell.text, number, column, heads_column=heads, heads_row=heads))
        if grid.cells:
            grids.append(grid)
    return grids


def _grids(reader: _Reader) -> list[Grid]:
    visits = chars = 0
    grids = []
    for table in reader.tables:
        rows = reader.rows[table.start : table.end]
        visits += len(rows) + sum(len(row.cells) for row in rows)
        if visits > MAX_VISITS:
            raise UnscoredError(f"nested tables hold more than {MAX_VISITS} rows and cells")
        grid = _grid(rows, reader)
        chars += sum(len(cell.text) for cell in grid.cells)
        if chars > MAX_CHARS:
            raise UnscoredError(f"nested cells hold more than {MAX_CHARS} characters")
        if grid.cells:
            grids.append(grid)
    return grids


def _grid(rows: list[_Element], reader: _Reader) -> Grid:
    grid = Grid()
    for number, row in enumerate(rows):
        column = 0
        for cell in row.cells:
            while (number, column) in grid.covered:
                column += 1
            rowspan = min(_span(cell, "rowspan") or len(rows), len(rows) - number)
            colspan = min(_span(cell, "colspan") or 1, MAX_COLSPAN)
            if len(grid.covered) + rowspan * colspan > MAX_VISITS:
                raise UnscoredError(f"spans cover more than {MAX_VISITS} places")
            heads = cell.tag == "th" or row.in_head
            grid.add(Cell(reader.text(cell), number, column, rowspan, colspan, heads_column=heads, heads_row=heads))
            column += colspan
    return grid


def _span(cell: _Element, name: str) -> int:
    """The attribute as a number; 0 means "to the last row" for rows; anything unreadable or negative is 1."""
    try:
        value = int((cell.attributes.get(name) or "1").strip())
    except ValueError:
        return 1
    return value if value >= 0 else 1
