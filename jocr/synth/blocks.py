"""How each kind of page is composed of blocks."""

from __future__ import annotations

import random
from collections.abc import Callable

from jocr.synth.boxes import Block
from jocr.synth.formulas import display
from jocr.synth.mixed import compose_mixed
from jocr.synth.paragraphs import body, paragraph
from jocr.synth.style import Style
from jocr.synth.tables import table
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
    if block is None or block.height > room:
        return []
    return [(block, left, top + rng.uniform(0, max(0.0, min(room - block.height, style.line))))]


def compose_table(rng: random.Random, style: Style, writer: Writer, width: int, height: int) -> Placed:
    """One table, sometimes below a caption; two or more on high pages."""
    left, top, right, bottom = style.margin
    placed: Placed = []
    y, room = float(top), width - left - right
    for _ in range(1 if height < 400 else rng.randint(1, 3)):
        if rng.random() < 0.2 and height >= 200:
            caption = paragraph(writer.sentence().split(), body(style), room, 2)
            if caption is not None and y + caption.height + 4 * style.size < height - bottom:
                placed.append((caption, left, y))
                y += caption.height + rng.uniform(0.5, 1.0) * style.size
        block = table(rng, style, writer, room, height - bottom - y, least=2 if height > 100 else 1)
        if block is None:
            break
        placed.append((block, left + rng.choice((0.0, 0.5, 1.0)) * (room - block.width), y))
        y += block.height + rng.uniform(0.8, 1.8) * style.size
    return _lowered(rng, placed, height - bottom) if any(b.kind == "table" for b, _, _ in placed) else []


def compose_formula(rng: random.Random, style: Style, writer: Writer, width: int, height: int) -> Placed:
    """Display formulas one below the other."""
    left, top, right, bottom = style.margin
    placed: Placed = []
    y, room = float(top), width - left - right
    across = rng.choice((0.0, 0.5, 0.5, 0.5))
    for _ in range(rng.randint(1, max(1, min(6, height // 110)))):
        block = display(rng, style, room, height - bottom - y)
        if block is None:
            break
        placed.append((block, left + across * (room - block.width), y))
        y += block.height + rng.uniform(0.7, 1.6) * style.size
    return _lowered(rng, placed, height - bottom)


def _lowered(rng: random.Random, placed: Placed, floor: float) -> Placed:
    """Move all blocks down by a common random share of the room left below."""
    free = floor - max((y + b.height for b, _, y in placed), default=floor)
    shift = rng.random() * max(0.0, free)
    return [(block, x, y + shift) for block, x, y in placed]


COMPOSERS: dict[str, Composer] = {
    "paragraph": compose_paragraph,
    "table": compose_table,
    "formula": compose_formula,
    "mixed": compose_mixed,
}
