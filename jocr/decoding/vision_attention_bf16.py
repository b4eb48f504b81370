"""Attention of bf16 towers: queries, keys, values and probabilities rounded to bf16, sums and softmax in fp32.

Scores begin with the bias of relative positions. They are scaled where the softmax reads them, so queries are the
numbers that the linear layer gave, and the bias is laid divided by that scale.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import njit
from torch import Tensor

from jocr.decoding.bf16 import pair_up, product_pairs
from jocr.decoding.kernels import ADD, LANES, NONE, SET, WIDTH, keep_apart, largest
from jocr.decoding.vector_math import ONE, ZERO, exp_one, spread
from jocr.decoding.vision_kernels import STRIP, roomy, whole

SIXTEEN = np.uint32(16)


@njit(cache=True)
def attend_bf16(rows, high, wide, heads, width, near, rows_at, columns_at, b):
    """``attend`` for bf16 towers; ``near`` holds at ``rows_at`` what ``distances`` lays out."""
    keep_apart()
    n, ld, dim, across = high * wide, 3 * width, width // heads, whole(2 * high + 2 * wide)
    pair_up(b.qkv, NONE, rows * ld, ONE, b.pairs, NONE)
    for head in range(heads):
        at, half = head * dim, dim // 2
        if rows_at >= 0:
            product_pairs(b.pairs, at // 2, ld // 2, rows, near, rows_at, half * WIDTH, across // WIDTH, half,
                          b.queries, NONE, across, SET)  # fmt: skip
        for first in range(0, rows, n):
            start = at + first * ld
            _lay_keys(b.pairs, (start + width) // 2, n, ld // 2, half, b.keys)
            _lay_values(b.pairs, start + 2 * width, n, ld, dim, b.values)
            _mix(b.pairs, start // 2, ld // 2, high, wide, dim, rows_at >= 0, b.queries[first * across :], b,
                 first * roomy(width) + at, roomy(width))  # fmt: skip


def distances(by_row: Tensor, by_column: Tensor) -> Tensor:
    """Positions (high, high, d) and (wide, wide, d) of each query for each key, as one matrix (2 high + 2 wide, d).

    They depend on distance alone. From the farthest key before a query to the farthest after it, rows first: what a
    query has for its keys stands side by side in their order.
    """
    lines = []
    for table in (by_row, by_column):
        lines += [table[:, 0].flip(0), table[0, 1:], torch.zeros_like(table[:1, 0])]
    return torch.cat(lines)


@njit(cache=True)
def _mix(q, at, ld, high, wide, dim, biased, biases, b, to, out_ld):
    """One head's attention among ``high * wide`` rows, to its columns of ``b.mixed``."""
    keep_apart()
    n, scale = high * wide, np.float32(1.0 / np.sqrt(dim))
    line, half, add = whole(n), (n + 1) // 2, ADD if biased else SET
    for begin in range(0, n, STRIP):
        rows = min(STRIP, n - begin)
        if biased:
            _lay_biases(biases, begin, rows, high, wide, ONE / scale, b.scores, line)
        product_pairs(q, at + begin * ld, ld, rows, b.keys, NONE, dim // 2 * WIDTH, line // WIDTH, dim // 2, b.scores,
                      NONE, line, add)  # fmt: skip
        for r in range(rows):
            total = _exponentials(b.scores[r * line : r * line + n], scale)
            pair_up(b.scores, r * line, n, ONE / total, b.shares, r * half)
        product_pairs(b.shares, NONE, half, rows, b.values, NONE, half * WIDTH, dim // WIDTH, half, b.mixed,
                      to + begin * out_ld, out_ld, SET)  # fmt: skip


@njit(cache=True, fastmath={"reassoc", "contract", "nnan"})
def _exponentials(x, scale):
    """In place: e^(scale * (x - largest)); their sum."""
    keep_apart()
    top = largest(x, x.shape[0])
    total = ZERO
    for i in range(x.shape[0]):
        x[i] = exp_one((x[i] - top) * scale)
        total += x[i]
    return total


@njit(cache=True, fastmath={"contract"})
def _lay_biases(biases, begin, rows, high, wide, gain, scores, line):
    """Queries' bias of each row and each column, times ``gain``, for each key, in whole vectors: a row's last one
    reaches into what is laid next, or beyond the last key."""
    keep_apart()
    across, reach = whole(2 * high + 2 * wide), (wide + LANES - 1) // LANES * LANES
    for r in range(rows):
        query = begin + r
        to, at = r * line, query * across + high - 1 - query // wide
        start = query * across + 2 * high + wide - 1 - query % wide
        columns = biases[start : start + reach]
        for i in range(high):
            of_row, keys = biases[at + i], scores[to + i * wide : to + i * wide + reach]
            for j in range(reach):
                keys[j] = (of_row + columns[j]) * gain


@njit(cache=True)
def _lay_keys(pairs, at, n, ld, half, keys):
    """A head's keys as panels of 32 rows; the last is filled up with zeros."""
    keep_apart()
    for j in range(n):
        panel, start = j // WIDTH * half * WIDTH + j % WIDTH, at + j * ld
        spread(pairs[start : start + half], keys[panel : panel + half * WIDTH], WIDTH)
    for j in range(n, whole(n)):
        panel = j // WIDTH * half * WIDTH + j % WIDTH
        for i in range(half):
            keys[panel + i * WIDTH] = 0


@njit(cache=True)
def _lay_values(pairs, at, n, ld, dim, values):
    """A head's values as panels of 32 columns, two rows in a line."""
    keep_apart()
    halves, half = pairs.view(np.uint16), (n + 1) // 2
    for p in range(dim // WIDTH):
        for j in range(half):
            start, to = at + p * WIDTH + 2 * j * ld, (p * half + j) * WIDTH
            even, line = halves[start : start + WIDTH], values[to : to + WIDTH]
            if 2 * j + 1 < n:
                odd = halves[start + ld : start + ld + WIDTH]
                for i in range(WIDTH):
                    line[i] = np.uint32(even[i]) | (np.uint32(odd[i]) << SIXTEEN)
            else:
                for i in range(WIDTH):
                    line[i] = even[i]
