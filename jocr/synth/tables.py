"""Simple tables: a grid of short texts, set with or without rules, to HTML.

The one canonical form: ``<table><tr><td>a</td><td colspan="2">b</td></tr></table>``, no white space between tags, every
cell a ``td``, cell texts free of ``<``, ``>`` and ``&``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from jocr.synth.boxes import Block, Box, Rule, shape
from jocr.synth.glyphs import Face
from jocr.synth.style import Style
from jocr.synth.writing import Writer

_RULINGS = {
    "train": ("grid", "grid", "rows", "header", "none", "frame"),
    "held": ("grid", "booktabs", "columns", "none"),
}
_HOLES = {"train": (0.0, 0.0, 0.12, 0.25), "held": (0.0, 0.0, 0.0, 0.12)}  # share of empty cells
_LEFT_COLUMNS = ("noun", "noun", "name", "place", "phrase", "code", "invented", "year")
_COLUMNS = ("int", "int", "decimal", "money", "percent", "year", "noun", "adjective", "code", "number")
_MARKS = ("yes", "no", "a", "b", "c", "x", "A", "B", "up", "II", "+", "-", "n/a", "ok", "III", "%")
_SHORT = ("sign", "mark", "mark")  # where columns are narrow
_NUMERIC = {"int", "decimal", "money", "percent", "number", "sign"}


@dataclass(slots=True)
class Cell:
    text: str
    span: int = 1
    align: str = "left"
    box: Box | None = None
    column: int = 0  # index of its first column


@dataclass(slots=True)
class _Geometry:
    widths: list[float]
    row_height: float
    pad: float
    size: int


def html(rows: list[list[Cell]]) -> tuple[str, list[list[int]]]:
    """The canonical HTML of the rows, and where each cell's text starts in it."""
    parts, starts, at = ["<table>"], [], 7
    for row in rows:
        parts.append("<tr>")
        at += 4
        line = []
        for cell in row:
            tag = "<td>" if cell.span == 1 else f'<td colspan="{cell.span}">'
            line.append(at + len(tag))
            parts.append(f"{tag}{cell.text}</td>")
            at += len(parts[-1])
        starts.append(line)
        parts.append("</tr>")
        at += 5
    return "".join([*parts, "</table>"]), starts


def table(
    rng: random.Random, style: Style, writer: Writer, width: float, height: float, least: int = 2
) -> Block | None:
    """A table of ``least`` or more rows that fits ``width`` x ``height`` pixels; None if no such table was found."""
    size = style.size
    for _ in range(12):
        block = _attempt(rng, style, writer, width, height, size, least)
        if block is not None:
            return block
        size = max(7, round(size * 0.93))
    return None


