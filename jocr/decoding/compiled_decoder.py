"""The decoder's calls from outside, each by every thread of a team: read rows and choose tokens; compute logits."""

from __future__ import annotations

import numpy as np
from numba import njit

from jocr.decoding.compiled import choose, embed_rows, linear, mix, norm_rows, pad
from jocr.decoding.compiled_mlp import feed
from jocr.decoding.kernels import ROW, SET
from jocr.decoding.team import barrier


@njit(cache=True, nogil=True)
def decode(tokens, rows, asked, slots, places, w, o, d, c, s, t):
    """Rows through all layers, post-norm states to ``c.hidden``; greedy tokens after the last ``asked``, to ``s.out``.

    Without ``tokens`` the rows stand in ``s.x`` already (a prompt, with its visual rows).
    """
    hidden = d.hidden
    if t.me == 0 and len(tokens) > 0:
        embed_rows(tokens, rows, w.embed, hidden, s.x)
    barrier(t)
    for layer in range(d.layers):
        line = o.layer[layer]
        mix(rows, layer, w, line, slots, places, d, c, s, t)
        feed(rows, w, line, d, s, t)
    norm_rows(s.x, rows, hidden, w.vectors, o.norm, np.float32(d.eps), s.a)
    if t.me == 0:
        for r in range(rows):
            at = (slots[r] * c.capacity + places[r]) * hidden
            c.hidden[at : at + hidden] = s.a[r * hidden : r * hidden + hidden]
    choose(s.a[(rows - asked) * hidden : rows * hidden], asked, w, o.head, d, s, t)


@njit(cache=True, nogil=True)
def logits(state, w, o, d, s, t):
    """The verifier's logits of one post-norm state, to ``s.logits``."""
    linear(state, d.hidden, ROW, w.matrices, o.head, d.hidden, d.vocab, s.logits, pad(d.vocab), SET, t)
