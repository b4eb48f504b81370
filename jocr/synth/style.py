"""The look of one page: faces, size, pitch, alignment, margins. Drawn once per page and shared by all of its blocks."""

from __future__ import annotations

import random
from dataclasses import dataclass

from jocr.synth.fonts import Family, extra_families, families, math_families
from jocr.synth.glyphs import Face, face


@dataclass(slots=True)
class Style:
    family: str
    body: Face
    bold: Face  # headings and header rows
    math: tuple[Face, Face, bool]  # upright, italic, letters from the mathematical alphanumeric block
    size: int  # em of body text, pixels
    pitch: float  # baseline distance in ems
    align: str  # left | justify | centre | right | ragged
    indent: float  # first line, in ems
    margin: tuple[int, int, int, int]  # left, top, right, bottom, pixels
    split: str

    @property
    def line(self) -> float:
        """Baseline distance in pixels."""
        return self.pitch * self.size


# What is never seen in training stands on both sides of what is: lines that start anywhere, indents of other depths.
HELD_ALIGNMENTS = (("left", "justify", "centre"), (4, 4, 2))
TRAIN_ALIGNMENTS = (("left", "justify", "right", "ragged"), (10, 6, 1, 2))
HELD_INDENTS = (0.0, 1.0, 1.5)
TRAIN_INDENTS = (0.0, 0.0, 0.0, 0.6, 2.0, 2.8)
EXTRA_SHARE = 0.35  # of training pages, drawn in faces that no held-out page uses


def draw_style(rng: random.Random, split: str, width: int, height: int, low: int, high: int, shrink: float) -> Style:
    """A look for a ``width`` x ``height`` page with body text of ``low``..``high`` pixels times ``shrink``."""
    family = _family(rng, split)
    math = rng.choice(math_families(split))
    variant = rng.random()
    stem = family.regular
    held = split != "train"
    # rarer letters are shown more often than they are asked for
    italics, bolds = (0.07, 0.07) if held else (0.24, 0.10)
    if variant < italics and family.italic:
        stem = family.italic
    elif variant < italics + bolds and family.bold:
        stem = family.bold
    size = max(7, round(rng.randint(low, high) * shrink))
    align = rng.choices(*HELD_ALIGNMENTS if held else TRAIN_ALIGNMENTS)[0]
    indent = rng.choice(HELD_INDENTS if held else TRAIN_INDENTS)
    return Style(
        family=family.name,
        body=face(stem),
        bold=face(family.bold or family.regular),
        math=(face(math.upright), face(math.italic), math.alphanumeric),
        size=size,
        pitch=rng.uniform(1.25, 1.4) if held else rng.uniform(1.2, 1.45),
        align=align,
        indent=indent if align in ("left", "justify") else 0.0,
        margin=_margins(rng, width, height),
        split=split,
    )


def _family(rng: random.Random, split: str) -> Family:
    extra = extra_families() if split == "train" else ()
    if extra and rng.random() < EXTRA_SHARE:
        return rng.choice(extra)
    return rng.choice(families(split))


def _margins(rng: random.Random, width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, right, bottom; wide enough that a page turned by less than a degree keeps its text."""
    low = min(3 + max(width, height) // 128, min(width, height) // 8)
    high = max(low, min(width, height) // 14)
    left, top, right, bottom = (rng.randint(low, high) for _ in range(4))
    return left, top, right, bottom
