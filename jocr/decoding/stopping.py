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


class SpanGuard(Guard, Protocol):
    """A guard that takes many tokens at once."""

    def scan(self, token_ids: Sequence[int]) -> tuple[int, Repeat | None]:
        """``push`` of one token after the other up to the first that ends a loop: how many were taken, and the loop."""
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
        if self.stop is None:
            kept = list(span[: span.index(self.eos)] if self.eos in span else span)[: self.limit - len(tokens)]
            taken = self._look(kept)
            tokens += kept[:taken]
            if self.stop is None and len(tokens) >= self.limit:
                self.stop = "length"
            if self.stop is None and len(kept) < len(span):
                self.stop = "end"
        self.check_time(len(tokens))

    def _look(self, tokens: Sequence[int]) -> int:
        """Show the guard what is to be kept; how much of it may be."""
        if self.guard is None:
            return len(tokens)
        taken, found = scan(self.guard, tokens)
        if found is not None:
            self.stop = "loop"
            self.keep = found.start + found.period  # what was said once is kept
            self.detail = f"{found.count} copies of {found.period} tokens from token {found.start} on"
        return taken

    def check_time(self, tokens: int) -> None:
        """End the page as an error where its time is over."""
        if self.stop is None and self.seconds is not None and self.clock() - self.begun > self.seconds:
            self.stop = "error"
            self.detail = f"decode_timeout: {tokens} tokens after {self.clock() - self.begun:.1f} s"

    def trim(self, tokens: list[int]) -> list[int]:
        """Tokens without the repetition that ended them."""
        return tokens if self.keep is None else tokens[: self.keep]


def scan(guard: Guard, tokens: Sequence[int]) -> tuple[int, Repeat | None]:
    """See ``SpanGuard``; also for a guard that takes tokens one by one."""
    if (at_once := getattr(guard, "scan", None)) is not None:
        return at_once(tokens)
    for i, token in enumerate(tokens):
        if (found := guard.push((token,))) is not None:
            return i + 1, found
    return len(tokens), None
