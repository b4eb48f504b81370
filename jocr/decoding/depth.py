"""How far to draft: a fixed depth, or chosen live from recent acceptance and measured costs.

With acceptance a_i at position i (given that the ones before were accepted), a round of depth K commits
1 + a_1 + a_1 a_2 + ... + a_1..a_K tokens on average. ``AutoDepth`` takes the K with the most tokens per second by
the round times it has measured; K = 0 is plain decoding. While drafting it looks at a plain round now and then, while
plain it probes ever more rarely, so that both acceptance and costs stay current.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

MAX_DEPTH = 5
RETHINK = 4  # rounds between two looks at which depth is best
SHRINK = 2.0  # observations that the position before is worth


@dataclass
class Acceptance:
    """Decayed counts per draft position."""

    hits: list[float]
    tries: list[float]
    decay: float = 0.97

    @classmethod
    def prior(cls, rates: Sequence[float] = (0.7,) * MAX_DEPTH, weight: float = 4.0) -> Acceptance:
        """Start from ``rates``, worth ``weight`` observations each."""
        return cls([rate * weight for rate in rates], [weight] * MAX_DEPTH)

    def observe(self, depth: int, accepted: int) -> None:
        """One round that drafted. Every position's memory fades; those whose proposal was judged are renewed."""
        judged = min(accepted + 1, depth)  # proposals after the first wrong one were not
        for i in range(MAX_DEPTH if depth else 0):
            self.hits[i] = self.decay * self.hits[i] + (i < accepted)
            self.tries[i] = self.decay * self.tries[i] + (i < judged)

    def rates(self) -> list[float]:
        """Conditional acceptance of every position; one not seen lately is believed to be like the one before it."""
        rates: list[float] = []
        for hits, tries in zip(self.hits, self.tries, strict=True):
            rates.append((hits + SHRINK * rates[-1]) / (tries + SHRINK) if rates else hits / tries)
        return rates

    def expected(self) -> list[float]:
        """Tokens that a round of depth 0, 1 ... is expected to commit."""
        tokens = [1.0]
        chance = 1.0
        for rate in self.rates():
            chance *= rate
            tokens.append(tokens[-1] + chance)
        return tokens


class Costs:
    """Seconds of a round, by number of pages and depth.

    Held as a common base times a ratio for each kind of round: a machine that gets slower moves the base, and only a
    kind of round that got dearer than the others moves its ratio, so that kinds not seen lately stay comparable.
    """

    def __init__(self, base_rate: float = 0.2, ratio_rate: float = 0.05) -> None:
        self.base = 1.0
        self.ratios: dict[tuple[int, int], float] = {}
        self.base_rate, self.ratio_rate = base_rate, ratio_rate

    def set(self, pages: int, depth: int, seconds: float) -> None:
        """A calibrated value."""
        self.ratios[pages, depth] = seconds / self.base

    def observe(self, pages: int, depth: int, seconds: float) -> None:
        known = self.seconds(pages, depth)
        if known is None:
            self.set(pages, depth, seconds)
            return
        self.ratios[pages, depth] = known / self.base
        drift = min(max(seconds / known, 0.5), 2.0)  # one interrupted round must not count for more
        self.base *= drift**self.base_rate
        self.ratios[pages, depth] *= drift**self.ratio_rate

    def seconds(self, pages: int, depth: int) -> float | None:
        """Expected time of such a round; between page counts that were measured, interpolated."""
        if (ratio := self.ratios.get((pages, depth))) is not None:
            return ratio * self.base
        below = max((n for n, d in self.ratios if d == depth and n < pages), default=None)
        above = min((n for n, d in self.ratios if d == depth and n > pages), default=None)
        if below is None or above is None:
            return None
        low, high = self.ratios[below, depth], self.ratios[above, depth]
        return self.base * (low + (high - low) * (pages - below) / (above - below))


class DepthPolicy(Protocol):
    """Chooses each round's depth, the same for all pages in it."""

    def admit(self) -> Acceptance:
        """What is believed of a page not seen yet."""
        ...

    def choose(self, pages: Sequence[Acceptance]) -> int: ...

    def observe(self, pages: Sequence[Acceptance], depths: Sequence[int], accepted: Sequence[int],
                seconds: float) -> None: ...  # fmt: skip


class FixedDepth:
    """Always ``depth``."""

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def admit(self) -> Acceptance:
        return Acceptance.prior()

    def choose(self, pages: Sequence[Acceptance]) -> int:
        return self.depth

    def observe(self, pages: Sequence[Acceptance], depths: Sequence[int], accepted: Sequence[int],
                seconds: float) -> None:  # fmt: skip
        """Nothing to learn."""


class AutoDepth:
    """The depth that promises most tokens per second.

    Args:
        costs: round times; calibrate at least depths 0..5 for one page.
        margin: a round that drafts must promise this many times the plain rate.
        probe_every: plain rounds before the first probe; each probe doubles it, a new page resets it.
        plain_every: rounds that draft between two plain ones.
    """

    def __init__(self, costs: Costs, margin: float = 1.03, probe_every: int = 64, plain_every: int = 64) -> None:
        self.costs, self.margin = costs, margin
        self.overall = Acceptance.prior()
        self.first_probe = self.probe_every = probe_every
        self.plain_every = plain_every
        self.run = 0  # rounds since the last probe or plain round that was not the best
        self.rounds = 0
        self.known = (0, 0)  # pages and best depth when last worked out

    def admit(self) -> Acceptance:
        self.probe_every = self.first_probe
        self.known = (0, 0)
        return Acceptance.prior(self.overall.rates())

    def choose(self, pages: Sequence[Acceptance]) -> int:
        self.rounds += 1
        if self.known[0] != len(pages) or self.rounds % RETHINK == 0:
            self.known = (len(pages), self.best(pages))
        best = self.known[1]
        self.run += 1
        if best == 0 and self.run > self.probe_every:
            self.run, self.probe_every = 0, 2 * self.probe_every
            return 1
        if best and self.run > self.plain_every:
            self.run = 0
            return 0
        return best

    def best(self, pages: Sequence[Acceptance]) -> int:
        """The depth with the most tokens per second, by what is known now."""
        plain = self.costs.seconds(len(pages), 0)
        if plain is None:
            return 0
        expected = [sum(tokens) for tokens in zip(*(p.expected() for p in pages), strict=True)]
        best, most = 0, self.margin * expected[0] / plain
        for depth in range(1, MAX_DEPTH + 1):
            seconds = self.costs.seconds(len(pages), depth)
            if seconds is not None and expected[depth] / seconds > most:
                best, most = depth, expected[depth] / seconds
        return best

    def observe(self, pages: Sequence[Acceptance], depths: Sequence[int], accepted: Sequence[int],
                seconds: float) -> None:  # fmt: skip
        for page, depth, n in zip(pages, depths, accepted, strict=True):
            page.observe(depth, n)
            self.overall.observe(depth, n)
        if len(set(depths)) == 1:
            self.costs.observe(len(pages), depths[0], seconds)
