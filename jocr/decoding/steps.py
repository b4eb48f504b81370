"""What decoding asks of a model: fill a page's cache, run a few rows of several pages, draft a few tokens.

The scheduler knows this interface only. ``TorchSteps`` runs anywhere; ``CompiledSteps`` is the same arithmetic on a
CPU: for small fp32 models, where the overhead of single operations would dominate, and for bf16 models of any size,
whose weights it reads at the memory's speed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from jocr.decoding.cache import SlotCache
from jocr.decoding.depth import OPEN


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive rows of one page: ``tokens`` stand at positions ``start``, ``start + 1`` ... of slot ``slot``."""

    slot: int
    start: int
    tokens: Sequence[int]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A page that is to run on for some rounds: what the draft's cache lacks of it, and how far it may go."""

    slot: int
    start: int  # position of the first of ``tokens``
    tokens: Sequence[int]  # committed; the last one has not been read by the verifier; only it where nothing is drafted
    depth: int
    room: int  # tokens it may still get


@dataclass(frozen=True, slots=True)
class Ran:
    """What some rounds may commit; lists by page."""

    spans: list[list[int]]
    drafted: list[list[int]]  # by position of the draft
    accepted: list[list[int]]
    filled: list[int]  # where the draft's cache ends, for pages that drafted
    rounds: int


class Steps(Protocol):
    """Greedy choices of the verifier and of the draft head, with the cache kept up to date."""

    cache: SlotCache
    guarantee: str  # "exact": a row's result does not depend on the other rows; else "up to near-ties"
    clock: Callable[[], float]  # seconds of work; on a CPU the thread's own, so that other processes do not count

    def prefill(self, slot: int, ids: Tensor, visual: Tensor | None) -> int:
        """Fill a slot with a prompt, ids (T,) with visual rows (n, H).

        Returns:
            the first token.
        """
        ...

    def prime(self, slot: int, ids: Tensor, visual: Tensor | None) -> None:
        """Fill the draft's cache over a prompt that was prefilled; once, at any time before the page's first draft."""
        ...

    def verify(self, pages: Sequence[Rows]) -> list[list[int]]:
        """The verifier's choice after every row given; its states go to ``cache.hidden``."""
        ...

    def logits(self, slot: int, position: int) -> Tensor:
        """The verifier's logits (V,) after one row that ``prefill`` or ``verify`` has read, always computed alone."""
        ...

    def draft(self, pages: Sequence[Rows], depths: Sequence[int], gate: float = OPEN) -> list[list[int]]:
        """Refill the draft's cache with committed rows, then propose 1 to ``depths[i]`` tokens after the last one.

        A page gets no further proposal once the product of its proposals' probabilities is not above ``gate``.

        The state before each row given must be in ``cache.hidden``.
        """
        ...


class ManyRounds(Protocol):
    """Steps that can run several rounds without coming back."""

    def run(self, pages: Sequence[Stretch], most: int, gate: float, eos: int) -> Ran:
        """Up to ``most`` rounds, ending with the one in which a page used up its room or met ``eos``.

        The rounds are those of ``draft`` and ``verify``: what is committed, and what is proposed, is the same.
        """
        ...
