"""Boxes of marks: the one form in which words, formulas, table cells and blocks travel to the page.

A ``Mark`` is one glyph with its place and the character of the reference it stands for. A ``Box`` has its origin at the
left end of its baseline; y grows downwards. A ``Block`` has its origin at its top left corner, and the ``pos`` of its
marks counts from the start of the block's own Markdown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from jocr.synth.glyphs import Face


class Mark(NamedTuple):
    face: Face
    size: int
    char: str  # what is drawn
    label: str  # what it is called: the character at ``pos`` where there is one
    x: float
    y: float
    pos: int  # index into the Markdown of the enclosing box or block; -1 if no character stands for it


class Rule(NamedTuple):
    """A straight dark line or filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    ink: int = 0  # grey value: 0 black, 255 white


@dataclass(slots=True)
class Box:
    width: float
    up: float  # extent above the baseline, pixels
    down: float  # extent below the baseline, pixels
    marks: list[Mark] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)

    def moved(self, dx: float, dy: float, dpos: int = 0) -> Iterator[Mark]:
        for f, s, c, lab, x, y, p in self.marks:
            yield Mark(f, s, c, lab, x + dx, y + dy, p + dpos if p >= 0 else -1)

    def place(self, other: Box, dx: float, dy: float, dpos: int = 0) -> None:
        """Copy the marks and rules of ``other`` into this box; the extents of this box stay as they are."""
        self.marks.extend(other.moved(dx, dy, dpos))
        self.rules.extend(Rule(x + dx, y + dy, w, h, ink) for x, y, w, h, ink in other.rules)


@dataclass(slots=True)
class Block:
    """A laid out piece of a page: ``markdown`` is exactly what it shows."""

    markdown: str
    width: float
    height: float
    ink: Box
    kind: str = "text"


def shape(face: Face, size: int, text: str, pos: int = 0) -> Box:
    """``text`` set on one line; its characters count from ``pos`` (negative: they have no place in the reference)."""
    box, x, before = Box(0.0, 0.75 * size, 0.25 * size), 0.0, ""
    for i, char in enumerate(text):
        if before:
            x += size * face.kern(before + char)
        box.marks.append(Mark(face, size, char, char, x, 0.0, pos + i if pos >= 0 else -1))
        x += face.glyph(char, size).advance
        before = char
    box.width = x
    return box
