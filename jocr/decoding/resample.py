"""Pillow's bicubic resampling of 8-bit images, bit for bit, compiled.

Pillow sums one output number at a time; here whole rows are summed, on vectors. Enlarging a 512 px page to 640 px takes
0.4 ms instead of 1.8. The rule is Pillow's: Keys' cubic with a = -0.5 (R. Keys, "Cubic convolution interpolation for
digital image processing", IEEE TASSP 1981), widened by the scale where an image gets smaller, weights in fixed point
of 22 bits, columns before rows, rounded to 8 bits after each.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numba import njit
from PIL import Image

from jocr.decoding.kernels import keep_apart

BITS = 22  # of the weights' fractions
SUPPORT = 2.0  # of the cubic, in pixels of the coarser image
A = -0.5


def bicubic(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """``image.resize(size, BICUBIC)``.

    What is neither grey nor RGB is left to Pillow, and what loses most of its height: there, some versions begin with
    the rows.
    """
    narrower, flatter = image.width - size[0], image.height - size[1]
    if image.mode not in ("L", "RGB") or image.size == size or flatter > max(0, 2 * narrower):
        return image.resize(size, Image.Resampling.BICUBIC)
    pixels = np.array(image)
    high, wide = pixels.shape[:2]
    planes = pixels.reshape(high, wide, -1)
    if wide != size[0]:
        planes = turned(_weigh(turned(planes), *_weights(wide, size[0])))
    if high != size[1]:
        planes = _weigh(planes, *_weights(high, size[1]))
    return Image.fromarray(planes.reshape(size[1], size[0], *pixels.shape[2:]))


@lru_cache(maxsize=256)
def _weights(before: int, after: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each of ``after`` outputs: its first input, how many, and their weights."""
    scale = before / after
    stretch = max(scale, 1.0)
    shrink = 1.0 / stretch  # what is divided and what multiplied is as in Pillow: it decides last digits
    reach = SUPPORT * stretch
    firsts, counts = np.zeros(after, np.int64), np.zeros(after, np.int64)
    weights = np.zeros((after, int(np.ceil(reach)) * 2 + 1), np.int32)
    for i in range(after):
        centre = (i + 0.5) * scale
        first, end = max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), before)
        raw = [_cubic((j - centre + 0.5) * shrink) for j in range(first, end)]
        total = 0.0
        for weight in raw:
            total += weight
        fixed = [weight * (1.0 / total) * (1 << BITS) for weight in raw]
        weights[i, : end - first] = [int(w - 0.5) if w < 0 else int(w + 0.5) for w in fixed]
        firsts[i], counts[i] = first, end - first
    return firsts, counts, weights


def _cubic(x: float) -> float:
    x = abs(x)
    if x < 1.0:
        return ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    return (((x - 5.0) * x + 8.0) * x - 4.0) * A if x < 2.0 else 0.0


def _weigh(x: np.ndarray, firsts: np.ndarray, counts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Rows of (n, ...) summed with ``weights`` -> (len(firsts), ...)."""
    out = np.empty((len(firsts), *x.shape[1:]), np.uint8)
    _sum_rows(x.reshape(len(x), -1), firsts, counts, weights, out.reshape(len(out), -1))
    return out


@njit(cache=True, nogil=True)
def _sum_rows(x, firsts, counts, weights, out):
    sums = np.empty(x.shape[1], np.int32)
    for i in range(out.shape[0]):
        sums[:] = np.int32(1 << (BITS - 1))
        for k in range(counts[i]):
            _add(x[firsts[i] + k], weights[i, k], sums)
        _clip(sums, out[i])


@njit(cache=True)
def _add(x, weight, sums):
    keep_apart()
    for i in range(sums.shape[0]):
        sums[i] += weight * np.int32(x[i])


@njit(cache=True)
def _clip(sums, out):
    keep_apart()
    for i in range(sums.shape[0]):
        out[i] = np.uint8(min(max(sums[i] >> np.int32(BITS), np.int32(0)), np.int32(255)))


def turned(planes: np.ndarray) -> np.ndarray:
    """(H, W, C) -> (W, H, C), by the quickest transposition at hand."""
    return torch.from_numpy(planes).transpose(0, 1).contiguous().numpy()
