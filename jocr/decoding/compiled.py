"""The decoder and the draft head for a few rows at a time, in one compiled call each.

Everything works on flat fp32 arrays: ``w`` holds all weights (see ``compiled_weights.pack_model``), ``k`` and ``v`` the
cache, ``s`` the scratch memory. Rows of any pages stand one after another; row r is token ``tokens[r]`` of slot
``slots[r]`` at position ``places[r]``. Keys are stored transposed, (head_dim, capacity) a head, so that scores and the
weighted sum of values are the same matrix kernel as the linear layers.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from jocr.decoding.kernels import MOST_ROWS, WIDTH, keep_apart, product
from jocr.decoding.vector_math import argmax, rms_norm, rotate_half, softmax, swiglu

Dims = namedtuple("Dims", "hidden layers heads head_dim vocab dense experts chosen routed shared renorm scale eps")
"""Sizes: ``dense``, ``routed``, ``shared`` are MLP widths; ``renorm`` 0 or 1; ``scale`` of the routed experts."""

Offsets = namedtuple("Offsets", "layer embed norm head draft_embed enorm hnorm eh draft_norm draft_head")
"""Where each weight starts in ``w``; ``layer`` is (layers + 1, 8), the last row the draft block's."""

Cache = namedtuple("Cache", "k v hidden slots capacity cos sin")
"""Flat keys, values and states of all slots; rotary tables (length, head_dim)."""

Scratch = namedtuple("Scratch", "x a y wide gather before scores chosen weight slots places")
"""Row buffers, enough for the most rows of one call."""

INPUT_NORM, QKV, OUT, POST_NORM, GATE_UP, DOWN, EXPERT_UP, EXPERT_DOWN = range(8)


@njit(cache=True, inline="always")
def pad(width):
    """``width`` rounded up to whole panels."""
    return (width + WIDTH - 1) // WIDTH * WIDTH


