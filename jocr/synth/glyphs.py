"""Glyph bitmaps, advances and kerning of one font file, cached by size and character."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from jocr.synth.fonts import font_files

_KERN_SIZE = 100
PHASES = 2  # horizontal sub-pixel positions that are cached
_ABSENT = "\ufffe"  # a noncharacter: draws the font's box for missing glyphs


@dataclass(frozen=True, slots=True)
class Glyph:
    """One drawn character.

    ``bitmap`` is uint8 (h, w) with 255 for paper, or None for blanks; ``left`` and ``top`` place it relative to the
    pen on the baseline (top is negative above it); ``advance`` moves the pen. All in pixels.
    """

    bitmap: np.ndarray | None
    left: int
    top: int
    advance: float


class Face:
    """One font file. Not safe for use by several threads."""

    def __init__(self, stem: str) -> None:
        self.name = stem
        self._path = str(font_files()[stem])
        self._fonts: dict[int, ImageFont.FreeTypeFont] = {}
        self._glyphs: dict[tuple[str, int, int], Glyph] = {}
        self._kerns: dict[str, float] = {}
        self._known: dict[str, bool] = {}
        self._good: set[str] = set()  # characters known to be drawn

    def font(self, size: int) -> ImageFont.FreeTypeFont:
        if size not in self._fonts:
            self._fonts[size] = ImageFont.truetype(self._path, size)
        return self._fonts[size]

    def glyph(self, char: str, size: int, phase: int = 0) -> Glyph:
        """The glyph of ``char`` at an em size of ``size`` pixels, shifted right by ``phase / PHASES`` of a pixel."""
        key = (char, size, phase)
        found = self._glyphs.get(key)
        if found is None:
            found = self._glyphs[key] = self._draw(char, size, phase / PHASES)
        return found

    def _draw(self, char: str, size: int, shift: float) -> Glyph:
        font, pad = self.font(size), size
        advance = font.getlength(char)
        image = Image.new("L", (math.ceil(advance) + 2 * pad, 4 * pad))
        ImageDraw.Draw(image).text((pad + shift, 2 * pad), char, font=font, fill=255, anchor="ls")
        box = image.getbbox()
        if box is None:
            return Glyph(None, 0, 0, advance)
        return Glyph(255 - np.asarray(image.crop(box)), box[0] - pad, box[1] - 2 * pad, advance)

    def kern(self, pair: str) -> float:
        """What to add to the pen between two characters, in ems."""
        found = self._kerns.get(pair)
        if found is None:
            font = self.font(_KERN_SIZE)
            found = (font.getlength(pair) - font.getlength(pair[0]) - font.getlength(pair[1])) / _KERN_SIZE
            found = self._kerns[pair] = 0.0 if abs(found) > 0.25 else found  # more than that is a ligature
        return found

    def has(self, char: str) -> bool:
        """Whether the font draws this character (blanks count as drawn)."""
        found = self._known.get(char)
        if found is None:
            one, absent = self.glyph(char, 40), self.glyph(_ABSENT, 40)
            same = one.bitmap is not None and absent.bitmap is not None and np.array_equal(one.bitmap, absent.bitmap)
            empty = one.bitmap is None and not char.isspace()
            found = self._known[char] = not (same or empty)
        return found

    def has_all(self, text: str) -> bool:
        """Whether the font draws every character of ``text``."""
        if self._good.issuperset(text):
            return True
        good = [char for char in text if self.has(char)]
        self._good.update(good)
        return len(good) == len(text)


@cache
def face(stem: str) -> Face:
    """The shared face of a font file by its stem, as listed in ``jocr.synth.fonts``."""
    return Face(stem)
