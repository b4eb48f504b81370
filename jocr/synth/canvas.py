"""The page as pixels, and the log of every glyph that went onto it."""

from __future__ import annotations

import math

import numpy as np

from jocr.synth.boxes import Box
from jocr.synth.glyphs import PHASES

GLYPH = np.dtype([("char", "<U1"), ("x", "f4"), ("y", "f4"), ("w", "f4"), ("h", "f4"), ("pos", "i4")])


class OffPage(Exception):
    """A glyph would leave the page; the layout is tried again with other choices."""


class Canvas:
    """White paper of ``width`` x ``height`` pixels; ``pixels`` is uint8 (height, width)."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.pixels = np.full((height, width), 255, np.uint8)
        self._log: list[tuple[str, float, float, int, int, int]] = []

    def draw(self, box: Box, x: float, y: float, base: int = 0) -> None:
        """Draw ``box`` with its origin at (x, y); ``base`` is where its Markdown starts in the page's."""
        for rx, ry, width, height, ink in box.rules:
            self._rule(x + rx, y + ry, width, height, ink)
        pixels, log = self.pixels, self._log
        for face, size, char, label, mx, my, pos in box.marks:
            left = x + mx
            column = math.floor(left)
            glyph = face.glyph(char, size, int((left - column) * PHASES))
            bitmap = glyph.bitmap
            if bitmap is None:
                continue
            x0, y0 = column + glyph.left, round(y + my) + glyph.top
            h, w = bitmap.shape
            if x0 < 0 or y0 < 0 or x0 + w > self.width or y0 + h > self.height:
                raise OffPage(f"{char!r} at ({x0}, {y0}) size {w}x{h} leaves the {self.width}x{self.height} page")
            region = pixels[y0 : y0 + h, x0 : x0 + w]
            np.minimum(region, bitmap, out=region)
            log.append((label, x0 + w / 2, y0 + h / 2, w, h, base + pos if pos >= 0 else -1))

    def _rule(self, x: float, y: float, width: float, height: float, ink: int) -> None:
        x0, y0 = max(0, round(x)), max(0, round(y))
        x1, y1 = x0 + max(1, round(width)), y0 + max(1, round(height))
        region = self.pixels[y0:y1, x0:x1]
        np.minimum(region, ink, out=region)

    def glyphs(self) -> np.ndarray:
        """Every glyph drawn so far, in drawing order, as an array of ``GLYPH``."""
        return np.array(self._log, dtype=GLYPH)
