"""A table as cells that know their neighbours: the form the table check asks its questions in.

A cell that spans rows or columns has a *set* of neighbours on each side: per spanned row (column) the first other cell
met in that direction. Places no cell covers are stepped over; a cell without text is a neighbour like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["up", "down", "left", "right"]
STEPS: dict[Direction, tuple[int, int]] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
MAX_COLSPAN = 1000  # the limit HTML itself sets


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its text, the place of its top-left corner (rows and columns from 0), its spans."""

    text: str
    row: int
    column: int
    rowspan: int = 1
    colspan: int = 1
    heads_column: bool = False  # counts as a heading for the cells below
    heads_row: bool = False  # counts as a heading for the cells to the right


@dataclass(slots=True)
class Grid:
    """Cells in reading order and the map from (row, column) to the cell that covers it."""

    cells: list[Cell] = field(default_factory=list)
    covered: dict[tuple[int, int], int] = field(default_factory=dict)
    rows: int = 0
    columns: int = 0

    def add(self, cell: Cell) -> None:
        """Append ``cell`` and cover the free places of its span."""
        for row in range(cell.row, cell.row + cell.rowspan):
            for column in range(cell.column, cell.column + cell.colspan):
                self.covered.setdefault((row, column), len(self.cells))
        self.cells.append(cell)
        self.rows = max(self.rows, cell.row + cell.rowspan)
        self.columns = max(self.columns, cell.column + cell.colspan)

    def neighbours(self, index: int, direction: Direction) -> list[int]:
        """Indices of the cells that lie directly beyond cell ``index`` in one direction, without repeats."""
        found: dict[int, None] = {}
        for row, column in self._edge(self.cells[index], direction):
            neighbour = self._first(index, row, column, direction)
            if neighbour is not None:
                found[neighbour] = None
        return list(found)

    def headings(self, index: int, direction: Literal["up", "left"]) -> list[int]:
        """Every heading cell met walking from the cell in ``direction``; without any, the cells the walk ends at."""
        seen, queue, ends, heads = {index}, [index], [], []
        while queue:
            current = queue.pop(0)
            beyond = self.neighbours(current, direction)
            if not beyond and current != index:
                ends.append(current)
            for cell in beyond:
                if cell not in seen:
                    seen.add(cell)
                    queue.append(cell)
                    if self.cells[cell].heads_column if direction == "up" else self.cells[cell].heads_row:
                        heads.append(cell)
        return heads or ends

    def _edge(self, cell: Cell, direction: Direction) -> Iterable[tuple[int, int]]:
        """The places of the cell's outermost row or column on the side looked at."""
        rows = range(cell.row, cell.row + cell.rowspan)
        columns = range(cell.column, cell.column + cell.colspan)
        if direction in ("up", "down"):
            row = rows[0] if direction == "up" else rows[-1]
            return ((row, column) for column in columns)
        column = columns[0] if direction == "left" else columns[-1]
        return ((row, column) for row in rows)

    def _first(self, index: int, row: int, column: int, direction: Direction) -> int | None:
        down, right = STEPS[direction]
        row, column = row + down, column + right
        while 0 <= row < self.rows and 0 <= column < self.columns:
            met = self.covered.get((row, column))
            if met is not None and met != index:
                return met
            row, column = row + down, column + right
        return None
