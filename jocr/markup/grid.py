"""A table as a grid of cells with spans, and its two written forms."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import NamedTuple


class Cell(NamedTuple):
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
        if all(cell.rowspan == cell.colspan == 1 for cell in self.cells):
            places = {(cell.row, cell.col) for cell in self.cells}
            return len(places) == len(self.cells) == self.rows * self.cols
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


def _cell_html(cell: Cell) -> str:
    tag = "th" if cell.header else "td"
    spans = "".join(f' {n}="{v}"' for n, v in (("rowspan", cell.rowspan), ("colspan", cell.colspan)) if v != 1)
    return f"<{tag}{spans}>{html.escape(cell.text, quote=False).replace(chr(10), '<br>')}</{tag}>"


def _escape_pipe(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")
