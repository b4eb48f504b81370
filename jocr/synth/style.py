"""The look of one page: faces, size, pitch, alignment, margins. Drawn once per page and shared by all of its blocks."""

from __future__ import annotations

import random
from dataclasses import dataclass

from jocr.synth.fonts import families, math_families
from jocr.synth.glyphs import Face, face


@dataclass(slots=True)
class Style:
    family: str
    body: Face
    bold: Face  # headings and header rows
    math: tuple[Face, Face, bool]  # upright, italic, letters from the mathematical alphanumeric block
    size: int  # em of body text, pixels
    pitch: float  # baseline distance in ems
    align: str  # left | justify | centre
    indent: float  # first line, in ems
    margin: tuple[int, int, int, int]  # left, top, right, bottom, pixels
    split: str

    @property
    def line(self) -> float:
        """Baseline distance in pixels."""
        return self.pitch * self.size


def draw_style(rng: random.Random, split: str, width: int, height: int, low: int, high: int, shrink: float) -> Style:
    """A look for a ``width`` x ``height`` page with body text of ``low``..``high`` pixels times ``shrink``."""
    family = rng.choice(families(split))
    math = rng.choice(math_families(split))
    variant = rng.random()
    stem = family.regular
    if variant < 0.07 and family.italic:
        stem = family.italic
    elif variant < 0.14 and family.bold:
        stem = family.bold
    size = max(7, round(rng.randint(low, high) * shrink))
    held = split != "train"
    align = rng.choices(("left", "justify", "centre"), (4, 4, 2) if held else (6, 3, 0))[0]
    indent = rng.choice((0.0, 1.0, 1.5)) if held else rng.choice((0.0, 0.0, 0.0, 2.0))
    return Style(
        family=family.name,
        body=face(stem),
        bold=face(family.bold or family.regular),
        math=(face(math.upright), face(math.italic), math.alphanumeric),
        size=size,
        pitch=rng.uniform(1.25, 1.4) if held else rng.uniform(1.2, 1.45),
        align=align,
        indent=0.0 if align == "centre" else indent,
        margin=_margins(rng, width, height),
        split=split,
    )


def _margins(rng: random.Random, width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, right, bottom; wide enough that a page turned by less than a degree keeps its text."""
    low = min(3 + max(width, height) // 128, min(width, height) // 8)
    high = max(low, min(width, height) // 14)
    left, top, right, bottom = (rng.randint(low, high) for _ in range(4))
    return left, top, right, bottom