@njit(cache=True)
def linear(x, x_ld, rows, w, at, ins, outs, y, y_ld, add):
    """y (+)= x @ W^T for a packed W (outs, ins) that starts at ``at``."""
    keep_apart()
    product(x, 0, x_ld, rows, w, at, WIDTH, ins * WIDTH, pad(outs) // WIDTH, ins, y, 0, y_ld, add)


@njit(cache=True)
def norm_rows(x, rows, hidden, w, at, eps, out):
    keep_apart()
    weight = w[at : at + hidden]
    for r in range(rows):
        rms_norm(x[r * hidden : r * hidden + hidden], weight, eps, out[r * hidden : r * hidden + hidden])


@njit(cache=True)
def store_kv(layer, qkv, rows, slots, places, d, c):
    """Rotate queries (scaled) and keys in place; put keys and values into the cache."""
    keep_apart()
    dim, hidden, scale = d.head_dim, d.heads * d.head_dim, np.float32(1.0 / np.sqrt(d.head_dim))
    ld = pad(3 * hidden)
    for r in range(rows):
        cos, sin = c.cos[places[r]], c.sin[places[r]]
        for h in range(d.heads):
            q = r * ld + h * dim
            key, value = q + hidden, q + 2 * hidden
            rotate_half(qkv[q : q + dim], cos, sin, scale)
            rotate_half(qkv[key : key + dim], cos, sin, np.float32(1.0))
            base = ((layer * c.slots + slots[r]) * d.heads + h) * dim * c.capacity
            for i in range(dim):
                c.k[base + i * c.capacity + places[r]] = qkv[key + i]
            base += places[r] * dim
            c.v[base : base + dim] = qkv[value : value + dim]


@njit(cache=True)
def attend(layer, qkv, rows, slots, places, d, c, scores, out):
    """Every row against all positions up to its own; up to six neighbouring rows of a page share a pass."""
    keep_apart()
    dim, hidden = d.head_dim, d.heads * d.head_dim
    ld, r = pad(3 * hidden), 0
    while r < rows:
        n = 1
        while n < MOST_ROWS and r + n < rows and slots[r + n] == slots[r] and places[r + n] == places[r] + n:
            n += 1
        end = places[r] + n
        for h in range(d.heads):
            base = ((layer * c.slots + slots[r]) * d.heads + h) * dim * c.capacity
            panels = pad(end) // WIDTH
            product(
                qkv, r * ld + h * dim, ld, n, c.k, base, c.capacity, WIDTH, panels, dim, scores, 0, c.capacity, False
            )
            for i in range(n):
                line = i * c.capacity
                softmax(scores[line : line + end - n + 1 + i])
                scores[line + end - n + 1 + i : line + end] = np.float32(0.0)
            product(
                scores,
                0,
                c.capacity,
                n,
                c.v,
                base,
                dim,
                WIDTH,
                dim // WIDTH,
                end,
                out,
                r * hidden + h * dim,
                hidden,
                False,
            )
        r += n


@njit(cache=True)
def route(scores, ld, rows, at, d, chosen, weight):
    """Softmax over the experts, the largest ``d.chosen`` of each row, in order of expert."""
    keep_apart()
    for r in range(rows):
        row = scores[r * ld + at : r * ld + at + d.experts]
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
def mlp(a, rows, w, up, down, hidden, width, more, wide, out, add):
    """out (+)= down(silu(gate(a)) * up(a)); ``more`` further outputs (the router's) follow gate and up."""
    keep_apart()
    half = pad(width)
    ld = 2 * half + pad(more)
    linear(a, hidden, rows, w, up, hidden, ld, wide, ld, False)
    for r in range(rows):
        swiglu(wide[r * ld : r * ld + width], wide[r * ld + half : r * ld + half + width])
    linear(wide, ld, rows, w, down, width, hidden, out, hidden, add)


@njit(cache=True)
def experts(a, rows, w, line, d, chosen, weight, gather, wide, y, x):
    """x += the chosen experts' outputs; each expert takes all rows that want it in one pass."""
    keep_apart()
    hidden, half = d.hidden, pad(d.routed)
    up_size, down_size = 2 * half * hidden, hidden * d.routed
    for e in range(d.experts):
        n = 0
        for r in range(rows):
            if chosen[r * d.experts + e]:
                gather[n * hidden : n * hidden + hidden] = a[r * hidden : r * hidden + hidden]
                n += 1
        if n == 0:
            continue
        mlp(
            gather,
            n,
            w,
            line[EXPERT_UP] + e * up_size,
            line[EXPERT_DOWN] + e * down_size,
            hidden,
            d.routed,
            0,
            wide,
            y,
            False,
        )
        n = 0
        for r in range(rows):
            if chosen[r * d.experts + e]:
                gain = weight[r * d.experts + e]
                for i in range(hidden):
                    x[r * hidden + i] += gain * y[n * hidden + i]
                n += 1


@njit(cache=True)
def feed(x, rows, w, line, d, s):
    """x += MLP or mixture of experts of the normed rows."""
    keep_apart()
    norm_rows(x, rows, d.hidden, w, line[POST_NORM], np.float32(d.eps), s.a)
    if line[EXPERT_UP] < 0:
        mlp(s.a, rows, w, line[GATE_UP], line[DOWN], d.hidden, d.dense, 0, s.wide, x, True)
        return
    mlp(s.a, rows, w, line[GATE_UP], line[DOWN], d.hidden, d.shared, d.experts, s.wide, x, True)
    half = 2 * pad(d.shared)
    route(s.wide, half + pad(d.experts), rows, half, d, s.chosen, s.weight)
    experts(s.a, rows, w, line, d, s.chosen, s.weight, s.gather, s.wide, s.y, x)


@njit(cache=True)
def mix(x, rows, layer, w, line, slots, places, d, c, s):
    """x += attention of the normed rows."""
    keep_apart()
    hidden = d.heads * d.head_dim
    norm_rows(x, rows, d.hidden, w, line[INPUT_NORM], np.float32(d.eps), s.a)
    linear(s.a, d.hidden, rows, w, line[QKV], d.hidden, 3 * hidden, s.wide, pad(3 * hidden), False)
    store_kv(layer, s.wide, rows, slots, places, d, c)
    attend(layer, s.wide, rows, slots, places, d, c, s.scores, s.y)
    linear(s.y, hidden, rows, w, line[OUT], hidden, d.hidden, x, d.hidden, True)


@njit(cache=True)
def choose(x, rows, w, at, d, s, out):
    """Greedy token of every row of post-norm states."""
    keep_apart()
    ld = pad(d.vocab)
    linear(x, d.hidden, rows, w, at, d.hidden, d.vocab, s.wide, ld, False)
    for r in range(rows):
        out[r] = argmax(s.wide[r * ld : r * ld + d.vocab])


@njit(cache=True)
def embed_rows(tokens, rows, w, at, hidden, x):
    keep_apart()
    for r in range(rows):
        start = at + tokens[r] * hidden
        x[r * hidden : r * hidden + hidden] = w[start : start + hidden]


@njit(cache=True)
def decode_rows(rows, slots, places, w, o, d, c, s):
    """The rows embedded in ``s.x`` through all layers; post-norm states to ``c.hidden`` and ``s.a``."""
    keep_apart()
    hidden = d.hidden
    for layer in range(d.layers):
        line = o.layer[layer]
        mix(s.x, rows, layer, w, line, slots, places, d, c, s)
        feed(s.x, rows, w, line, d, s)
    norm_rows(s.x, rows, hidden, w, o.norm, np.float32(d.eps), s.a)
    for r in range(rows):
        at = (slots[r] * c.capacity + places[r]) * hidden
        c.hidden[at : at + hidden] = s.a[r * hidden : r * hidden + hidden]


@njit(cache=True)
def verify(tokens, rows, slots, places, w, o, d, c, s, out):
    """The verifier's greedy token after every row."""
    embed_rows(tokens, rows, w, o.embed, d.hidden, s.x)
    decode_rows(rows, slots, places, w, o, d, c, s)
    choose(s.a, rows, w, o.head, d, s, out)
