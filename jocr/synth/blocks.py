"""How each kind of page is composed of blocks."""

from __future__ import annotations

import random
from collections.abc import Callable

from jocr.synth.boxes import Block
from jocr.synth.paragraphs import body, paragraph
from jocr.synth.style import Style
from jocr.synth.writing import Writer

Placed = list[tuple[Block, float, float]]  # a block and its top left corner on the page, in reading order
Composer = Callable[[random.Random, Style, Writer, int, int], Placed]


def compose_paragraph(rng: random.Random, style: Style, writer: Writer, width: int, height: int) -> Placed:
    """One paragraph that fills the page (sometimes less), half English, half unguessable."""
    left, top, right, bottom = style.margin
    room = height - top - bottom
    lines = 1 + int((room - 1.25 * style.size) // style.line)
    if lines < 1:
        return []
    if rng.random() < 0.12:
        lines = rng.randint(1, lines)
    block = paragraph(writer.words(rng.random() < 0.5), body(style), width - left - right, lines)
    if block is None:
        return []
    return [(block, left, top + rng.uniform(0, max(0.0, min(room - block.height, style.line))))]


COMPOSERS: dict[str, Composer] = {"paragraph": compose_paragraph}
