"""The vision towers in one compiled call for each view: SAM, its compressor, CLIP, the projector.

For small models on a CPU: there, more than half of a view's time went into the operations around the products.
``jocr.model`` says what is computed; this is the same to rounding. See ``vision_weights`` for what it reads.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from jocr.decoding.kernels import ADD, LANES, SET, WIDTH
from jocr.decoding.vector_math import ONE, ZERO
from jocr.decoding.vision_attention import attend
from jocr.decoding.vision_kernels import (
    STRIP,
    add_to,
    convolve,
    gelu,
    layer_norm,
    quick_gelu,
    roomy,
    times,
)

Sizes = namedtuple("Sizes", "width hidden heads patch neck first second clip_width clip_hidden clip_heads out")
"""Of the towers; ``first`` and ``second`` are the channels of the two convolutions that halve the grid."""

Starts = namedtuple("Starts", "patch sam neck norms clip pre projector")
"""Where weights start: ``patch`` for one plane and for three, ``sam`` and ``clip`` are (layers, 7), ``neck`` the four
convolutions, ``norms`` the neck's."""

View = namedtuple("View", "side base clip_base near starts order windows window cells")
"""What depends on a view's size: patches a side; positions (and the first bias) for the rows of either tower; tables
of relative positions and their starts; for a windowed layer, where each row goes, how many windows, their side; tokens
that come out."""

Buffers = namedtuple(
    "Buffers", "x a qkv mixed wide turned queries keys scores pairs values shares patch padded cells both"
)
"""Memory for one view."""

NORM1, NORM2, QKV, OUT, UP, DOWN, GLOBAL = range(7)
SAM_EPS, CLIP_EPS = np.float32(1e-6), np.float32(1e-5)


