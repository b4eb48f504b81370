"""One synthetic page from a seed: the picture, its reference Markdown, and where every character of it is."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from jocr.errors import ConfigError
from jocr.synth.blocks import COMPOSERS
from jocr.synth.canvas import Canvas, OffPage
from jocr.synth.noise import degrade
from jocr.synth.style import draw_style
from jocr.synth.writing import Writer

KINDS = ("paragraph", "table", "formula", "mixed")
SPLITS = ("train", "heldout", "heldout_font")
_SIZES = {"paragraph": (22, 34), "table": (18, 27), "formula": (24, 36), "mixed": (22, 30)}
_ATTEMPTS = 60


@dataclass(frozen=True, slots=True)
class SynthPage:
    """A drawn page. ``glyphs`` has one row per drawn character, in drawing order.

    Fields of ``glyphs`` (``jocr.synth.canvas.GLYPH``): ``char``, ``x`` and ``y`` (centre of its ink, pixels), ``w`` and
    ``h`` (its extent before any turn), ``pos`` (index of that character in ``markdown``; -1 if it has none there).
    """

    image: np.ndarray  # uint8 (height, width), grey, dark on light
    markdown: str
    kind: str  # paragraph | table | formula | mixed
    glyphs: np.ndarray
    font: str


def make_page(seed: int, kind: str, width: int, height: int, *, split: str = "train") -> SynthPage:
    """Draw a page; the same arguments (and installed fonts) give the same page.

    Args:
        seed: any integer.
        kind: one of ``KINDS``.
        width, height: pixels, 48 or more each.
        split: "train", "heldout" (unseen words and layouts) or "heldout_font" (unseen fonts as well).

    Raises:
        ConfigError: unknown kind or split, a page too small for one glyph, or no fonts installed.
    """
    if kind not in KINDS or split not in SPLITS:
        raise ConfigError(f"no such page: kind {kind!r} (of {KINDS}), split {split!r} (of {SPLITS})")
    if min(width, height) < 48:
        raise ConfigError(f"a page of {width}x{height} pixels is too small to write on; take 48 or more")
    rng = random.Random(f"{seed}/{kind}/{width}x{height}/{split}")
    for attempt in range(_ATTEMPTS):
        page = _attempt(rng, kind, width, height, split, shrink=0.88 ** max(0, attempt - 3))
        if page is not None:
            return page
    raise ConfigError(f"a {kind} page of {width}x{height} pixels could not be filled in {_ATTEMPTS} attempts")


def _attempt(rng: random.Random, kind: str, width: int, height: int, split: str, shrink: float) -> SynthPage | None:
    """One try; None if nothing fitted or a glyph would leave the page."""
    style = draw_style(rng, split, width, height, *_SIZES[kind], shrink)
    canvas = Canvas(width, height)
    placed = COMPOSERS[kind](rng, style, Writer(rng, split), width, height)
    if not placed:
        return None
    markdown = ""
    try:
        for block, x, y in placed:
            markdown += "\n\n" if markdown else ""
            canvas.draw(block.ink, x, y, len(markdown))
            markdown += block.markdown
    except OffPage:
        return None
    pixels, glyphs = degrade(canvas.pixels, canvas.glyphs(), rng)
    return SynthPage(pixels, markdown, kind, glyphs, style.family)
