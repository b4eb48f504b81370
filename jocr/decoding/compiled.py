"""The decoder for a few rows at a time, in one compiled call, by one thread or by a team of them (see ``team``).

Everything works on flat arrays: ``w`` the weights (see ``compiled_weights``), ``c`` the cache, ``s`` the scratch
memory, ``t`` the team. Rows of any pages stand one after another; row r is token ``tokens[r]`` of slot ``slots[r]`` at
position ``places[r]``. Keys are stored transposed, in panels of 32 positions, so that scores and the weighted sum of
values are the same matrix kernel as the linear layers.

A thread of a team computes its own heads and its own panels of every matrix. Norms are computed by each for itself.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from jocr.decoding.kernels import ADD, LINE, MOST_ROWS, NONE, ROW, SET, WIDTH, keep_apart, product, widen
from jocr.decoding.products import multiply, span
from jocr.decoding.team import barrier, share
from jocr.decoding.vector_math import argmax, rms_norm, rotate_half, softmax, spread

Dims = namedtuple("Dims", "hidden layers heads head_dim vocab dense experts chosen routed shared renorm scale eps")
"""Sizes: ``dense``, ``routed``, ``shared`` are MLP widths; ``renorm`` 0 or 1; ``scale`` of the routed experts."""

Offsets = namedtuple("Offsets", "layer norm head enorm hnorm eh draft_norm draft_head")
"""Where each weight starts in its array; ``layer`` is (layers + 1, 8), the last row the draft block's."""

Weights = namedtuple("Weights", "matrices vectors embed draft_embed")
"""Flat: packed matrices and embedding tables, fp32 or bf16 as uint16; norm weights, fp32."""

Cache = namedtuple("Cache", "k v hidden slots capacity cos sin")
"""Flat keys, values and states of all slots, fp32; rotary tables (length, head_dim)."""

Scratch = namedtuple(
    "Scratch",
    "x qkv y wide inner logits best "  # the team's
    "a pair gather before scores router chosen weight out slots places",  # each thread's own
)
"""Row buffers, enough for the most rows of one call."""

INPUT_NORM, QKV, OUT, POST_NORM, GATE_UP, DOWN, EXPERT_UP, EXPERT_DOWN = range(8)


@njit(cache=True, inline="always")
def pad(width):
    """``width`` rounded up to whole panels."""
    return (width + WIDTH - 1) // WIDTH * WIDTH