def buffers(side: int, z: Sizes, windows: int, window: int, clip_rows: int, dtype: np.dtype) -> Buffers:
    """Memory for views of ``side`` by ``side`` patches and matrices of this type."""
    rows, c, wide = max(side * side, windows * window * window, clip_rows), max(z.width, z.clip_width), side + 2
    strip, reach = max(STRIP, side), 2 * max(side, window)

    def floats(count: int) -> np.ndarray:
        return np.zeros(count, np.float32)

    def pairs(count: int) -> np.ndarray:
        return np.zeros(count if dtype == np.uint32 else 0, np.uint32)

    return Buffers(
        x=floats(rows * c), a=floats(rows * (c + LANES)), qkv=floats(rows * 3 * c), mixed=floats(rows * (c + LANES)),
        wide=floats(STRIP * (max(z.hidden, z.clip_hidden) + LANES)), turned=floats(rows * max(c, z.neck)),
        queries=floats(rows * (max(c, reach) + reach + WIDTH)), keys=np.zeros((rows + WIDTH) * (c + reach), dtype),
        scores=floats(STRIP * (rows + WIDTH)), pairs=pairs(rows * 3 * c // 2), values=pairs((rows + 1) // 2 * c),
        shares=pairs(STRIP * (rows + 1) // 2), patch=floats(strip * max(3 * z.patch**2, 9 * max(z.neck, z.first))),
        padded=floats(wide * wide * max(z.neck, z.first)), cells=floats(rows * max(z.neck, z.first, z.second)),
        both=floats(clip_rows * (2 * z.clip_width + LANES)),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def see(pixels, planes, m, v, o, z, view, b, out):
    """One view (S, S, planes), flat, in [-1, 1] -> its tokens, (cells, hidden) flat, row-major."""
    side, c = view.side, z.width
    n = side * side
    b.x[: n * c] = view.base
    patch = o.patch[0 if planes == 1 else 1]
    convolve(pixels, side * z.patch, planes, z.patch, z.patch, side, side, m, patch, c, b.patch, b.x, ADD)
    for layer in range(len(o.sam)):
        _mix_grid(m, v, o.sam[layer], layer, z, view, b)
        _feed(b.x, n, c, z.hidden, m, v, o.sam[layer], SAM_EPS, True, b)
    times(b.x, c, n, m, o.neck[0], c, z.neck, b.turned, z.neck, SET)
    _into_frame(b.turned, side, z.neck, v, o.norms[0], b.padded)
    convolve(b.padded, side + 2, z.neck, 3, 1, side, side, m, o.neck[1], z.neck, b.patch, b.cells, SET)
    _into_frame(b.cells, side, z.neck, v, o.norms[1], b.padded)
    half = (side + 1) // 2
    convolve(b.padded, side + 2, z.neck, 3, 2, half, half, m, o.neck[2], z.first, b.patch, b.cells, SET)
    _into_frame(b.cells, half, z.first, v, np.int64(-1), b.padded)
    quarter = (half + 1) // 2
    convolve(b.padded, half + 2, z.first, 3, 2, quarter, quarter, m, o.neck[3], z.second, b.patch, b.cells, SET)
    _clip(quarter * quarter, m, v, o, z, view, b)
    times(b.both, roomy(2 * z.second), quarter * quarter, m, o.projector, 2 * z.second + 1, z.out, out, z.out, SET)


@njit(cache=True)
def _mix_grid(m, v, line, layer, z, view, b):
    """x += attention of the normed rows, window by window or over all of them."""
    c, ld, n = z.width, roomy(z.width), view.side * view.side
    apart = line[GLOBAL] == 0
    rows = view.windows * view.window * view.window if apart else n
    if apart and rows > n:
        b.a[: rows * ld] = ZERO
        for r in range(rows):
            b.a[r * ld + c] = ONE
    for r in range(n):
        to = (view.order[r] if apart else r) * ld
        layer_norm(b.x[r * c : r * c + c], v[line[NORM1] : line[NORM1] + c],
                   v[line[NORM1] + c : line[NORM1] + 2 * c], SAM_EPS, b.a[to : to + c])  # fmt: skip
        b.a[to + c] = ONE
    times(b.a, ld, rows, m, line[QKV], c + 1, 3 * c, b.qkv, 3 * c, SET)
    high = view.window if apart else view.side
    attend(rows, high, high, z.heads, c, view.near, view.starts[layer, 0], view.starts[layer, 1], b)
    for r in range(rows):
        b.mixed[r * ld + c] = ONE
    if not apart:
        times(b.mixed, ld, rows, m, line[OUT], c + 1, c, b.x, c, ADD)
        return
    times(b.mixed, ld, rows, m, line[OUT], c + 1, c, b.turned, c, SET)
    for r in range(n):
        start = view.order[r] * c
        add_to(b.x[r * c : r * c + c], b.turned[start : start + c])


@njit(cache=True)
def _feed(x, n, c, hidden, m, v, line, eps, exact, b):
    """x += MLP of the normed rows, a strip of them at a time."""
    ld, wide = roomy(c), roomy(hidden)
    for first in range(0, n, STRIP):
        rows = min(STRIP, n - first)
        for r in range(rows):
            start, to = (first + r) * c, r * ld
            layer_norm(x[start : start + c], v[line[NORM2] : line[NORM2] + c],
                       v[line[NORM2] + c : line[NORM2] + 2 * c], eps, b.a[to : to + c])  # fmt: skip
            b.a[to + c] = ONE
        times(b.a, ld, rows, m, line[UP], c + 1, hidden, b.wide, wide, SET)
        for r in range(rows):
            start = r * wide
            if exact:
                gelu(b.wide[start : start + hidden])
            else:
                quick_gelu(b.wide[start : start + hidden])
            b.wide[start + hidden] = ONE
        times(b.wide, wide, rows, m, line[DOWN], hidden + 1, c, x[first * c : n * c], c, ADD)


@njit(cache=True)
def _into_frame(x, side, channels, v, norm, out):
    """(side * side, channels), normed where ``norm`` >= 0, with a frame of zeros one cell wide."""
    wide = (side + 2) * channels
    out[: (side + 2) * wide] = ZERO
    for i in range(side):
        for j in range(side):
            start, to = (i * side + j) * channels, (i + 1) * wide + (j + 1) * channels
            if norm >= 0:
                layer_norm(x[start : start + channels], v[norm : norm + channels],
                           v[norm + channels : norm + 2 * channels], SAM_EPS, out[to : to + channels])  # fmt: skip
            else:
                out[to : to + channels] = x[start : start + channels]


@njit(cache=True)
def _clip(cells, m, v, o, z, view, b):
    """SAM's features in ``b.cells`` through CLIP; its rows without the class token, and the features, to ``b.both``."""
    c, ld, n = z.clip_width, roomy(z.clip_width), cells + 1
    b.qkv[: n * c] = view.clip_base
    add_to(b.qkv[c : n * c], b.cells[: cells * c])
    for r in range(n):
        layer_norm(b.qkv[r * c : r * c + c], v[o.pre : o.pre + c], v[o.pre + c : o.pre + 2 * c], CLIP_EPS,
                   b.x[r * c : r * c + c])  # fmt: skip
    for layer in range(len(o.clip)):
        line = o.clip[layer]
        for r in range(n):
            layer_norm(b.x[r * c : r * c + c], v[line[NORM1] : line[NORM1] + c],
                       v[line[NORM1] + c : line[NORM1] + 2 * c], CLIP_EPS, b.a[r * ld : r * ld + c])  # fmt: skip
            b.a[r * ld + c] = ONE
        times(b.a, ld, n, m, line[QKV], c + 1, 3 * c, b.qkv, 3 * c, SET)
        attend(n, np.int64(1), n, z.clip_heads, c, view.near, np.int64(-1), np.int64(-1), b)
        for r in range(n):
            b.mixed[r * ld + c] = ONE
        times(b.mixed, ld, n, m, line[OUT], c + 1, c, b.x, c, ADD)
        _feed(b.x, n, c, z.clip_hidden, m, v, line, CLIP_EPS, False, b)
    wide = roomy(2 * c)
    for i in range(cells):
        to = i * wide
        b.both[to : to + c] = b.x[(i + 1) * c : (i + 2) * c]
        b.both[to + c : to + 2 * c] = b.cells[i * c : i * c + c]
        b.both[to + 2 * c] = ONE
