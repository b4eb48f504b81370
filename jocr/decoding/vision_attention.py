"""Attention over the grid of a view, with SAM's decomposed relative positions where there are any: of fp32 towers, and
the name for those of either type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from jocr.decoding.kernels import ADD, LINE, NONE, SET, WIDTH, keep_apart, product
from jocr.decoding.vector_math import ONE, ZERO, softmax, spread
from jocr.decoding.vision_attention_bf16 import attend_bf16
from jocr.decoding.vision_kernels import STRIP, roomy, whole

FOLDED = 128  # keys


def attend(rows: Any, high: Any, wide: Any, heads: Any, width: Any, near: Any, rows_at: Any, columns_at: Any,
           b: Any) -> None:  # fmt: skip
    """Every head's attention of ``rows`` rows of ``b.qkv`` among ``high * wide`` neighbours, to ``b.mixed``.

    With ``rows_at`` >= 0 scores have a bias of a query's distance in rows and one of that in columns. Its tables start
    there in ``near``, one for each query row (or column), packed from (high, dim).
    """
    raise NotImplementedError("to be called from compiled code")


@overload(attend, inline="always")
def _attend_in(rows, high, wide, heads, width, near, rows_at, columns_at, b):
    if near.dtype == types.uint32:

        def narrow(rows, high, wide, heads, width, near, rows_at, columns_at, b):
            attend_bf16(rows, high, wide, heads, width, near, rows_at, columns_at, b)

        return narrow

    def full(rows, high, wide, heads, width, near, rows_at, columns_at, b):
        attend_fp32(rows, high, wide, heads, width, near, rows_at, columns_at, b)

    return full


@njit(cache=True)
def attend_fp32(rows, high, wide, heads, width, near, rows_at, columns_at, b):
    """``attend`` for fp32 towers."""
    keep_apart()
    n, dim = high * wide, width // heads
    if rows_at >= 0 and _folds(n):
        _lay_places(high, wide, dim, b.keys)
    for first in range(0, rows, n):
        for head in range(heads):
            _attend(b.qkv, first, high, wide, head, width, dim, near, rows_at, columns_at, b, b.mixed)


@njit(cache=True, inline="always")
def _scaled(x, gain, out):
    for i in range(x.shape[0]):
        out[i] = x[i] * gain


@njit(cache=True)
def _attend(qkv, first, high, wide, head, width, dim, near, rows_at, columns_at, b, out):
    """One head's attention of ``high * wide`` rows of ``qkv`` among themselves, to its columns of ``out``.

    With ``rows_at`` >= 0 scores have a bias of a query's distance in rows and one of that in columns. Its tables start
    there in ``near``, one for each query row (or column), packed from (high, dim). In a small grid (``_folds``) it is
    part of the product: queries carry it for each row and column, keys have a one at their own. In a large one, where
    that would be half of the work, the scores begin with it.
    """
    keep_apart()
    n, ld, at, scale = high * wide, 3 * width, head * dim, np.float32(1.0 / np.sqrt(dim))
    biased = rows_at >= 0
    folded = biased and _folds(n)
    depth = dim + high + wide if folded else dim
    across = dim + max(whole(high), high + whole(wide)) if biased else dim
    _lay_keys(qkv, first, n, ld, width + at, dim, depth, b.keys)  # after ``_lay_places``
    for j in range(n):
        start, to = (first + j) * ld + at, j * across
        _scaled(qkv[start : start + dim], scale, b.queries[to : to + dim])
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
                _lay_bias(b.queries[(begin + r) * across + dim :], high, wide, b.scores[r * line :])
        product(b.queries, begin * across, across, rows, b.keys, NONE, LINE, depth * WIDTH, line // WIDTH, depth,
                b.scores, NONE, line, add)  # fmt: skip
        for r in range(rows):
            softmax(b.scores[r * line : r * line + n])
        product(b.scores, NONE, line, rows, qkv, first * ld + 2 * width + at, ld, LINE, dim // WIDTH, n, out,
                (first + begin) * roomy(width) + at, roomy(width), SET)  # fmt: skip


@njit(cache=True, inline="always")
def _folds(n):
    """Whether the bias of ``n`` keys is part of the product."""
    return n <= FOLDED


@njit(cache=True)
def _lay_bias(near_by, high, wide, scores):
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
def _lay_places(high, wide, dim, keys):
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