@njit(cache=True)
def linear(x, x_ld, rows, w, at, ins, outs, y, y_ld, add, t):
    """y (+)= x @ W^T for a packed W (outs, ins) that starts at ``at``: this thread's columns."""
    keep_apart()
    first, end = share(pad(outs) // WIDTH, t)
    size = span(w, ins)
    multiply(x, NONE, x_ld, rows, w, at + first * size, size, end - first, ins, y, first * WIDTH, y_ld, add)


@njit(cache=True)
def norm_rows(x, rows, hidden, vectors, at, eps, out):
    keep_apart()
    weight = vectors[at : at + hidden]
    for r in range(rows):
        rms_norm(x[r * hidden : r * hidden + hidden], weight, eps, out[r * hidden : r * hidden + hidden])


@njit(cache=True)
def project_qkv(a, rows, w, at, qkv, d, t):
    """Queries, keys and values of this thread's heads."""
    keep_apart()
    inner, panels = d.heads * d.head_dim, d.head_dim // WIDTH
    first, end = share(d.heads, t)
    if t.size == 1:
        linear(a, d.hidden, rows, w, at, d.hidden, 3 * inner, qkv, 3 * inner, SET, t)
        return
    for part in range(3):
        column, size = part * inner + first * d.head_dim, span(w, d.hidden)
        multiply(
            a, NONE, d.hidden, rows, w, at + column // WIDTH * size, size, (end - first) * panels,
            d.hidden, qkv, column, 3 * inner, SET,
        )  # fmt: skip


@njit(cache=True)
def store_kv(layer, qkv, rows, slots, places, d, c, t):
    """Rotate queries (scaled) and keys in place; put keys and values into the cache."""
    keep_apart()
    dim, inner, scale = d.head_dim, d.heads * d.head_dim, np.float32(1.0 / np.sqrt(d.head_dim))
    first, end = share(d.heads, t)
    for r in range(rows):
        place = places[r]
        cos, sin, lane = c.cos[place], c.sin[place], place // WIDTH * WIDTH * dim + place % WIDTH
        for h in range(first, end):
            q = r * 3 * inner + h * dim
            key, value = q + inner, q + 2 * inner
            rotate_half(qkv[q : q + dim], cos, sin, scale)
            rotate_half(qkv[key : key + dim], cos, sin, np.float32(1.0))
            base = ((layer * c.slots + slots[r]) * d.heads + h) * dim * c.capacity
            spread(qkv[key : key + dim], c.k[base + lane : base + lane + dim * WIDTH], WIDTH)
            base += place * dim
            spread(qkv[value : value + dim], c.v[base : base + dim], 1)


@njit(cache=True)
def attend(layer, qkv, rows, slots, places, d, c, scores, out, t):
    """Every row against all positions up to its own; up to six neighbouring rows of a page share a pass."""
    keep_apart()
    dim, inner, ld = d.head_dim, d.heads * d.head_dim, c.capacity
    first, last = share(d.heads, t)
    r = NONE
    while r < rows:
        n = ROW
        while n < MOST_ROWS and r + n < rows and slots[r + n] == slots[r] and places[r + n] == places[r] + n:
            n += 1
        end = places[r] + n
        for h in range(first, last):
            base = ((layer * c.slots + slots[r]) * d.heads + h) * dim * ld
            at = 3 * r * inner + h * dim
            product(qkv, at, 3 * inner, n, c.k, base, LINE, dim * WIDTH, pad(end) // WIDTH, dim, scores, NONE, ld, SET)
            for i in range(n):
                line, seen = i * ld, end - n + 1 + i
                softmax(scores[line : line + seen])
                scores[line + seen : line + end] = np.float32(0.0)
            at = r * inner + h * dim
            product(scores, NONE, ld, n, c.v, base, dim, LINE, dim // WIDTH, end, out, at, inner, SET)
        r += n


@njit(cache=True)
def mix(rows, layer, w, line, slots, places, d, c, s, t):
    """s.x += attention of the normed rows. Ends at a barrier."""
    keep_apart()
    norm_rows(s.x, rows, d.hidden, w.vectors, line[INPUT_NORM], np.float32(d.eps), s.a)
    project_qkv(s.a, rows, w.matrices, line[QKV], s.qkv, d, t)
    store_kv(layer, s.qkv, rows, slots, places, d, c, t)
    attend_out(rows, layer, w, line, slots, places, d, c, s, t)


@njit(cache=True)
def attend_out(rows, layer, w, line, slots, places, d, c, s, t):
    """s.x += attention of the queries in ``s.qkv``. Ends at a barrier."""
    keep_apart()
    inner = d.heads * d.head_dim
    attend(layer, s.qkv, rows, slots, places, d, c, s.scores, s.y, t)
    barrier(t)
    linear(s.y, inner, rows, w.matrices, line[OUT], inner, d.hidden, s.x, d.hidden, ADD, t)
    barrier(t)


@njit(cache=True)
def choose(x, rows, w, at, d, s, t):
    """Greedy token of every row of post-norm states, to ``s.out``; logits stay in ``s.logits``."""
    keep_apart()
    ld = pad(d.vocab)
    linear(x, d.hidden, rows, w.matrices, at, d.hidden, d.vocab, s.logits, ld, SET, t)
    first, end = share(ld // WIDTH, t)
    first, end = first * WIDTH, min(end * WIDTH, d.vocab)
    for r in range(rows):
        best = -1
        if first < end:
            best = first + argmax(s.logits[r * ld + first : r * ld + end])
        s.best[t.me * rows + r] = best
    barrier(t)
    for r in range(rows):
        s.out[r] = s.best[r]
        for i in range(1, t.size):
            other = s.best[i * rows + r]
            if other >= 0 and (s.out[r] < 0 or s.logits[r * ld + other] > s.logits[r * ld + s.out[r]]):
                s.out[r] = other


@njit(cache=True)
def embed_rows(tokens, rows, table, hidden, x):
    keep_apart()
    for r in range(rows):
        start = tokens[r] * hidden
        for i in range(hidden):
            x[r * hidden + i] = widen(table[start + i])
