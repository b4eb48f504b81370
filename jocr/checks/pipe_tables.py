"""Pipe tables as the table check reads them: any two consecutive lines that hold a pipe are a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jocr.checks.grid import Cell, Grid

_RULE = re.compile(r"[|\-:\s]+")


def pipe_tables(markdown: str) -> list[Grid]:
    """Every run of two or more lines with a pipe, as a grid; first row and first column are headings."""
    return [grid for run in _runs(markdown) if (grid := _grid(run)).cells]


def _runs(markdown: str) -> Iterator[list[str]]:
    run: list[str] = []
    for line in [*markdown.split("\n"), ""]:
        if "|" in line:
            run.append(line)
            continue
        if len(run) > 1:
            yield run
        run = []


def _grid(lines: list[str]) -> Grid:
    grid = Grid()
    bodies = [line for line in map(str.strip, lines) if not _RULE.fullmatch(line)]
    for row, line in enumerate(bodies):
        for column, text in enumerate(_texts(line)):
            grid.add(Cell(text, row, column, heads_column=row == 0, heads_row=column == 0))
    return grid


def _texts(line: str) -> list[str]:
    """The cells of one line; one empty cell at either end is the frame, not a cell."""
    cells = [cell.strip() for cell in line.split("|")]
    if cells and not cells[0]:
        cells = cells[1:]
    if cells and not cells[-1]:
        cells = cells[:-1]
    return cells
