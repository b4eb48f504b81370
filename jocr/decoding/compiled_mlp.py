"""The feed-forward half of a compiled block: one MLP, or shared and routed experts.

A team's thread computes its columns of every gate and up matrix, meets the others, and computes its columns of every
down matrix.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from jocr.decoding.compiled import DOWN, EXPERT_DOWN, EXPERT_UP, GATE_UP, POST_NORM, linear, norm_rows, pad
from jocr.decoding.kernels import ADD, NONE, SET, WIDTH, keep_apart
from jocr.decoding.products import multiply, span
from jocr.decoding.team import barrier, share
from jocr.decoding.vector_math import softmax, swiglu


@njit(cache=True)
def feed(rows, w, line, d, s, t):
    """s.x += MLP or mixture of experts of the normed rows. Ends at a barrier."""
    keep_apart()
    norm_rows(s.x, rows, d.hidden, w.vectors, line[POST_NORM], np.float32(d.eps), s.a)
    sparse = line[EXPERT_UP] >= 0
    width = d.shared if sparse else d.dense
    up(s.a, rows, w.matrices, line[GATE_UP], d.hidden, width, s.wide, NONE, t)
    if sparse:
        size, panels = span(w.matrices, d.hidden), pad(d.experts) // WIDTH
        at, ld = line[GATE_UP] + 2 * pad(width) // WIDTH * size, panels * WIDTH
        multiply(s.a, NONE, d.hidden, rows, w.matrices, at, size, panels, d.hidden, s.router, NONE, ld, SET)
        route(s.router, ld, rows, d, s.chosen, s.weight)
        experts_up(s.a, rows, w.matrices, line[EXPERT_UP], d, s.chosen, s.gather, s.inner, t)
    barrier(t)
    linear(s.wide, 2 * pad(width), rows, w.matrices, line[DOWN], width, d.hidden, s.x, d.hidden, ADD, t)
    if sparse:
        experts_down(rows, w.matrices, line[EXPERT_DOWN], d, s.chosen, s.weight, s.inner, s.y, s.x, t)
    barrier(t)


@njit(cache=True)
def up(a, rows, w, at, hidden, width, wide, wide_at, t):
    """silu(gate(a)) * up(a) in the first half of each row of ``wide``: this thread's columns."""
    keep_apart()
    half = pad(width)
    first, end = share(half // WIDTH, t)
    if first == end:
        return
    size, left, right = span(w, hidden), first * WIDTH, end * WIDTH
    if t.size == 1:
        multiply(a, NONE, hidden, rows, w, at, size, 2 * end, hidden, wide, wide_at, 2 * half, SET)
    else:
        for part in range(2):
            start, to = at + (part * half // WIDTH + first) * size, wide_at + part * half + left
            multiply(a, NONE, hidden, rows, w, start, size, end - first, hidden, wide, to, 2 * half, SET)
    for r in range(rows):
        line = wide_at + r * 2 * half
        swiglu(wide[line + left : line + right], wide[line + half + left : line + half + right])


@njit(cache=True)
def route(scores, ld, rows, d, chosen, weight):
    """Softmax over the experts, the largest ``d.chosen`` of each row, in order of expert."""
    keep_apart()
    for r in range(rows):
        row = scores[r * ld : r * ld + d.experts]
        softmax(row)
        total = np.float32(0.0)
        for e in range(d.experts):
            chosen[r * d.experts + e] = False
        for _ in range(d.chosen):
            best = -1
            for e in range(d.experts):
                if not chosen[r * d.experts + e] and (best < 0 or row[e] > row[best]):
                    best = e
            chosen[r * d.experts + best] = True
            total += row[best]
        for e in range(d.experts):
            gain = row[e] / total if d.renorm else row[e]
            weight[r * d.experts + e] = gain * np.float32(d.scale)


@njit(cache=True)
def experts_up(a, rows, w, at, d, chosen, gather, inner, t):
    """Each expert takes all rows that want it in one pass; the results stand one after another in ``inner``."""
    keep_apart()
    hidden, ld, done = d.hidden, 2 * pad(d.routed), NONE
    for e in range(d.experts):
        n = NONE
        for r in range(rows):
            if chosen[r * d.experts + e]:
                gather[n * hidden : n * hidden + hidden] = a[r * hidden : r * hidden + hidden]
                n += 1
        if n:
            up(gather, n, w, at + e * ld // WIDTH * span(w, hidden), hidden, d.routed, inner, done * ld, t)
            done += n


@njit(cache=True)
def experts_down(rows, w, at, d, chosen, weight, inner, y, x, t):
    """x += the experts' outputs, weighted, in order of expert: this thread's columns."""
    keep_apart()
    hidden, ld, done, size = d.hidden, 2 * pad(d.routed), NONE, span(w, d.routed)
    first, end = share(hidden // WIDTH, t)
    for e in range(d.experts):
        n = NONE
        for r in range(rows):
            n += chosen[r * d.experts + e]
        if n == 0:
            continue
        start = at + (e * (hidden // WIDTH) + first) * size
        multiply(inner, done * ld, ld, n, w, start, size, end - first, d.routed, y, first * WIDTH, hidden, SET)
        done, n = done + n, NONE
        for r in range(rows):
            if chosen[r * d.experts + e]:
                gain = weight[r * d.experts + e]
                for i in range(first * WIDTH, end * WIDTH):
                    x[r * hidden + i] += gain * y[n * hidden + i]
                n += 1