def _attempt(
    rng: random.Random, style: Style, writer: Writer, width: float, height: float, size: int, least: int
) -> Block | None:
    pad = rng.uniform(0.2, 0.45) * size
    row_height = rng.uniform(1.3, 1.75) * size
    n_rows = min(int((height - 4) // row_height), rng.choice((2, 3, 3, 4, 4, 5)) if height < 400 else rng.randint(2, 8))
    n_columns = rng.randint(2, 4) if width < 400 else rng.randint(2, 6)
    if n_rows < least:
        return None
    header = style.bold if rng.random() < 0.4 else style.body
    for columns in sorted([*range(2, n_columns + 1)] * 3, reverse=True):
        rows = _content(rng, writer, n_rows, columns, narrow=width < 4.5 * size * columns, split=style.split)
        if not all(style.body.has_all(c.text) and header.has_all(c.text) for row in rows for c in row):
            continue
        widths = _measure(rows, columns, style.body, header, size, pad)
        spare = width - 4 - sum(widths)
        if spare >= 0:
            extra = rng.choice((0.0, 0.3, 0.8, 1.0)) * min(spare / columns, 2.5 * size)
            geometry = _Geometry([w + extra for w in widths], row_height, pad, size)
            return _draw(rng, style, rows, geometry)
    return None


def _content(
    rng: random.Random, writer: Writer, n_rows: int, n_columns: int, narrow: bool, split: str
) -> list[list[Cell]]:
    kinds = [rng.choice(_LEFT_COLUMNS)] + [rng.choice(_COLUMNS) for _ in range(n_columns - 1)]
    if narrow:
        kinds = [rng.choice((*_SHORT, kind, kind)) for kind in kinds]
    centre = rng.random() < 0.15
    holes = rng.choice(_HOLES["train" if split == "train" else "held"])
    rows: list[list[Cell]] = []
    for r in range(n_rows):
        row = []
        for c, kind in enumerate(kinds):
            head = r == 0 and n_rows > 1
            text = _heading(rng, writer, kind) if head else "" if rng.random() < holes else _text(rng, writer, kind)
            align = "centre" if centre else "right" if kind in _NUMERIC else "left"
            row.append(Cell(text, align=align, column=c))
        rows.append(row)
    if not any(cell.text for row in rows for cell in row):
        rows[0][0].text = writer.code()
    if n_columns > 2 and rng.random() < 0.07:
        _span(rng, rows, n_columns)
    return rows


def _span(rng: random.Random, rows: list[list[Cell]], n_columns: int) -> None:
    """Join some neighbouring cells of one row."""
    row = rows[rng.choice((0, 0, rng.randrange(len(rows))))]
    first, span = rng.randrange(n_columns - 1), 2 if n_columns == 3 or rng.random() < 0.7 else 3
    span = min(span, n_columns - first)
    row[first] = Cell(row[first].text or "-", span, "centre", column=first)
    del row[first + 1 : first + span]


def _heading(rng: random.Random, writer: Writer, kind: str) -> str:
    r = rng.random()
    if r < 0.08:
        return ""
    if kind in _NUMERIC and r < 0.3:
        return rng.choice(("No.", "%", "kg", "cm", "$", "Total", "Sum", "Year", "km", "Qty", "Rate", "Price", "Size"))
    if kind in _SHORT and rng.random() < 0.6:
        return rng.choice("ABCDEFGHKLMNPQRSTXYZ") + rng.choice(("", "", "1", "2", "."))
    if r < 0.4:
        return writer.invented().capitalize()
    return rng.choice((*writer.lex.nouns, *writer.lex.adjectives)).capitalize()


def _text(rng: random.Random, writer: Writer, kind: str) -> str:
    lex = writer.lex
    if kind == "phrase":
        return f"{rng.choice(lex.adjectives)} {rng.choice(lex.nouns)}"
    if kind in ("noun", "adjective", "name", "place"):
        word = rng.choice(
            {"noun": lex.nouns, "adjective": lex.adjectives, "name": lex.names, "place": lex.places}[kind]
        )
        return word.capitalize() if rng.random() < 0.5 else word
    if kind == "code":
        return writer.code(signs=False)
    if kind == "mark":
        return rng.choice(
            (rng.choice(_MARKS), writer.code(signs=False)[:4], *(rng.choice(lex.words)[:4] for _ in "ab"))
        )
    if kind == "sign":
        return str(rng.randint(0, 99))
    if kind == "invented":
        return writer.invented()
    if kind == "year":
        return str(rng.randint(1500, 2035))
    if kind == "int":
        return rng.choice((str, "{:,}".format))(rng.randint(0, 10 ** rng.randint(1, 5)))
    if kind == "decimal":
        return f"{rng.uniform(-1 if rng.random() < 0.2 else 0, 1) * 10 ** rng.randint(0, 3):.{rng.randint(1, 2)}f}"
    if kind == "money":
        return f"{rng.choice('$€£')}{rng.random() * 10 ** rng.randint(1, 4):.2f}"
    if kind == "percent":
        return f"{rng.random() * 100:.{rng.randint(0, 1)}f}%"
    return writer.number()


def _measure(rows: list[list[Cell]], n: int, body: Face, header: Face, size: int, pad: float) -> list[float]:
    """Shape every cell; the width each column needs, padding included."""
    widths = [1.2 * size] * n
    for r, row in enumerate(rows):
        for cell in row:
            cell.box = shape(header if r == 0 else body, size, cell.text)
            if cell.span == 1:
                widths[cell.column] = max(widths[cell.column], cell.box.width + 2 * pad)
    for row in rows:
        for cell in row:
            if cell.span > 1 and cell.box is not None:
                spanned = slice(cell.column, cell.column + cell.span)
                lack = cell.box.width + 2 * pad - sum(widths[spanned])
                if lack > 0:
                    widths[spanned] = [w + lack / cell.span for w in widths[spanned]]
    return widths


def _draw(rng: random.Random, style: Style, rows: list[list[Cell]], g: _Geometry) -> Block:
    markdown, starts = html(rows)
    edges = [2.0]
    for w in g.widths:
        edges.append(edges[-1] + w)
    ink = Box(edges[-1] + 2, 0.0, 0.0)
    baseline = (g.row_height - g.size) / 2 + 0.78 * g.size
    for r, row in enumerate(rows):
        for cell, start in zip(row, starts[r], strict=True):
            left, right = edges[cell.column] + g.pad, edges[cell.column + cell.span] - g.pad
            if cell.box is not None:
                free = right - left - cell.box.width
                x = left + {"left": 0.0, "centre": free / 2, "right": free}[cell.align]
                ink.place(cell.box, x, 2 + r * g.row_height + baseline, start)
    ink.rules = _rules(rng, style.split, rows, edges, g.row_height)
    return Block(markdown, edges[-1] + 2, len(rows) * g.row_height + 4, ink, "table")


def _rules(rng: random.Random, split: str, rows: list[list[Cell]], edges: list[float], row_height: float) -> list[Rule]:
    """The lines of one ruling style; vertical lines stop at joined cells."""
    ruling = rng.choice(_RULINGS["train" if split == "train" else "held"])
    ink, thick = rng.choice((0, 0, 60, 130)), rng.choice((1, 1, 2))
    left, right, n = edges[0], edges[-1], len(rows)
    across = {
        "grid": range(n + 1), "rows": range(n + 1), "frame": (0, n), "header": (1,), "booktabs": (0, 1, n),
        "columns": (), "none": (),
    }[ruling]  # fmt: skip
    rules = [
        Rule(left, 2 + i * row_height - 1, right - left, thick + (ruling == "booktabs" and i != 1), ink) for i in across
    ]
    if ruling in ("grid", "frame", "columns"):
        for r, row in enumerate(rows):
            starts = {cell.column for cell in row}
            for c, x in enumerate(edges):
                outer = c in (0, len(edges) - 1)
                if (outer and ruling != "columns") or (not outer and c in starts and ruling != "frame"):
                    rules.append(Rule(x - 1, 2 + r * row_height - 1, thick, row_height + 1, ink))
    if rng.random() < 0.12:
        shaded = range(1, n, 2) if split != "train" else (0,)
        rules = [Rule(left, 2 + i * row_height, right - left, row_height, 222) for i in shaded] + rules
    return rules
