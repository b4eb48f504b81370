"""Pages of several blocks: headings, paragraphs, lists, tables and formulas flowing down one or two columns."""

from __future__ import annotations

import random
from collections.abc import Iterator

from jocr.synth.boxes import Block, Box, shape
from jocr.synth.formulas import display, inline
from jocr.synth.math_layout import Math
from jocr.synth.paragraphs import Inline, Setting, body, paragraph
from jocr.synth.style import Style
from jocr.synth.tables import table
from jocr.synth.writing import Writer

_BULLETS = "•••–▪◦"


def compose_mixed(
    rng: random.Random, style: Style, writer: Writer, width: int, height: int
) -> list[tuple[Block, float, float]]:
    """Blocks in reading order with their places; a block that does not fit is left out."""
    left, top, right, bottom = style.margin
    columns = 2 if width >= 26 * style.size and rng.random() < 0.3 else 1
    gutter = 1.2 * style.size if columns == 2 else 0.0
    room = (width - left - right - gutter) / columns
    flow = _Flow(rng, style, writer, room)
    placed: list[tuple[Block, float, float]] = []
    y = float(top)
    if columns == 2 and rng.random() < 0.5:
        title = flow.heading(width - left - right, level=1)
        if title is not None and title.height < height / 3:
            placed.append((title, left, y))
            y += title.height + flow.gap()
    for column in range(columns):
        placed += flow.fill(left + column * (room + gutter), y, height - bottom)
    return placed


class _Flow:
    """Makes blocks for one page and stacks them into columns of ``room`` pixels."""

    def __init__(self, rng: random.Random, style: Style, writer: Writer, room: float) -> None:
        self.rng, self.style, self.writer, self.room = rng, style, writer, room
        self.space = rng.uniform(0.55, 1.1) * style.size
        self.across = rng.choice((0.0, 0.5, 0.5))  # where formulas and tables stand: left or centre
        self.formulas_inline = rng.random() < 0.3
        self.before = ""

    def gap(self) -> float:
        return self.space * self.rng.uniform(0.9, 1.3)

    def fill(self, x: float, y: float, floor: float) -> list[tuple[Block, float, float]]:
        """Stack blocks from ``y`` down to ``floor``."""
        placed: list[tuple[Block, float, float]] = []
        misses = 0
        while misses < 5 and floor - y > 1.3 * self.style.size:
            kind = self._next(first=not placed) if misses < 2 else "paragraph"
            block = self._make(kind, floor - y)
            if block is None or block.height > floor - y:
                misses += 1
                continue
            free = self.room - block.width
            placed.append((block, x + (self.across * free if block.kind in ("table", "formula") else 0.0), y))
            y += block.height + self.gap()
            self.before = kind
            if len(placed) > 2 and self.rng.random() < 0.04:
                break
        if placed and self.before == "heading":
            placed.pop()  # nothing fitted below it
        return placed

    def _next(self, first: bool) -> str:
        """What comes next; a heading never follows a heading."""
        weights = {"heading": 3.0 if first else 1.3, "paragraph": 4.0, "list": 1.3, "table": 1.4, "formula": 1.4}
        weights.pop(self.before if self.before in ("heading", "list") else "", None)
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def _make(self, kind: str, free: float) -> Block | None:
        if kind == "heading":
            below = 2.2 * self.style.line  # a heading at the foot of a column would head nothing
            block = self.heading(self.room, 1 if self.before == "" else 2)
            return block if block is not None and block.height + below < free else None
        if kind == "list":
            return self.items(free)
        if kind == "table":
            return table(self.rng, self.style, self.writer, self.room, min(free, 9 * self.style.line))
        if kind == "formula":
            return display(self.rng, self.style, self.room, free)
        lines = min(self._lines(free, self.style.line), self.rng.randint(1, 7))
        return paragraph(self._words(), body(self.style), self.room, lines) if lines > 0 else None

    def _lines(self, free: float, pitch: float) -> int:
        return 1 + int((free - 1.25 * self.style.size) // pitch)

    def _words(self) -> Iterator[str | Inline]:
        """Words of whole sentences, or unguessable ones, with a formula here and there."""
        rng = self.rng
        english = rng.random() < 0.5
        budget = rng.randint(1, 4) if english else 1
        for _ in range(budget):
            words = self.writer.sentence().split() if english else self._unguessable()
            for word in words:
                if self.formulas_inline and rng.random() < 0.08:
                    yield _inline(inline(rng, self.style))
                yield word

    def _unguessable(self) -> list[str]:
        return " ".join(self.writer.random_word() for _ in range(self.rng.randint(3, 18))).split()

    def heading(self, room: float, level: int) -> Block | None:
        """``# `` or ``## `` in larger or bolder type."""
        scale = self.rng.uniform(1.3, 1.6) if level == 1 else self.rng.uniform(1.05, 1.3)
        size = round(scale * self.style.size)
        setting = Setting(self.style.bold, size, 1.2 * size, "centre" if self.style.align == "centre" else "left")
        return paragraph(self.writer.title().split(), setting, room, 2, "#" * level + " ")

    def items(self, free: float) -> Block | None:
        """A bullet or numbered list; items of one or two lines."""
        rng, style = self.rng, self.style
        numbered, count = rng.random() < 0.45, rng.randint(2, 5)
        bullet = rng.choice(_BULLETS) if not numbered else ""
        bullet = bullet if style.body.has_all(bullet) else "-"
        first = rng.choice((1, 1, 1, 1, rng.randint(2, 9)))
        hang = (1.7 if numbered else 1.1) * style.size
        ink, y, markdown, wide = Box(self.room, 0.0, 0.0), 0.0, "", 0.0
        for number in range(first, first + count):
            block = self._item(f"{number}." if numbered else bullet, numbered, hang)
            if block is None or y + block.height > free:
                break
            markdown += "\n" if markdown else ""
            ink.place(block.ink, 0.0, y, len(markdown))
            markdown += block.markdown
            y += max(block.height, style.line)
            wide = max(wide, block.width)
        return Block(markdown, wide, y, ink, "list") if markdown.count("\n") else None

    def _item(self, mark: str, numbered: bool, hang: float) -> Block | None:
        rng, style = self.rng, self.style
        words = (self.writer.sentence() if rng.random() < 0.3 else self._short()).split()
        setting = Setting(style.body, style.size, style.line)
        prefix = f"{mark} " if numbered else "- "
        block = paragraph(words, setting, self.room - hang, 2, prefix)
        if block is None:
            return None
        ink = Box(self.room, 0.0, 0.0)
        baseline = block.ink.marks[0].y
        ink.place(shape(style.body, style.size, mark, 0 if numbered or mark == "-" else -1), 0.0, baseline)
        ink.place(block.ink, hang, 0.0)
        return Block(block.markdown, hang + block.width, block.height, ink)

    def _short(self) -> str:
        if self.rng.random() < 0.5:
            return self.writer.title()
        return " ".join(self.writer.random_word() for _ in range(self.rng.randint(1, 4)))


def _inline(math: Math) -> Inline:
    box = Box(math.box.width, math.box.up, math.box.down)
    box.place(math.box, 0.0, 0.0, 1)
    return Inline(f"${math.latex}$", box)
