"""The ``table`` check: a cell and, where asked, what stands next to it or heads it."""

from __future__ import annotations

from dataclasses import dataclass, field

from rapidfuzz import fuzz

from jocr.checks.base import PASS, Check, Verdict
from jocr.checks.grid import Grid
from jocr.checks.normalise import normalise
from jocr.checks.page import PageText
from jocr.checks.text_checks import snippet

RELATIONS = ("up", "down", "left", "right", "top_heading", "left_heading")
FLOOR = 0.5  # however many edits are tolerated, at least this much of a cell must agree


@dataclass(frozen=True, kw_only=True)
class Table(Check):
    """Some table holds a cell like ``cell`` for which every requested relation holds.

    ``up`` .. ``right`` name an immediate neighbour, ``top_heading`` and ``left_heading`` any heading of the cell. A
    text agrees where ``ratio / 100 >= max(0.5, 1 - max_diffs / length)``.
    """

    kind = "table"
    cell: str
    up: str | None = ""
    down: str | None = ""
    left: str | None = ""
    right: str | None = ""
    top_heading: str | None = ""
    left_heading: str | None = ""
    ignore_markdown_tables: bool = False
    needle: str = field(init=False, repr=False, compare=False, default="")
    relations: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False, default=())

    def prepare(self) -> None:
        self.keep("needle", normalise(self.cell))
        asked = ((name, normalise(getattr(self, name) or "")) for name in RELATIONS)
        self.keep("relations", tuple((name, text) for name, text in asked if text))

    def run(self, page: PageText) -> Verdict:
        grids = [*([] if self.ignore_markdown_tables else page.pipe_tables), *page.html_tables]
        if not grids:
            return Verdict(False, "the page holds no table")
        reasons: list[str] = []
        for grid in grids:
            for index, cell in enumerate(grid.cells):
                if self._agrees(self.needle, normalise(cell.text)):
                    failed = next((r for r in self.relations if not self._related(grid, index, *r)), None)
                    if failed is None:
                        return PASS
                    reasons.append(self._reason(grid, index, *failed))
        if not reasons:
            return Verdict(False, f"no cell like {snippet(self.cell)} in {len(grids)} table(s)")
        return Verdict(False, f"cell {snippet(self.cell)} found, but " + "; ".join(dict.fromkeys(reasons[:3])))

    def _related(self, grid: Grid, index: int, relation: str, expected: str) -> bool:
        return any(self._agrees(expected, normalise(grid.cells[i].text)) for i in related(grid, index, relation))

    def _reason(self, grid: Grid, index: int, relation: str, expected: str) -> str:
        seen = [snippet(grid.cells[i].text) for i in related(grid, index, relation)[:4]]
        return f"{relation} of it should be {snippet(expected)} and is {', '.join(seen) or 'not there'}"

    def _agrees(self, expected: str, text: str) -> bool:
        if text == expected:
            return True
        threshold = max(FLOOR, 1.0 - self.max_diffs / len(expected)) if expected else 1.0
        return threshold < 1.0 and fuzz.ratio(expected, text) / 100 >= threshold


def related(grid: Grid, index: int, relation: str) -> list[int]:
    """The cells that stand in ``relation`` (a member of RELATIONS) to cell ``index``."""
    if relation == "top_heading":
        return grid.headings(index, "up")
    if relation == "left_heading":
        return grid.headings(index, "left")
    return grid.neighbours(index, relation)  # type: ignore[arg-type]
