"""Words to lines to a block: greedy breaking, alignment, and the reference on one line."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jocr.synth.boxes import Block, Box, shape
from jocr.synth.glyphs import Face
from jocr.synth.style import Style


@dataclass(slots=True)
class Inline:
    """A formula among words."""

    latex: str  # with its dollar signs
    box: Box  # positions count from the start of ``latex``


@dataclass(slots=True)
class Setting:
    """How one paragraph is set."""

    face: Face
    size: int
    pitch: float  # pixels between baselines
    align: str = "left"  # left | justify | centre | right | ragged (every line starts where it likes)
    indent: float = 0.0  # first line, pixels
    hang: float = 0.0  # all other lines, pixels


def body(style: Style) -> Setting:
    return Setting(style.body, style.size, style.line, style.align, style.indent * style.size)


def _boxes(words: Iterable[str | Inline], face: Face, size: int) -> Iterator[tuple[str, Box]]:
    for word in words:
        if isinstance(word, Inline):
            yield word.latex, word.box
        elif face.has_all(word):
            yield word, shape(face, size, word)


def wrap(
    words: Iterable[str | Inline], setting: Setting, width: float, max_lines: int, skips: int = 40
) -> list[list[tuple[str, Box]]]:
    """Fill up to ``max_lines`` lines; words too wide (up to ``skips``) or lacking in the font are left out."""
    space = setting.face.glyph(" ", setting.size).advance
    lines: list[list[tuple[str, Box]]] = []
    line: list[tuple[str, Box]] = []
    x = setting.indent
    for text, box in _boxes(words, setting.face, setting.size):
        if line and x + space + box.width > width:
            lines.append(line)
            line, x = [], setting.hang
            if len(lines) == max_lines:
                return lines
        if x + box.width > width:
            skips -= 1
            if skips <= 0:
                break
            continue
        x += box.width + (space if line else 0.0)
        line.append((text, box))
    return [*lines, line] if line else lines


def paragraph(
    words: Iterable[str | Inline], setting: Setting, width: float, max_lines: int, prefix: str = ""
) -> Block | None:
    """A block of at most ``max_lines`` lines; None if not one word fits. ``prefix`` is Markdown only.

    The Markdown holds the words that were set, joined by blanks, on one line.
    """
    lines = wrap(words, setting, width, max_lines)
    if not lines:
        return None
    ink, pos, x_max, y, depth = Box(width, 0.0, 0.0), len(prefix), 0.0, 0.0, 0.0
    texts: list[str] = []
    for number, line in enumerate(lines):
        rise = max(box.up for _, box in line)
        y = max(y + setting.pitch, depth + rise + 2) if number else max(0.95 * setting.size, rise)
        depth = y + max(box.down for _, box in line)
        start = setting.hang if number else setting.indent
        x, gap = _align(line, start, setting, width, last=number == len(lines) - 1)
        for text, box in line:
            ink.place(box, x, y, pos)
            texts.append(text)
            x += box.width + gap
            pos += len(text) + 1
        x_max = max(x_max, x - gap)
    return Block(prefix + " ".join(texts), x_max, max(depth, y + 0.3 * setting.size), ink)


def _align(
    line: list[tuple[str, Box]], start: float, setting: Setting, width: float, last: bool
) -> tuple[float, float]:
    """Where the line starts and the gap between its words."""
    gap = setting.face.glyph(" ", setting.size).advance
    free = width - start - sum(b.width for _, b in line) - gap * (len(line) - 1)
    if setting.align == "centre":
        return start + free / 2, gap
    if setting.align == "right":
        return start + free, gap
    if setting.align == "ragged":
        return start + free * random.Random(" ".join(text for text, _ in line)).random(), gap
    if setting.align == "justify" and not last and len(line) > 1:
        stretch = free / (len(line) - 1)
        return start, gap + (stretch if stretch < 1.2 * setting.size else 0.0)
    return start, gap
