"""The draft head, compiled: fill its cache over a prompt, refill it over committed rows, chain a few proposals.

A refilled row only has to leave its key and value behind; attention, MLP and head are computed for each page's last
row alone.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from jocr.decoding.compiled import (
    INPUT_NORM,
    QKV,
    attend_out,
    choose,
    embed_rows,
    linear,
    norm_rows,
    pad,
    project_qkv,
    store_kv,
)
from jocr.decoding.compiled_mlp import feed
from jocr.decoding.kernels import NONE, SET, WIDTH, keep_apart
from jocr.decoding.team import barrier, share
from jocr.decoding.vector_math import probability, rms_norm


@njit(cache=True)
def fill(x, rows, slots, places, w, o, d, c, s, t):
    """Keys and values of rows ``x`` (embeddings) after the states in ``s.before``; queries stay in ``s.qkv``."""
    keep_apart()
    hidden, eps = d.hidden, np.float32(d.eps)
    enorm, hnorm = w.vectors[o.enorm : o.enorm + hidden], w.vectors[o.hnorm : o.hnorm + hidden]
    for r in range(rows):
        at, pair = r * hidden, 2 * r * hidden
        rms_norm(x[at : at + hidden], enorm, eps, s.pair[pair : pair + hidden])
        rms_norm(s.before[at : at + hidden], hnorm, eps, s.pair[pair + hidden : pair + 2 * hidden])
    barrier(t)
    linear(s.pair, 2 * hidden, rows, w.matrices, o.eh, 2 * hidden, hidden, s.x, hidden, SET, t)
    barrier(t)
    line = o.layer[d.layers]
    norm_rows(s.x, rows, hidden, w.vectors, line[INPUT_NORM], eps, s.a)
    project_qkv(s.a, rows, w.matrices, line[QKV], s.qkv, d, t)
    store_kv(d.layers, s.qkv, rows, slots, places, d, c, t)


@njit(cache=True)
def finish(rows, slots, places, w, o, d, c, s, t):
    """The rest of the block, final norm and head of the first ``rows`` rows; states to ``s.a``, tokens to ``s.out``."""
    keep_apart()
    line = o.layer[d.layers]
    attend_out(rows, d.layers, w, line, slots, places, d, c, s, t)
    feed(rows, w, line, d, s, t)
    norm_rows(s.x, rows, d.hidden, w.vectors, o.draft_norm, np.float32(d.eps), s.a)
    choose(s.a, rows, w, o.draft_head, d, s, t)


@njit(cache=True, nogil=True)
def prime(rows, slots, places, w, o, d, c, s, t):
    """Fill over a prompt embedded in ``s.x``: slot j pairs it with the state at j - 1; nothing stands at position 0."""
    hidden = d.hidden
    if t.me == 0:
        s.x[:hidden] = np.float32(0.0)
    s.before[:hidden] = np.float32(0.0)
    start = slots[0] * c.capacity * hidden
    s.before[hidden : rows * hidden] = c.hidden[start : start + (rows - 1) * hidden]
    barrier(t)
    fill(s.x, rows, slots, places, w, o, d, c, s, t)


@njit(cache=True, nogil=True)
def draft(tokens, counts, slots, starts, depths, gate, pages, w, o, d, c, s, out, made, t):
    """Refill page i with ``counts[i]`` tokens from ``starts[i]`` on, then propose ``made[i]`` tokens in out[i]: up to
    ``depths[i]``, and none after one that takes the probability of the chain to ``gate`` or below."""
    hidden, rows = d.hidden, NONE
    for i in range(pages):
        for j in range(counts[i]):
            s.slots[rows], s.places[rows] = slots[i], starts[i] + j
            at = (slots[i] * c.capacity + starts[i] + j - 1) * hidden
            s.before[rows * hidden : rows * hidden + hidden] = c.hidden[at : at + hidden]
            rows += 1
    embed_rows(tokens, rows, w.draft_embed, hidden, s.a)
    fill(s.a, rows, s.slots, s.places, w, o, d, c, s, t)
    _last_rows(counts, pages, d, s, t)
    active = np.arange(pages)
    chosen, sure, ld = np.empty(pages, np.int64), np.ones(pages), pad(d.vocab)
    step = NONE
    while True:
        live = len(active)
        finish(live, s.slots, s.places, w, o, d, c, s, t)
        step, kept = step + 1, NONE
        for r in range(live):
            page = active[r]
            out[page, step - 1], made[page] = s.out[r], step
            if depths[page] > step and gate > 0.0:
                sure[page] *= probability(s.logits[r * ld : r * ld + d.vocab], s.out[r])
            if depths[page] > step and sure[page] > gate:
                active[kept], chosen[kept] = page, s.out[r]
                s.slots[kept], s.places[kept] = s.slots[r], s.places[r] + 1
                s.before[kept * hidden : kept * hidden + hidden] = s.a[r * hidden : r * hidden + hidden]
                kept += 1
        if kept == 0:
            return
        active = active[:kept]
        embed_rows(chosen, kept, w.draft_embed, hidden, s.a)
        fill(s.a, kept, s.slots, s.places, w, o, d, c, s, t)


@njit(cache=True)
def _last_rows(counts, pages, d, s, t):
    """Move each page's last row to the front of the buffers: this thread's columns and heads."""
    hidden, inner = d.hidden, d.heads * d.head_dim
    first, end = share(hidden // WIDTH, t)
    left, right = share(d.heads, t)
    first, end, left, right = first * WIDTH, end * WIDTH, left * d.head_dim, right * d.head_dim
    barrier(t)
    r = -1
    for i in range(pages):
        r += counts[i]
        if r == i:
            continue
        to, at = i * hidden, r * hidden
        s.x[to + first : to + end] = s.x[at + first : at + end]
        to, at = 3 * i * inner, 3 * r * inner
        s.qkv[to + left : to + right] = s.qkv[at + left : at + right]
        s.slots[i], s.places[i] = s.slots[r], s.places[r]
