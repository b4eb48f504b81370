"""When a page ends: end token, token limit, repetition, time.

Everything is decided token by token on the verified text, so how many tokens a round commits cannot change the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Protocol

from jocr.markup.repeats import Repeat
from jocr.records import Stop


class Guard(Protocol):
    """Watches the verified tokens; ``jocr.markup.repeats.LoopGuard`` is the real one."""

    def push(self, token_ids: Iterable[int]) -> Repeat | None:
        """The loop that ends with these tokens, or None."""
        ...


class Stopper:
    """Decides for one page.

    Args:
        eos: id of the end token.
        limit: tokens the page may have.
        guard: a fresh guard of this page; None to let it loop.
        seconds: wall time the page may take from now on; None for no limit. The one rule that depends on speed.
    """

    def __init__(self, eos: int, limit: int, guard: Guard | None = None, seconds: float | None = None,
                 clock: Callable[[], float] = perf_counter) -> None:  # fmt: skip
        self.eos, self.limit, self.guard, self.clock = eos, limit, guard, clock
        self.seconds = seconds
        self.begun = clock()
        self.stop: Stop | None = None if limit > 0 else "length"
        self.detail = ""
        self.keep: int | None = None

    def take(self, tokens: list[int], span: Sequence[int]) -> None:
        """Append to ``tokens`` what may be kept of ``span``; sets ``stop`` where the page ends there."""
        for token in span:
            if self.stop is not None:
                return
            if token == self.eos:
                self.stop = "end"
                return
            tokens.append(token)
            if self.guard is not None:
                self._look(self.guard, token)
            if self.stop is None and len(tokens) >= self.limit:
                self.stop = "length"
        self.check_time(len(tokens))

    def _look(self, guard: Guard, token: int) -> None:
        if (found := guard.push((token,))) is not None:
            self.stop = "loop"
            self.keep = found.start + found.period  # what was said once is kept
            self.detail = f"{found.count} copies of {found.period} tokens from token {found.start} on"

    def check_time(self, tokens: int) -> None:
        """End the page as an error where its time is over."""
        if self.stop is None and self.seconds is not None and self.clock() - self.begun > self.seconds:
            self.stop = "error"
            self.detail = f"decode_timeout: {tokens} tokens after {self.clock() - self.begun:.1f} s"

    def trim(self, tokens: list[int]) -> list[int]:
        """Tokens without the repetition that ended them."""
        return tokens if self.keep is None else tokens[: self.keep]
