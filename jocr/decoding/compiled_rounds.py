"""Several rounds of several pages in one compiled call: draft, verify, accept, and on, without Python in between.

A round's few matrix products take about as long as the Python that would prepare them, so small models run many
rounds between two looks of the scheduler. What is committed is what single rounds commit: the rule is ``verify``'s.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from jocr.decoding.compiled_decoder import decode
from jocr.decoding.compiled_draft import draft
from jocr.decoding.kernels import NONE


@njit(cache=True, nogil=True)
def run(most, gate, eos, slots, starts, depths, room, q, w, o, d, c, s, text, held, filled, drafted, accepted, done, t):
    """Up to ``most`` rounds; ends earlier after the round in which a page ended.

    ``q`` are the weights that the draft reads. Page i holds ``held[i]`` committed tokens ``text[i]``, the first at
    ``starts[i]``; the last one has not been read by the verifier. Its draft cache is whole before position
    ``filled[i]``. It may get ``room[i]`` tokens. New tokens are appended to ``text``; proposals and accepted ones are
    counted by position; ``done[0]`` counts rounds. Every thread of a team is given arrays of its own to write to.
    """
    pages, widest = len(slots), drafted.shape[1]
    had, made, who = held.copy(), np.zeros(pages, np.int64), np.zeros(pages, np.int64)
    counts, where, begins, deep = (np.zeros(pages, np.int64), np.zeros(pages, np.int64), np.zeros(pages, np.int64),
                                   np.zeros(pages, np.int64))  # fmt: skip
    drafts, fresh = np.zeros((pages, widest), np.int64), np.zeros(text.size, np.int64)
    most_rows = pages * (widest + 1)
    tokens, lines, places = (np.zeros(most_rows, np.int64), np.zeros(most_rows, np.int64),
                             np.zeros(most_rows, np.int64))  # fmt: skip
    over = False
    while done[0] < most and not over:
        busy, n = NONE, NONE
        for i in range(pages):
            depth = min(depths[i], room[i] - (held[i] - had[i]) - 1)
            if depth <= 0:
                continue
            first = filled[i] - starts[i]
            who[busy], where[busy], begins[busy], deep[busy] = i, slots[i], filled[i], depth
            counts[busy] = held[i] - first
            fresh[n : n + counts[busy]] = text[i, first : held[i]]
            n += counts[busy]
            filled[i] = starts[i] + held[i]
            busy += 1
        if busy:
            draft(
                fresh[:n], counts[:busy], where[:busy], begins[:busy], deep[:busy], gate, busy, q, o, d, c, s,
                drafts, made, t,
            )  # fmt: skip
        rows = _lay_out(busy, who, made, drafts, slots, starts, text, held, tokens, lines, places)
        decode(tokens[:rows], rows, rows, lines[:rows], places[:rows], w, o, d, c, s, t)
        over = _accept(busy, who, made, drafts, s.out, eos, room, had, text, held, drafted, accepted)
        done[0] += 1


@njit(cache=True)
def _lay_out(busy, who, made, drafts, slots, starts, text, held, tokens, lines, places):
    """The rows to verify: each page's newest token and its proposals. Returns their number."""
    rows, b = NONE, NONE
    for i in range(len(slots)):
        mine = b < busy and who[b] == i
        k = made[b] if mine else NONE
        for j in range(k + 1):
            tokens[rows + j] = drafts[b, j - 1] if j else text[i, held[i] - 1]
            lines[rows + j], places[rows + j] = slots[i], starts[i] + held[i] - 1 + j
        if mine:
            b += 1
        rows += k + 1
    return rows


@njit(cache=True)
def _accept(busy, who, made, drafts, chosen, eos, room, had, text, held, drafted, accepted):
    """Commit proposals while they are the verifier's own choices, then its next one. Whether a page has ended."""
    r, b, over = NONE, NONE, False
    for i in range(len(held)):
        k, n = NONE, NONE
        if b < busy and who[b] == i:
            k = made[b]
            while n < k and drafts[b, n] == chosen[r + n]:
                n += 1
            drafted[i, :k] += 1
            accepted[i, :n] += 1
            b += 1
        for j in range(n + 1):
            text[i, held[i]] = chosen[r + j]
            held[i] += 1
            over |= chosen[r + j] == eos
        over |= held[i] - had[i] >= room[i]
        r += k + 1
    return over
