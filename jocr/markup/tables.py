"""Tables on a Markdown page: HTML or pipe tables to a grid of cells with spans, and back.

The HTML reader is a small tag scanner of its own: it is linear in the text, closes what the writer forgot to close, and
never raises on malformed markup. Occupancy follows the HTML standard's "forming a table" (a cell takes the first free
column of its row; rowspans reach down and block later rows).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from jocr.errors import MarkupError

MAX_SPAN = 1000  # as in the HTML standard for colspan; keeps a broken attribute from allocating a huge grid
MAX_CELLS = 200_000  # occupied grid positions; past it the rest of the table is left out

_TAG = re.compile(r"<!--.*?-->|<(/?)([a-zA-Z][^\s<>/]*)([^<>]*)>", re.DOTALL)
_SPAN = {name: re.compile(rf"\b{name}\s*=\s*[\"']?\s*(\d{{1,6}})", re.IGNORECASE) for name in ("rowspan", "colspan")}
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_PIPE_SPLIT = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_ROW_TAGS = {"tr", "thead", "tbody", "tfoot"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; ``row`` and ``col`` are its top-left grid position, counted from 0."""

    text: str
    row: int
    col: int
    rowspan: int
    colspan: int
    header: bool


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells in reading order over ``rows`` x ``cols`` positions."""

    cells: tuple[Cell, ...]
    rows: int
    cols: int

    def occupancy(self) -> dict[tuple[int, int], Cell]:
        """Position -> the cell covering it; where malformed cells overlap, the first one keeps the position."""
        taken: dict[tuple[int, int], Cell] = {}
        for cell in self.cells:
            for r in range(cell.row, min(cell.row + cell.rowspan, self.rows)):
                for c in range(cell.col, cell.col + cell.colspan):
                    taken.setdefault((r, c), cell)
        return taken

    def at(self, r: int, c: int) -> Cell | None:
        """The cell covering (r, c), or None where the table has a hole there."""
        for cell in self.cells:
            if cell.row <= r < cell.row + cell.rowspan and cell.col <= c < cell.col + cell.colspan:
                return cell
        return None

    @property
    def rectangular(self) -> bool:
        """Whether every position is covered by exactly one cell and no cell reaches past the last row."""
        area = sum(cell.rowspan * cell.colspan for cell in self.cells)
        return area == self.rows * self.cols == len(self.occupancy())

    def to_html(self) -> str:
        """``<table>`` without whitespace between the tags; headers as ``th``, line breaks as ``<br>``."""
        by_row: dict[int, list[Cell]] = {}
        for cell in self.cells:
            by_row.setdefault(cell.row, []).append(cell)
        rows = "".join("<tr>" + "".join(map(_cell_html, by_row.get(r, []))) + "</tr>" for r in range(self.rows))
        return f"<table>{rows}</table>"

    def to_markdown(self) -> str:
        """A pipe table with row 0 as its head; a spanned position other than the top-left one is left empty."""
        text = {(cell.row, cell.col): _escape_pipe(cell.text) for cell in self.cells}
        lines = ["| " + " | ".join(text.get((r, c), "") for c in range(self.cols)) + " |" for r in range(self.rows)]
        lines.insert(1, "|" + " --- |" * self.cols)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class TableSpan:
    """A table found on a page: ``markdown[start:end]`` is its source."""

    kind: Literal["html", "pipe"]
    start: int
    end: int
    grid: Grid


def _cell_html(cell: Cell) -> str:
    tag = "th" if cell.header else "td"
    spans = "".join(f' {n}="{v}"' for n, v in (("rowspan", cell.rowspan), ("colspan", cell.colspan)) if v != 1)
    return f"<{tag}{spans}>{html.escape(cell.text, quote=False).replace(chr(10), '<br>')}</{tag}>"


def _escape_pipe(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


@dataclass(slots=True)
class _Builder:
    """The state of one pass over the tags of a table."""

    cells: list[Cell] = field(default_factory=list)
    taken: dict[tuple[int, int], bool] = field(default_factory=dict)
    row: int = -1
    col: int = 0
    in_row: bool = False
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
            for r in range(self.row, self.row + rowspan):
                for c in range(self.col, self.col + colspan):
                    self.taken[r, c] = True
        self.col += colspan
        self.parts = None

    def grid(self) -> Grid:
        self.close_row()
        rows = self.row + 1
        cells = tuple(Cell(c.text, c.row, c.col, min(c.rowspan, rows - c.row), c.colspan, c.header) for c in self.cells)
        return Grid(cells, rows, max((c.col + c.colspan for c in cells), default=0))


def _span(attrs: str, name: str) -> int:
    """The span in ``attrs``; 1 where it is missing or not a number."""
    found = _SPAN[name].search(attrs)
    return min(int(found[1]), MAX_SPAN) if found else 1


def _clean(text: str) -> str:
    lines = (" ".join(line.split()) for line in html.unescape(text).split("\x00"))
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


def parse_html_table(html: str) -> Grid:
    """The first table of ``html`` as a grid; text of a nested table belongs to the cell around it.

    Raises:
        MarkupError: there is no ``<table>`` tag.
    """
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


def parse_pipe_table(lines: str) -> Grid:
    """A pipe table as a grid; row 0 is the head when a delimiter row (``|---|``) follows it; short rows stay ragged.

    Raises:
        MarkupError: no line holds a pipe.
    """
    rows: list[list[str]] = []
    headed = False
    for line in lines.splitlines():
        if not _PIPE_SPLIT.search(line):
            continue
        if len(rows) == 1 and not headed and "-" in line and _DELIMITER.fullmatch(line):
            headed = True
        else:
            rows.append(_pipe_cells(line))
    if not rows:
        raise MarkupError("no pipe table in these lines")
    cells = tuple(Cell(t, r, c, 1, 1, headed and r == 0) for r, row in enumerate(rows) for c, t in enumerate(row))
    return Grid(cells, len(rows), max(map(len, rows)))


def _pipe_cells(line: str) -> list[str]:
    parts = _PIPE_SPLIT.split(line.strip())
    if len(parts) > 1 and not parts[0].strip():
        parts = parts[1:]
    if len(parts) > 1 and not parts[-1].strip():
        parts = parts[:-1]
    return ["\n".join(map(str.strip, _BREAK.split(part.replace("\\|", "|")))).strip() for part in parts]


def find_tables(markdown: str) -> list[TableSpan]:
    """All HTML tables (nested ones: the outermost) and pipe tables outside code fences, in page order.

    An HTML table that is never closed ends at its last row or cell tag. A pipe table needs a delimiter row as its
    second line, or at least two lines that begin and end with a pipe.
    """
    masked = _FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), markdown)
    spans = [TableSpan("html", a, b, parse_html_table(markdown[a:b])) for a, b in _html_extents(masked)]
    chars = list(masked) if spans else None
    if chars is not None:
        for span in spans:
            chars[span.start : span.end] = ("\n" if c == "\n" else " " for c in masked[span.start : span.end])
        masked = "".join(chars)
    spans += [TableSpan("pipe", a, b, parse_pipe_table(markdown[a:b])) for a, b in _pipe_extents(masked)]
    return sorted(spans, key=lambda s: s.start)


_TABLE_EDGE = re.compile(r"<(/?)table\b[^<>]*>", re.IGNORECASE)
_PART_TAG = re.compile(r"</?(?:t[dhr]|thead|tbody|tfoot)\b[^<>]*>", re.IGNORECASE)


def _html_extents(text: str) -> list[tuple[int, int]]:
    extents, depth, start = [], 0, 0
    for tag in _TABLE_EDGE.finditer(text):
        if not tag[1]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                extents.append((start, tag.end()))
    if depth:
        last = max((m.end() for m in _PART_TAG.finditer(text, start)), default=0)
        if last:
            extents.append((start, last))
    return extents


def _pipe_extents(text: str) -> Iterator[tuple[int, int]]:
    run: list[tuple[int, int]] = []
    at = 0
    for line in [*text.splitlines(keepends=True), ""]:
        if _PIPE_SPLIT.search(line):
            run.append((at, at + len(line.rstrip("\r\n"))))
        else:
            if len(run) > 1 and _is_pipe_table([text[a:b] for a, b in run]):
                yield run[0][0], run[-1][1]
            run = []
        at += len(line)


def _is_pipe_table(lines: list[str]) -> bool:
    if "-" in lines[1] and _DELIMITER.fullmatch(lines[1]):
        return True
    return all(line.strip().startswith("|") and line.strip().endswith("|") for line in lines)
