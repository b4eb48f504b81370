"""How far to draft: a fixed depth, or chosen live for each page from what drafting brings it and what it costs.

A round that drafts for a page commits one token more than it had accepted. Each such token saves the page its share of
a plain round; each proposal costs a step of the draft head and a row to verify. ``AutoDepth`` drafts for the pages for
which, by recent rounds and measured costs, the savings are larger, and within a round goes on only while the chain of
proposals is likely enough to be right (``gate``): deep where the head is sure, no further where it is not. Where
nothing pays it probes ever more rarely. What is committed never depends on any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

MAX_DEPTH = 5
NEXT_RIGHT = 0.75  # how often the proposal after a sure chain is accepted: what going on is worth before it is drafted
OPEN = 0.0  # a gate that lets every chain go on
SURE = 0.95  # a gate is not set above
LEAST, MOST = 0.8, 4.0  # of what drafting costs, over what calibration said


@dataclass
class Belief:
    """What drafting has lately brought a page, a round: proposals and how many were accepted; both fade."""

    accepted: float = 6.0
    proposed: float = 8.4
    rounds: float = 6.0
    decay: float = 0.97

    def observe(self, accepted: int, proposed: int, rounds: int) -> None:
        keep = self.decay**rounds
        self.accepted = keep * self.accepted + accepted
        self.proposed = keep * self.proposed + proposed
        self.rounds = keep * self.rounds + rounds

    def weighing(self, rounds: float) -> Belief:
        """The same belief, held as if from so many rounds."""
        share = rounds / self.rounds
        return Belief(self.accepted * share, self.proposed * share, rounds, self.decay)


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds over a number of pages: of a plain round, and what each position of a draft adds (the head's step and
    the row to verify): once a round, and for each page that drafts."""

    plain: float
    first: float
    first_page: float
    further: float
    further_page: float

    def times(self, ratio: float) -> Prices:
        """The same with drafting so many times as dear."""
        drafting = (self.first, self.first_page, self.further, self.further_page)
        return Prices(self.plain, *(price * ratio for price in drafting))

    def toward(self, other: Prices, share: float) -> Prices:
        mix = [a + (b - a) * share for a, b in ((getattr(self, n), getattr(other, n)) for n in self.__slots__)]
        return Prices(*mix)

    def predict(self, drafted: Sequence[Sequence[int]], rounds: int) -> float:
        """Of some rounds with so many proposals, by page and position."""
        first = [page[0] if page else 0 for page in drafted]
        further = [sum(page[1:]) for page in drafted]
        drafting = self.first * max(first) + self.first_page * sum(first)
        return self.plain * rounds + drafting + self.further * max(further) + self.further_page * sum(further)


class Costs:
    """Measured prices by number of pages, and how much dearer drafting has turned out than they say.

    Only what drafting costs beside a plain round matters. It is learned from calls that follow one another, one that
    drafted and one that did not, so that a machine that gets slower, or is shared, changes nothing.
    """

    def __init__(self, rate: float = 0.15) -> None:
        self.known: dict[int, Prices] = {}
        self.ratios: dict[int, float] = {}  # by number of pages
        self.rate = rate
        self._plain: float | None = None  # of the last call, seconds over prediction, where it was plain
        self._drafted: tuple[float, float, float] | None = None  # else its seconds, and both parts of its prediction

    def set(self, pages: int, prices: Prices) -> None:
        """A calibrated value."""
        self.known[pages] = prices

    def of(self, pages: int) -> Prices | None:
        """Prices; between numbers of pages that were measured, interpolated. None where not known."""
        known = self._known(pages)
        return known.times(self.ratio(pages)) if known is not None else None

    def ratio(self, pages: int) -> float:
        """How much dearer than calibrated drafting for so many pages is."""
        return self.ratios.get(pages, 1.0)

    def _known(self, pages: int) -> Prices | None:
        below = max((n for n in self.known if n <= pages), default=None)
        above = min((n for n in self.known if n >= pages), default=None)
        if below is None or above is None:
            return None
        share = (pages - below) / (above - below) if above > below else 0.0
        return self.known[below].toward(self.known[above], share)

    def observe(self, pages: int, drafted: Sequence[Sequence[int]], rounds: int, seconds: float) -> None:
        """A call of ``rounds`` rounds over ``pages`` pages took so long."""
        prices = self._known(pages)
        if prices is None:
            return
        plain = prices.plain * rounds
        more = prices.predict(drafted, rounds) - plain
        if more > 0:
            if self._plain is not None:
                self._learn(pages, self._plain, seconds, plain, more)
            self._plain, self._drafted = None, (seconds, plain, more)
        else:
            if self._drafted is not None:
                self._learn(pages, seconds / plain, *self._drafted)
            self._plain, self._drafted = seconds / plain, None

    def _learn(self, pages: int, slower: float, seconds: float, plain: float, more: float) -> None:
        """From a machine's slowness in a plain call, and a call that drafted."""
        seen, old = (seconds - slower * plain) / (slower * more), self.ratio(pages)
        seen = min(max(seen, 0.5 * old), 2.0 * old)  # one interrupted call must not count for more
        self.ratios[pages] = min(max(old * (seen / old) ** self.rate, LEAST), MOST)


