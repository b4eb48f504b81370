"""A page prepared for any number of checks: every derived form is computed once, when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Literal

from jocr.checks.formulas import equations
from jocr.checks.grid import Grid
from jocr.checks.html_tables import html_tables
from jocr.checks.normalise import normalise
from jocr.checks.pipe_tables import pipe_tables

MathBackend = Literal["mathml", "boxes"]


class PageText:
    """The Markdown of one page and the forms of it that checks look at.

    Args:
        markdown: the page as the parser wrote it (no front matter).
        math: where glyph positions come from: ``mathml`` (KaTeX in process) or ``boxes`` (Chromium).
        strict: close the known holes of the math check (see :mod:`jocr.checks.math_check`); for rewards.
    """

    def __init__(self, markdown: str, *, math: MathBackend = "mathml", strict: bool = False) -> None:
        self.markdown = markdown
        self.math: MathBackend = math
        self.strict = strict
        self._starts: dict[tuple[str, int], list[int]] = {}

    @cached_property
    def text(self) -> str:
        """The page in comparable form (:func:`jocr.checks.normalise.normalise`)."""
        return normalise(self.markdown)

    @cached_property
    def lowered(self) -> str:
        return self.text.lower()

    def region(self, first_n: int | None, last_n: int | None, case_sensitive: bool = True) -> str:
        """The head, the tail, both joined, or all of the comparable page."""
        text = self.text if case_sensitive else self.lowered
        if first_n and last_n:
            return text[:first_n] + text[-last_n:]
        if first_n:
            return text[:first_n]
        return text[-last_n:] if last_n else text

    @cached_property
    def pipe_tables(self) -> list[Grid]:
        return pipe_tables(self.markdown)

    @cached_property
    def html_tables(self) -> list[Grid]:
        return html_tables(self.markdown)

    @cached_property
    def equations(self) -> list[str]:
        return equations(self.markdown)

    @cached_property
    def bracket_equations(self) -> list[str]:
        r"""The equations in ``\(..\)`` and ``\[..\]`` only."""
        return equations(self.markdown, dollar=False)

    def starts(self, needle: str, max_diffs: int, search: Callable[[str, str, int], list[int]]) -> list[int]:
        """``search(needle, text, max_diffs)``, remembered: order checks of one page share their strings."""
        key = (needle, max_diffs)
        if key not in self._starts:
            self._starts[key] = search(needle, self.text, max_diffs)
        return self._starts[key]
