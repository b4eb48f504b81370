"""Is there anything to read on this page image? Decided from pixels alone, with the evidence in numbers.

Ink coverage does not answer it: a dark scan of an empty page has much "ink", a page with one word next to none. Here
the ground (paper, shading, shadow) is estimated block by block and subtracted, what stands out by a local contrast
becomes components, and components count when they look like glyphs: strokes, not specks, or side by side in a line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageChops

from jocr.pages.components import Components, find_components

CONTRAST = 46  # grey levels (18 % of the range) that a mark must stand out; show-through at 12 % stays under it
GRAIN = 4.0  # ... and this many times the image's own pixel noise
SCATTER = 3.0  # in noise, ink per block, row or column varies at most this much more than independent specks make it
NOISE_SHARE = 0.005  # less than this of the page is no noise but a few specks, or a word
CROP = 200  # pixels of the shorter side under which an image is a cut-out, whose glyphs may touch its edge
BAND = 128  # rows looked at first, in the busier half of the page: most pages show their text there
PICTURE_SHARE = 0.01  # one mark of this share of the page is content, whatever its shape
PICTURE_SPREAD = 35.0  # grey levels of standard deviation in the ground itself: a picture, not paper


@dataclass(frozen=True, slots=True)
class _Finding:
    threshold: int  # grey levels by which a pixel stands out from the ground
    share: float  # of the pixels do
    spread: float  # standard deviation of the ground off the edges
    scatter: float
    glyphs: int
    lines: int
    largest: float  # the largest mark, as a share of the pixels

    @property
    def content(self) -> bool:
        return self.glyphs > 0 or self.largest >= PICTURE_SHARE

    def __str__(self) -> str:
        if not self.share:
            return f"nothing stands out from the ground by more than {self.threshold} of 255"
        marks = f"{self.glyphs} glyph-like marks, {self.lines} lines, largest mark {100 * self.largest:.2f} %"
        return f"{100 * self.share:.3f} % stands out by more than {self.threshold} of 255; {marks}"


def judge_blank(pixels: np.ndarray) -> tuple[bool, str]:
    """Whether a page shows nothing to read, and why.

    Args:
        pixels: (H, W) or (H, W, 3) uint8.

    Returns:
        (blank, evidence): blank for empty paper of any tone, noise, faint show-through, edge shadows and a few specks;
        not blank for a single small word.
    """
    height, width = pixels.shape[:2]
    if min(height, width) < 8:
        return True, f"{width}x{height} px hold no glyph"
    band = _busiest_band(pixels)
    if band is not None:
        found = _look(band)
        if found.lines >= 3 and found.scatter > 2 * SCATTER:
            return False, f"{found} within the busiest {BAND} rows of a half"
    found = _look(_grey(pixels))
    if found.share > NOISE_SHARE and found.scatter < SCATTER:
        return True, f"{found}, evenly strewn like noise (scatter {found.scatter:.2f} of {SCATTER})"
    if found.spread >= PICTURE_SPREAD:
        return False, f"{found}; the ground varies by {found.spread:.0f} of 255 like a picture"
    return not found.content, str(found)


def _grey(pixels: np.ndarray) -> np.ndarray:
    return pixels if pixels.ndim == 2 else np.asarray(Image.fromarray(np.ascontiguousarray(pixels)).convert("L"))


def _look(grey: np.ndarray) -> _Finding:
    """Measure an image, or a band of one."""
    ground, spread = _ground(grey)
    threshold = min(255, round(max(CONTRAST, GRAIN * _grain(grey))))
    mask = np.asarray(ImageChops.difference(Image.fromarray(grey), ground)) > threshold
    share = np.count_nonzero(mask) / mask.size
    scatter = _scatter(mask if share < 0.5 else grey < grey.mean())
    return _Finding(threshold, share, spread, scatter, *_count_marks(mask))


def _ground(grey: np.ndarray) -> tuple[Image.Image, float]:
    """The page without its marks, in grey, and how much it varies off the edges (standard deviation).

    Medians of blocks, medians of 5 x 5 of those, interpolated.
    """
    height, width = grey.shape
    block = max(8, min(64, min(height, width) // 4) // 8 * 8)
    rows, cols = -(-height // block), -(-width // block)
    full = np.pad(grey, ((0, rows * block - height), (0, cols * block - width)), mode="edge")
    sample = full[:: block // 8, :: block // 8].reshape(rows, 8, cols, 8).swapaxes(1, 2)
    medians = np.median(sample.reshape(rows, cols, 64), axis=2)
    around = np.pad(medians, 2, mode="reflect")  # a dark edge weighs one fifth there, paper the rest
    windows = np.lib.stride_tricks.sliding_window_view(around, (5, 5)).reshape(rows, cols, 25)
    smooth = Image.fromarray(np.median(windows, axis=2).astype(np.uint8))
    drawn = smooth.resize((width, height), Image.Resampling.BILINEAR, box=(0, 0, width / block, height / block))
    inner = medians[rows // 8 : rows - rows // 8, cols // 8 : cols - cols // 8]
    return drawn, float(inner.std())


def _grain(grey: np.ndarray) -> float:
    """Standard deviation of pixel noise: from the median step between neighbours, which text leaves alone."""
    some = grey[:: max(1, grey.shape[0] // 64)].astype(np.int16)
    return float(np.median(np.abs(np.diff(some, axis=1)))) * 1.4826 / 2**0.5


def _scatter(mask: np.ndarray) -> float:
    """Variance of ink over what specks of the observed size, thrown at random, would give: 1 for noise.

    The largest of three: per block (margins, pictures), per row and per column (lines of text).
    """
    share = np.count_nonzero(mask) / mask.size
    block = max(8, min(32, min(mask.shape) // 6))
    rows, cols = mask.shape[0] // block, mask.shape[1] // block
    if rows * cols < 4 or not 0 < share < 1:
        return float("inf")
    across, down = _reach(mask, share), _reach(mask.T, share)
    per_row, per_column = mask.mean(axis=1), mask.mean(axis=0)
    cells = np.add.reduceat(
        mask[: rows * block, : cols * block], np.arange(0, cols * block, block), axis=1, dtype=np.int32
    )
    cells = cells.reshape(rows, block, cols).sum(axis=1) / block**2
    ink = share * (1 - share)
    return max(
        float(cells.var()) / (ink * across * down / block**2),
        float(per_row.var()) / (ink * across / mask.shape[1]),
        float(per_column.var()) / (ink * down / mask.shape[0]),
    )


def _reach(mask: np.ndarray, share: float) -> float:
    """Sum of the autocorrelation along the columns at lags up to 8: the length of a speck in pixels."""
    total = 1.0
    for lag in range(1, 1 + max(1, min(8, min(mask.shape) // 32))):
        both = np.count_nonzero(mask[:, lag:] & mask[:, :-lag]) / mask[:, lag:].size
        total += 2 * max(0.0, (both - share**2) / (share * (1 - share)))
    return total


def _busiest_band(pixels: np.ndarray) -> np.ndarray | None:
    """``BAND`` rows of the half page width with the most steep steps along them, in grey, or None where the page is not
    much larger."""
    height, width = pixels.shape[:2]
    if height < 2 * BAND or width < 2 * BAND:
        return None
    some = _grey(pixels[::4]).astype(np.int16)
    steep = np.abs(np.diff(some, axis=1)) > CONTRAST
    halves = np.add.reduceat(steep, [0, width // 2], axis=1, dtype=np.int64)
    busy = np.add.reduceat(halves, np.arange(0, len(halves), BAND // 4))
    row, half = divmod(int(busy.argmax()), 2)
    top, left = min(row * BAND, height - BAND), half * (width // 2)
    return _grey(np.ascontiguousarray(pixels[top : top + BAND, left : left + width // 2]))


def _count_marks(mask: np.ndarray) -> tuple[int, int, float]:
    """(glyphs, lines, largest share) among the components; on a page, those at its edge are shadows of the scanner."""
    height, width = mask.shape
    marks = find_components(mask)
    if min(height, width) >= CROP:
        inside = (marks.top > 1) & (marks.left > 1) & (marks.bottom < height - 1) & (marks.right < width - 1)
        marks = marks.take(inside)
    largest = float(marks.area.max(initial=0)) / mask.size
    big = max(height, width) / 2
    sized = (np.maximum(marks.height, marks.width) >= 4) & (np.minimum(marks.height, marks.width) >= 2)
    sized &= (marks.area >= 6) & (marks.height <= big) & (marks.width <= big)
    marks = marks.take(sized)
    strokes = _are_strokes(marks)
    partners = np.maximum(_neighbours(marks), _neighbours(_turned(marks)))
    alone = strokes & (np.minimum(marks.height, marks.width) >= 6) & (np.maximum(marks.height, marks.width) >= 8)
    paired = (partners >= 2) | ((partners == 1) & strokes)
    return int((alone | paired).sum()), _count_lines(marks.take(paired)), largest


def _are_strokes(marks: Components) -> np.ndarray:
    """Marks drawn with a pen rather than dropped: their box is neither full nor, as with a hair, nearly empty."""
    fill = marks.area / np.maximum(1, marks.height * marks.width)
    return (fill < 0.62) & (fill > 0.1)


def _turned(marks: Components) -> Components:
    return Components(marks.left, marks.top, marks.right, marks.bottom, marks.area, marks.runs)


def _neighbours(marks: Components) -> np.ndarray:
    """For each mark, how many of the marks beside it belong to its line; a twin counts twice."""
    count = np.zeros(len(marks), np.int64)
    for shift in (0, 4):  # two sets of 8-pixel rows, half a row apart: a line never falls between both
        order = np.lexsort((marks.left, ((marks.top + marks.bottom) // 2 + shift) // 8))
        found = np.zeros(len(marks), np.int64)
        a, b = order[:-1], order[1:]
        tall = np.maximum(marks.height[a], marks.height[b])
        low = np.minimum(marks.height[a], marks.height[b])
        overlap = np.minimum(marks.bottom[a], marks.bottom[b]) - np.maximum(marks.top[a], marks.top[b])
        gap = marks.left[b] - marks.right[a]
        near = (gap <= np.maximum(4, tall)) & (gap > -tall) & (2 * overlap >= low) & (tall <= 3 * low)
        twins = (low >= 6) & (5 * low >= 4 * tall) & (np.abs(marks.bottom[a] - marks.bottom[b]) <= 1)
        weight = (1 + twins)[near]  # two marks of one height on one baseline are hardly specks
        np.add.at(found, a[near], weight)
        np.add.at(found, b[near], weight)
        count = np.maximum(count, found)
    return count


def _count_lines(marks: Components) -> int:
    """Rows of 16 pixels that hold at least three of the marks."""
    centre = (marks.top + marks.bottom) // 2 // 16
    return int((np.bincount(centre) >= 3).sum()) if len(marks) else 0
