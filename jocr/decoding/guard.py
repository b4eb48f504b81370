"""The loop guard with its inner loop compiled: the same answers as ``LoopGuard``, many tokens in one call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from jocr.markup.repeats import TEXT_EVERY, LoopGuard, Repeat


class CompiledGuard(LoopGuard):
    """``LoopGuard`` for the decoder. Tokens are compared in compiled code; what is judged, and when, is the same."""

    def scan(self, token_ids: Sequence[int]) -> tuple[int, Repeat | None]:
        """``push`` of one token after the other up to the first that ends a loop: how many were taken, and the loop."""
        tokens, taken = np.array(token_ids, np.int64), 0
        while self._size + len(tokens) > len(self._tokens):
            self._tokens = np.concatenate([self._tokens, np.full(len(self._tokens), -1, np.int64)])
        every = TEXT_EVERY if self._decode else 0
        while taken < len(tokens):
            state = self._tokens, self._size, self._equal, self._due, self._first_due
            moved, ripe = advance(tokens[taken:], *state, every)
            taken += moved
            self._size += moved
            found = self._look(np.flatnonzero(self._equal >= self._due)) if ripe else None
            if found is None and self._decode and self._size % TEXT_EVERY == 0:
                found = self._look_at_text(self._decode)
            if found is not None:
                return taken, found
        return taken, None


@njit(cache=True)
def advance(tokens, kept, size, equal, due, first_due, every):
    """Append tokens up to the first after which something has to be looked at: an equal stretch that is due, or the
    text (each ``every`` tokens; 0 for never). How many were appended, and whether a stretch is due."""
    for n in range(len(tokens)):
        token, at = tokens[n], size + n
        kept[at] = token
        ripe = False
        for i in range(min(at, len(equal))):
            same = kept[at - 1 - i] == token
            equal[i] = equal[i] + 1 if same else 0
            due[i] = due[i] if same else first_due[i]
            ripe |= equal[i] >= due[i]
        if ripe or (every and (at + 1) % every == 0):
            return n + 1, ripe
    return len(tokens), False
