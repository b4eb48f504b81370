"""Words to lines to a block: greedy breaking, alignment, and the reference on one line."""

from __future__ import annotations

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
    align: str = "left"  # left | justify | centre | right
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
    """Fill up to ``max_lines`` lines. Words wider than a line, or that the font lacks, are left out (``skips`` at most)."""
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
    """A block of at most ``max_lines`` lines; None if not one word fits. ``prefix`` precedes the words in Markdown only.

    The Markdown holds the words that were set, joined by blanks, on one line.
    """
    lines = wrap(words, setting, width, max_lines)
    if not lines:
        return None
    ink, pos, x_max = Box(width, 0.0, 0.0), len(prefix), 0.0
    y = max(setting.size * 0.95, max(box.up for _, box in lines[0]))
    texts: list[str] = []
    for number, line in enumerate(lines):
        start = setting.indent if number == 0 else setting.hang
        x, gap = _align(line, start, setting, width, last=number == len(lines) - 1)
        for text, box in line:
            ink.place(box, x, y, pos)
            texts.append(text)
            x += box.width + gap
            pos += len(text) + 1
        x_max = max(x_max, x - gap)
        y += max(setting.pitch, max(b.down for _, b in line) + _up(lines, number + 1) + 2)
    last = y - max(setting.pitch, max(b.down for _, b in lines[-1]) + _up(lines, len(lines)) + 2)
    height = last + max(0.3 * setting.size, max(b.down for _, b in lines[-1]))
    return Block(prefix + " ".join(texts), x_max, height, ink)


def _up(lines: list[list[tuple[str, Box]]], number: int) -> float:
    return max(b.up for _, b in lines[number]) if number < len(lines) else 0.0


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
    if setting.align == "justify" and not last and len(line) > 1:
        stretch = free / (len(line) - 1)
        return start, gap + (stretch if stretch < 1.2 * setting.size else 0.0)
    return start, gap