@dataclass(frozen=True, slots=True)
class Plan:
    """How the next call drafts: most proposals a round for each page, what ends a chain, most rounds."""

    depths: list[int]
    gate: float
    most: int


class DepthPolicy(Protocol):
    """Chooses how the next call drafts."""

    def admit(self) -> Belief:
        """What is believed of a page not seen yet."""
        ...

    def choose(self, pages: Sequence[Belief], most: int) -> Plan:
        """For a call of at most ``most`` rounds."""
        ...

    def observe(self, pages: Sequence[Belief], drafted: Sequence[Sequence[int]], accepted: Sequence[Sequence[int]],
                rounds: int, seconds: float) -> None: ...  # fmt: skip


class FixedDepth:
    """Always ``depth``."""

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def admit(self) -> Belief:
        return Belief()

    def choose(self, pages: Sequence[Belief], most: int) -> Plan:
        return Plan([self.depth] * len(pages), OPEN, most)

    def observe(self, pages: Sequence[Belief], drafted: Sequence[Sequence[int]], accepted: Sequence[Sequence[int]],
                rounds: int, seconds: float) -> None:  # fmt: skip
        """Nothing to learn."""


class AutoDepth:
    """Drafts for the pages for which it pays, as far as it pays.

    Args:
        costs: prices, calibrated at least for one page.
        margin: share of a plain round that drafting must save.
        probe_every: plain rounds before the first probe; each probe doubles it, up to ``probe_most``.
        plain_every: rounds that draft before a look at plain ones.
        probe: rounds of a probe or a look.
    """

    def __init__(self, costs: Costs, margin: float = 0.03, probe_every: int = 96, probe_most: int = 1024,
                 plain_every: int = 192, probe: int = 6) -> None:  # fmt: skip
        self.costs, self.margin, self.probe = costs, margin, probe
        self.overall = Belief(decay=0.99).weighing(24.0)
        self.first_probe = self.probe_every = probe_every
        self.probe_most, self.plain_every = probe_most, plain_every
        self.idle = self.busy = 0  # plain rounds since something was drafted, and the other way round
        self.speed = 1.0  # tokens in the time that a plain round takes for one, with what was chosen last

    def admit(self) -> Belief:
        return replace(self.overall.weighing(6.0), decay=0.97)

    def choose(self, pages: Sequence[Belief], most: int) -> Plan:
        prices = self.costs.of(len(pages))
        if prices is None:
            return Plan([0] * len(pages), OPEN, most)
        plain, value = prices.plain, prices.plain / len(pages)
        gains = [self._gain(page, prices, value) for page in pages]
        order = sorted(range(len(pages)), key=lambda i: -gains[i])
        best, chosen, total, longest, saved = self.margin * plain, 0, 0.0, 0.0, 0.0
        for n, i in enumerate(order, 1):
            total += gains[i]
            saved += value * pages[i].accepted / pages[i].rounds
            longest = max(longest, pages[i].proposed / pages[i].rounds)
            net = total - prices.first - prices.further * max(0.0, longest - 1.0)
            if net > best:
                best, chosen, self.speed = net, n, (plain + saved) / (plain + saved - net)
        if chosen:
            self.probe_every = self.first_probe
            if self.busy >= self.plain_every:  # a look at what plain rounds cost now
                return Plan([0] * len(pages), OPEN, min(most, self.probe))
        elif self.idle >= self.probe_every and value > prices.first + prices.first_page:
            chosen, most, self.speed = 1, min(most, self.probe), 1.0
            self.probe_every = min(2 * self.probe_every, self.probe_most)
        depths = [0] * len(pages)
        for i in order[:chosen]:
            depths[i] = MAX_DEPTH
        return Plan(depths, self._gate(prices, value, chosen) if chosen else OPEN, most)

    def _gain(self, page: Belief, prices: Prices, value: float) -> float:
        """Seconds a round that drafting saves for one page, but for what is paid once a round."""
        accepted, proposed = page.accepted / page.rounds, page.proposed / page.rounds
        return accepted * value - prices.first_page - prices.further_page * max(0.0, proposed - 1.0)

    def _gate(self, prices: Prices, value: float, chosen: int) -> float:
        """One more proposal must bring more tokens than its time is worth."""
        further = prices.further / chosen + prices.further_page
        return min(SURE, further * self.speed / value / NEXT_RIGHT)

    def observe(self, pages: Sequence[Belief], drafted: Sequence[Sequence[int]], accepted: Sequence[Sequence[int]],
                rounds: int, seconds: float) -> None:  # fmt: skip
        """A call over ``pages`` took so long. Nothing was drafted for those that are sampled."""
        self.costs.observe(len(drafted), drafted, rounds, seconds)
        drafting = False
        for page, d, a in zip(pages, drafted, accepted, strict=True):
            if any(d):
                drafting = True
                page.observe(sum(a), sum(d), d[0])
                self.overall.observe(sum(a), sum(d), d[0])
        self.idle = 0 if drafting else self.idle + rounds
        self.busy = self.busy + rounds if drafting else 0
