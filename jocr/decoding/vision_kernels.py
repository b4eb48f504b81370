"""Pieces of the compiled towers: layer norm, GELU, attention over a grid, convolution.

Rows are those of one view. Matrices are read by ``kernels.product``, whose rows do not depend on one another, so a view
gives the same tokens whatever is encoded beside it. A row that meets a matrix with a bias ends in a 1: the bias is the
matrix's last line.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from jocr.decoding.kernels import ADD, LANES, LINE, NONE, SET, WIDTH, keep_apart, product
from jocr.decoding.vector_math import ONE, ZERO, exp_one, softmax, spread

FOLDED = 128  # keys
STRIP = 48  # rows that go through a pair of products at once: their intermediate results stay in cache
HALF, ROOT_HALF = np.float32(0.5), np.float32(0.5**0.5)
QUICK = np.float32(1.702)
P = np.float32(0.3275911)  # erf by Abramowitz and Stegun, 7.1.26: to 1.5e-7
A1, A2, A3, A4, A5 = (np.float32(a) for a in (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429))


@njit(cache=True, inline="always")
def whole(width):
    """``width`` rounded up to whole panels."""
    return (width + WIDTH - 1) // WIDTH * WIDTH


@njit(cache=True, inline="always")
def roomy(width):
    """Distance of rows of ``width`` numbers and a 1, a multiple of vectors."""
    return width + LANES


@njit(cache=True, fastmath={"reassoc", "contract"})
def layer_norm(x, weight, bias, eps, out):
    """out = (x - mean) / deviation * weight + bias, one row."""
    keep_apart()
    n = np.float32(x.shape[0])
    total = ZERO
    for i in range(x.shape[0]):
        total += x[i]
    mean, spread = total / n, ZERO
    for i in range(x.shape[0]):
        spread += (x[i] - mean) * (x[i] - mean)
    scale = ONE / np.sqrt(spread / n + eps)
    for i in range(x.shape[0]):
        out[i] = (x[i] - mean) * scale * weight[i] + bias[i]


@njit(cache=True, fastmath={"contract", "nnan"}, error_model="numpy")
def gelu(x):
    """In place: x times the normal distribution function of x."""
    keep_apart()
    for i in range(x.shape[0]):
        z = abs(x[i]) * ROOT_HALF
        t = ONE / (ONE + P * z)
        tail = HALF * t * (A1 + t * (A2 + t * (A3 + t * (A4 + t * A5)))) * exp_one(-z * z)
        x[i] = x[i] * (tail if x[i] < ZERO else ONE - tail)


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def quick_gelu(x):
    """In place: x times the logistic function of 1.702 x."""
    keep_apart()
    for i in range(x.shape[0]):
        x[i] = x[i] / (ONE + exp_one(-QUICK * x[i]))


@njit(cache=True, inline="always")
def scaled(x, gain, out):
    for i in range(x.shape[0]):
        out[i] = x[i] * gain


@njit(cache=True, inline="always")
def add_to(out, x):
    for i in range(x.shape[0]):
        out[i] += x[i]


@njit(cache=True)
def times(x, ld, rows, w, at, ins, outs, out, out_ld, add):
    """out (+)= x @ W^T for a packed (outs, ins) matrix that starts at ``at``."""
    keep_apart()
    product(x, NONE, ld, rows, w, at, LINE, ins * WIDTH, outs // WIDTH, ins, out, NONE, out_ld, add)


@njit(cache=True)
def convolve(x, across, channels, kernel, stride, high, wide, w, at, outs, patch, out, add):
    """A convolution without padding of its own: rows of ``x`` are ``across`` cells of ``channels``.

    The result is (high * wide, outs). ``w`` is packed from (outs, kernel * kernel * channels); ``patch`` holds a
    strip's inputs.
    """
    keep_apart()
    line = kernel * channels
    depth, strip = kernel * line, max(1, STRIP // wide)
    for first in range(0, high, strip):
        n = NONE
        for i in range(first, min(first + strip, high)):
            for j in range(wide):
                for k in range(kernel):
                    start, to = ((i * stride + k) * across + j * stride) * channels, n * depth + k * line
                    spread(x[start : start + line], patch[to : to + line], 1)
                n += 1
        to = first * wide * outs
        product(patch, NONE, depth, n, w, at, LINE, depth * WIDTH, outs // WIDTH, depth, out, to, outs, add)


@njit(cache=True)
def attend_grid(qkv, first, high, wide, head, width, dim, near, rows_at, columns_at, b, out):
    """One head's attention of ``high * wide`` rows of ``qkv`` among themselves, to its columns of ``out``.

    With ``rows_at`` >= 0 scores have a bias of a query's distance in rows and one of that in columns. Its tables start
    there in ``near``, one for each query row (or column), packed from (high, dim). In a small grid (``folds``) it is
    part of the product: queries carry it for each row and column, keys have a one at their own. In a large one, where
    that would be half of the work, the scores begin with it.
    """
    keep_apart()
    n, ld, at, scale = high * wide, 3 * width, head * dim, np.float32(1.0 / np.sqrt(dim))
    biased = rows_at >= 0
    folded = biased and folds(n)
    depth = dim + high + wide if folded else dim
    across = dim + max(whole(high), high + whole(wide)) if biased else dim
    _lay_keys(qkv, first, n, ld, width + at, dim, depth, b.keys)  # after ``lay_places``
    for j in range(n):
        start, to = (first + j) * ld + at, j * across
        scaled(qkv[start : start + dim], scale, b.queries[to : to + dim])
    if biased:
        for i in range(high):  # the products end in zeros up to whole panels: columns come after rows
            start, to, table = (first + i * wide) * ld + at, i * wide * across + dim, rows_at + i * whole(high) * dim
            product(qkv, start, ld, wide, near, table, LINE, dim * WIDTH, whole(high) // WIDTH, dim, b.queries, to,
                    across, SET)  # fmt: skip
        for i in range(wide):
            start, to, table = (first + i) * ld + at, i * across + dim + high, columns_at + i * whole(wide) * dim
            product(qkv, start, wide * ld, high, near, table, LINE, dim * WIDTH, whole(wide) // WIDTH, dim, b.queries,
                    to, wide * across, SET)  # fmt: skip
    for begin in range(0, n, STRIP):
        rows, line, add = min(STRIP, n - begin), whole(n), ADD if biased and not folded else SET
        if add:
            for r in range(rows):
                lay_bias(b.queries[(begin + r) * across + dim :], high, wide, b.scores[r * line :])
        product(b.queries, begin * across, across, rows, b.keys, NONE, LINE, depth * WIDTH, line // WIDTH, depth,
                b.scores, NONE, line, add)  # fmt: skip
        for r in range(rows):
            softmax(b.scores[r * line : r * line + n])
        product(b.scores, NONE, line, rows, qkv, first * ld + 2 * width + at, ld, LINE, dim // WIDTH, n, out,
                (first + begin) * roomy(width) + at, roomy(width), SET)  # fmt: skip


@njit(cache=True, inline="always")
def folds(n):
    """Whether the bias of ``n`` keys is part of the product."""
    return n <= FOLDED


@njit(cache=True)
def lay_bias(near_by, high, wide, scores):
    """One query's bias of each row and then of each column -> of each key, in whole vectors: a row's last one reaches
    into what is laid next, or beyond the last key."""
    keep_apart()
    reach = whole(wide)
    columns = near_by[high : high + reach]
    for i in range(high):
        of_row, line = near_by[i], scores[i * wide : i * wide + reach]
        for j in range(reach):
            line[j] = of_row + columns[j]


@njit(cache=True)
def lay_places(high, wide, dim, keys):
    """The keys' ones, the same for every head of a layer: all lines but the first ``dim`` of each panel."""
    keep_apart()
    depth = dim + high + wide
    for panel in range(whole(high * wide) // WIDTH):
        keys[(panel * depth + dim) * WIDTH : (panel + 1) * depth * WIDTH] = ZERO
    for i in range(high):
        for j in range(wide):
            place = i * wide + j
            panel, lane = place // WIDTH * depth, place % WIDTH
            keys[(panel + dim + i) * WIDTH + lane] = ONE
            keys[(panel + dim + high + j) * WIDTH + lane] = ONE


@njit(cache=True)
def _lay_keys(qkv, first, n, ld, at, dim, depth, keys):
    """A head's keys as panels of 32 rows, the first ``dim`` lines of each."""
    keep_apart()
    for j in range(n):
        panel, start = j // WIDTH * depth * WIDTH + j % WIDTH, (first + j) * ld + at
        spread(qkv[start : start + dim], keys[panel : panel + dim * WIDTH], WIDTH)
    for j in range(n, whole(n)):
        panel = j // WIDTH * depth * WIDTH + j % WIDTH
        for i in range(dim):
            keys[panel + i * WIDTH] = ZERO
