"""The draft head, compiled: fill its cache over a prompt, refill it over committed rows, chain a few proposals.

A refilled row only has to leave its key and value behind; attention, MLP and head are computed for each page's last
row alone.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from jocr.decoding.compiled import (
    INPUT_NORM,
    OUT,
    QKV,
    attend,
    choose,
    embed_rows,
    feed,
    linear,
    norm_rows,
    pad,
    store_kv,
)
from jocr.decoding.kernels import keep_apart
from jocr.decoding.vector_math import probability, rms_norm


@njit(cache=True)
def fill(rows, slots, places, w, o, d, c, s):
    """Keys and values of rows embedded in ``s.x`` after the states in ``s.before``; queries stay in ``s.wide``."""
    keep_apart()
    hidden, eps = d.hidden, np.float32(d.eps)
    for r in range(rows):
        at, pair = r * hidden, 2 * r * hidden
        rms_norm(s.x[at : at + hidden], w[o.enorm : o.enorm + hidden], eps, s.wide[pair : pair + hidden])
        rms_norm(
            s.before[at : at + hidden], w[o.hnorm : o.hnorm + hidden], eps, s.wide[pair + hidden : pair + 2 * hidden]
        )
    linear(s.wide, 2 * hidden, rows, w, o.eh, 2 * hidden, hidden, s.x, hidden, False)
    line = o.layer[d.layers]
    norm_rows(s.x, rows, hidden, w, line[INPUT_NORM], eps, s.a)
    inner = 3 * d.heads * d.head_dim
    linear(s.a, hidden, rows, w, line[QKV], hidden, inner, s.wide, pad(inner), False)
    store_kv(d.layers, s.wide, rows, slots, places, d, c)


@njit(cache=True)
def finish(rows, slots, places, w, o, d, c, s, out):
    """The rest of the block, final norm and head for the first ``rows`` rows; states stay in ``s.a``."""
    keep_apart()
    line = o.layer[d.layers]
    inner = d.heads * d.head_dim
    attend(d.layers, s.wide, rows, slots, places, d, c, s.scores, s.y)
    linear(s.y, inner, rows, w, line[OUT], inner, d.hidden, s.x, d.hidden, True)
    feed(s.x, rows, w, line, d, s)
    norm_rows(s.x, rows, d.hidden, w, o.draft_norm, np.float32(d.eps), s.a)
    choose(s.a, rows, w, o.draft_head, d, s, out)


@njit(cache=True)
def prime(rows, slots, places, w, o, d, c, s):
    """Fill over a prompt embedded in ``s.x``: slot j pairs it with the state at j - 1; nothing stands at position 0."""
    hidden = d.hidden
    s.x[:hidden] = np.float32(0.0)
    s.before[:hidden] = np.float32(0.0)
    start = slots[0] * c.capacity * hidden
    s.before[hidden : rows * hidden] = c.hidden[start : start + (rows - 1) * hidden]
    fill(rows, slots, places, w, o, d, c, s)


@njit(cache=True)
def draft(tokens, counts, slots, starts, depths, gate, pages, w, o, d, c, s, out, made):
    """Refill page i with ``counts[i]`` tokens from ``starts[i]`` on, then propose ``made[i]`` tokens in out[i]: up to
    ``depths[i]``, and none after one that takes the probability of the chain to ``gate`` or below."""
    hidden, rows = d.hidden, 0
    for i in range(pages):
        for j in range(counts[i]):
            s.slots[rows], s.places[rows] = slots[i], starts[i] + j
            at = (slots[i] * c.capacity + starts[i] + j - 1) * hidden
            s.before[rows * hidden : rows * hidden + hidden] = c.hidden[at : at + hidden]
            rows += 1
    embed_rows(tokens, rows, w, o.draft_embed, hidden, s.x)
    fill(rows, s.slots, s.places, w, o, d, c, s)
    _last_rows(counts, pages, d, s)
    active = np.arange(pages)
    chosen, sure, ld = np.empty(pages, np.int64), np.ones(pages), pad(d.vocab)
    step = 0
    while True:
        live = len(active)
        finish(live, s.slots, s.places, w, o, d, c, s, chosen)
        step, kept = step + 1, 0
        for r in range(live):
            page = active[r]
            out[page, step - 1], made[page] = chosen[r], step
            if depths[page] > step and gate > 0.0:
                sure[page] *= probability(s.wide[r * ld : r * ld + d.vocab], chosen[r])
            if depths[page] > step and sure[page] > gate:
                active[kept], chosen[kept] = page, chosen[r]
                s.slots[kept], s.places[kept] = s.slots[r], s.places[r] + 1
                s.before[kept * hidden : kept * hidden + hidden] = s.a[r * hidden : r * hidden + hidden]
                kept += 1
        if kept == 0:
            return
        active = active[:kept]
        embed_rows(chosen, kept, w, o.draft_embed, hidden, s.x)
        fill(kept, s.slots, s.places, w, o, d, c, s)


@njit(cache=True)
def _last_rows(counts, pages, d, s):
    """Move each page's last row to the front of the buffers."""
    hidden, inner = d.hidden, pad(3 * d.heads * d.head_dim)
    r = -1
    for i in range(pages):
        r += counts[i]
        if r == i:
            continue
        s.x[i * hidden : i * hidden + hidden] = s.x[r * hidden : r * hidden + hidden]
        s.wide[i * inner : i * inner + inner] = s.wide[r * inner : r * inner + inner]
        s.slots[i], s.places[i] = s.slots[r], s.places[r]
