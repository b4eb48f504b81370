"""How far to draft: a fixed depth, or chosen live from recent gains, the head's own confidence and measured costs.

A round that drafts commits one token more than it had accepted, and costs so many plain rounds. ``AutoDepth`` drafts
while such rounds have lately committed more tokens than they cost, and within a round goes on only while the chain of
proposals is likely enough to be right (``gate``): deep where the head is sure, no further where it is not.
While drafting it looks at a plain round now and then, while plain it probes ever more rarely, so that both gains and
costs stay current. What is committed never depends on any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

MAX_DEPTH = 5
NEXT_RIGHT = 0.8  # how often the proposal after a sure chain is accepted: what going on is worth before it is drafted
OPEN = 0.0  # a gate that lets every chain go on


@dataclass
class Gain:
    """What rounds that drafted brought lately: tokens committed, and their cost in plain rounds; both fade."""

    tokens: float
    cost: float
    decay: float = 0.96

    @classmethod
    def prior(cls, rate: float = 1.1, weight: float = 6.0) -> Gain:
        """Start from ``rate`` tokens per plain round's cost, worth ``weight`` plain rounds."""
        return cls(rate * weight, weight)

    def observe(self, tokens: int, cost: float) -> None:
        self.tokens = self.decay * self.tokens + tokens
        self.cost = self.decay * self.cost + cost

    @property
    def rate(self) -> float:
        """Tokens in the time that a plain round takes for one."""
        return self.tokens / self.cost


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
    """Chooses how far each round may draft, the same for all pages in it."""

    gate: float  # a chain goes on while the product of its proposals' probabilities is above

    def admit(self) -> Gain:
        """What is believed of a page not seen yet."""
        ...

    def choose(self, pages: Sequence[Gain]) -> int: ...

    def observe(self, pages: Sequence[Gain], depths: Sequence[int], accepted: Sequence[int],
                seconds: float) -> None: ...  # fmt: skip


class FixedDepth:
    """Always ``depth``."""

    gate = OPEN

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def admit(self) -> Gain:
        return Gain.prior()

    def choose(self, pages: Sequence[Gain]) -> int:
        return self.depth

    def observe(self, pages: Sequence[Gain], depths: Sequence[int], accepted: Sequence[int],
                seconds: float) -> None:  # fmt: skip
        """Nothing to learn."""


class AutoDepth:
    """Drafts where and as far as it pays.

    Args:
        costs: round times; calibrate at least depths 0..5 for one page.
        margin: rounds that draft must have brought this many times the plain rate.
        probe_every: plain rounds before the first probe; each probe doubles it, a new page resets it.
        plain_every: rounds that draft between two plain ones.
    """

    def __init__(self, costs: Costs, margin: float = 1.02, probe_every: int = 64, plain_every: int = 64) -> None:
        self.costs, self.margin = costs, margin
        self.overall = Gain.prior(weight=24.0)
        self.overall.decay = 0.99
        self.first_probe = self.probe_every = probe_every
        self.plain_every = plain_every
        self.run = 0  # rounds since the last probe or plain round that was not the best
        self.gate = OPEN

    def admit(self) -> Gain:
        self.probe_every = self.first_probe
        return Gain.prior(self.overall.rate)

    def choose(self, pages: Sequence[Gain]) -> int:
        gain = sum(page.tokens for page in pages) / sum(page.cost for page in pages)
        self.run += 1
        if gain < self.margin or self.costs.seconds(len(pages), MAX_DEPTH) is None:
            if self.run <= self.probe_every:
                return 0
            self.run, self.probe_every = 0, 2 * self.probe_every
        elif self.run > self.plain_every:
            self.run = 0
            return 0
        self.gate = self._gate(len(pages), max(gain, 1.0))
        return MAX_DEPTH

    def _gate(self, pages: int, gain: float) -> float:
        """One more proposal costs a known share of a plain round and must bring more tokens than that time is worth."""
        plain, one, most = (self.costs.seconds(pages, depth) or 0.0 for depth in (0, 1, MAX_DEPTH))
        if not plain:
            return OPEN
        further = (most - one) / (MAX_DEPTH - 1) / plain
        return min(0.95, further * gain / NEXT_RIGHT)

    def observe(self, pages: Sequence[Gain], depths: Sequence[int], accepted: Sequence[int],
                seconds: float) -> None:  # fmt: skip
        depth = round(sum(depths) / len(depths))
        self.costs.observe(len(pages), depth, seconds)
        plain, mine = self.costs.seconds(len(pages), 0), self.costs.seconds(len(pages), depth)
        if plain is None or mine is None:
            return
        for page, drafted, n in zip(pages, depths, accepted, strict=True):
            if drafted:
                page.observe(n + 1, mine / plain)
                self.overall.observe(n + 1, mine / plain)
