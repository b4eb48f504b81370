"""Light damage to a drawn page: turn, blur, uneven ink, shade, grain, JPEG. Glyph places follow the turn."""

from __future__ import annotations

import io
import math
import random

import numpy as np
from PIL import Image, ImageFilter

CLEAN_SHARE = 0.4


def degrade(pixels: np.ndarray, glyphs: np.ndarray, rng: random.Random) -> tuple[np.ndarray, np.ndarray]:
    """A damaged copy of a page.

    Args:
        pixels: uint8 (H, W), dark ink on white.
        glyphs: structured array with fields ``x`` and ``y`` (``jocr.synth.canvas.GLYPH``).

    Returns the pixels and the glyphs moved with them; about 40 % of the pages come back unchanged.
    """
    if rng.random() < CLEAN_SHARE:
        return pixels, glyphs
    image = Image.fromarray(pixels)
    if rng.random() < 0.5:
        image, glyphs = turn(image, glyphs, math.radians(rng.uniform(-0.7, 0.7)))
    if rng.random() < 0.3:
        image = _thickness(image, rng)
    if rng.random() < 0.4:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.9)))
    values = _shade(np.asarray(image), rng)
    if rng.random() < 0.3:
        values = _jpeg(values, rng.randint(45, 90))
    return values, glyphs


def turn(image: Image.Image, glyphs: np.ndarray, angle: float) -> tuple[Image.Image, np.ndarray]:
    """Turn about the page's centre; PIL's affine matrix maps output to input pixels."""
    c, s = math.cos(angle), math.sin(angle)
    cx, cy = image.width / 2, image.height / 2
    matrix = (c, s, cx - c * cx - s * cy, -s, c, cy + s * cx - c * cy)
    image = image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR, fillcolor=255)
    glyphs = glyphs.copy()
    dx, dy = glyphs["x"] - cx, glyphs["y"] - cy
    glyphs["x"], glyphs["y"] = cx + c * dx - s * dy, cy + s * dx + c * dy
    return image, glyphs


def _thickness(image: Image.Image, rng: random.Random) -> Image.Image:
    if rng.random() < 0.6:
        return Image.blend(image, image.filter(ImageFilter.MinFilter(3)), rng.uniform(0.1, 0.5))
    return Image.blend(image, image.filter(ImageFilter.MaxFilter(3)), rng.uniform(0.05, 0.25))


def _shade(pixels: np.ndarray, rng: random.Random) -> np.ndarray:
    """Grey paper and ink, a slope of light, grain."""
    height, width = pixels.shape
    paper, ink = rng.uniform(205, 255), rng.uniform(0, 80)
    table = np.linspace(ink, paper, 256, dtype=np.float32)
    values = table[pixels]
    if rng.random() < 0.3:
        slope = np.linspace(-1, 1, width, dtype=np.float32) * rng.uniform(-9, 9)
        values += slope[None, :]
        values += (np.linspace(-1, 1, height, dtype=np.float32) * rng.uniform(-9, 9))[:, None]
    if rng.random() < 0.6:
        grain = np.random.default_rng(rng.getrandbits(64))
        values += grain.standard_normal(pixels.shape, dtype=np.float32) * np.float32(rng.uniform(1, 9))
    return np.clip(values, 0, 255).astype(np.uint8)


def _jpeg(pixels: np.ndarray, quality: int) -> np.ndarray:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
    return np.asarray(Image.open(buffer))
