"""Rounds for several pages: draft, verify, commit (FastMTP; self-speculation with a recursive draft head).

Plain greedy decoding is the same round at depth 0, so both take the same step. Steps that can run several rounds in
one call are asked to; what they return has gone through the same rule round by round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jocr.decoding.depth import OPEN, Belief
from jocr.decoding.sampling import Sampler
from jocr.decoding.steps import Ran, Rows, Steps, Stretch
from jocr.decoding.verify import accept

NO_END = -1  # an end token that no model has


@dataclass(slots=True)
class PageState:
    """A page being decoded. All but the last of its tokens are in the verifier's cache.

    Attributes:
        tokens: generated so far.
        draft_length: positions of the draft's cache that hold committed tokens paired with the verifier's states.
        primed: whether that cache is filled over the prompt; before that nothing may be drafted.
        sampler: draws the tokens of a page that is not greedy; its rounds have depth 0.
    """

    page_id: str
    slot: int
    prompt: int  # positions taken by the prompt
    limit: int  # tokens it may generate
    tokens: list[int]
    draft_length: int
    belief: Belief = field(default_factory=Belief)
    sampler: Sampler | None = None  # None: greedy
    primed: bool = False
    rounds: int = 0  # those that drafted
    drafted: list[int] = field(default_factory=list)  # per draft position
    accepted: list[int] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Positions in the verifier's cache: where the next row goes."""
        return self.prompt + len(self.tokens) - 1

    @property
    def room(self) -> int:
        """Tokens it may still get."""
        return self.limit - len(self.tokens)

    def count(self, drafted: Sequence[int], accepted: Sequence[int]) -> None:
        """Book proposals and accepted ones, by draft position."""
        self.rounds += drafted[0] if drafted else 0
        grow = [0] * (len(drafted) - len(self.drafted))
        self.drafted += grow
        self.accepted += grow
        for i, (d, a) in enumerate(zip(drafted, accepted, strict=True)):
            self.drafted[i] += d
            self.accepted[i] += a


@dataclass(frozen=True, slots=True)
class Round:
    """What a call may commit, page by page, and what it took in seconds of ``steps.clock``."""

    ran: Ran
    seconds: float

    @property
    def spans(self) -> list[list[int]]:
        return self.ran.spans


def speculate(steps: Steps, pages: Sequence[PageState], depths: Sequence[int], gate: float = OPEN, most: int = 1,
              eos: int = NO_END) -> Round:  # fmt: skip
    """In each round draft up to ``depths[i]`` tokens for page i, verify all rows in one pass, and keep what may be
    committed; up to ``most`` rounds, and none after one in which a page met ``eos`` or its limit.

    A chain of drafts ends early where the head gives it a smaller probability than ``gate``. Where a page is sampled,
    or the steps cannot do more, it is one round.

    The pages are left as they are (see ``book``), so a call that raises can be repeated.
    """
    begun = steps.clock()
    many = getattr(steps, "run", None)
    if many is None or any(page.sampler is not None for page in pages):
        ran = _once(steps, pages, depths, gate)
    else:
        ran = many([_stretch(page, depth) for page, depth in zip(pages, depths, strict=True)], most, gate, eos)
    return Round(ran, steps.clock() - begun)


def _stretch(page: PageState, depth: int) -> Stretch:
    rows = _refill(page) if depth else Rows(page.slot, page.length, page.tokens[-1:])
    return Stretch(rows.slot, rows.start, rows.tokens, depth, page.room)


def _once(steps: Steps, pages: Sequence[PageState], depths: Sequence[int], gate: float) -> Ran:
    """One round; no page is drafted for past its limit."""
    drafts: list[list[int]] = [[] for _ in pages]
    depths = [max(0, min(depth, page.room - 1)) for page, depth in zip(pages, depths, strict=True)]
    busy = [i for i, depth in enumerate(depths) if depth]
    if busy:
        proposals = steps.draft([_refill(pages[i]) for i in busy], [depths[i] for i in busy], gate)
        for i, tokens in zip(busy, proposals, strict=True):
            drafts[i] = tokens
    rows = [Rows(p.slot, p.length, [p.tokens[-1], *draft]) for p, draft in zip(pages, drafts, strict=True)]
    outcome = [accept(draft, chosen) for draft, chosen in zip(drafts, steps.verify(rows), strict=True)]
    for i, page in enumerate(pages):
        if page.sampler is not None:
            outcome[i] = ([page.sampler.pick(steps.logits(page.slot, page.length), len(page.tokens))], 0)
    return Ran(
        [span for span, _ in outcome],
        [[1] * len(draft) for draft in drafts],
        [[1] * n + [0] * (len(draft) - n) for draft, (_, n) in zip(drafts, outcome, strict=True)],
        [page.length + 1 for page in pages],  # the newest token's row was built from the verifier's state
        1,
    )


def _refill(page: PageState) -> Rows:
    """Committed tokens the draft's cache lacks, the newest (which the verifier has not read yet) last."""
    return Rows(page.slot, page.draft_length, page.tokens[page.draft_length - page.prompt :])


def book(page: PageState, ran: Ran, i: int) -> None:
    """Keep page i's books after a call, before its span is appended to ``page.tokens``."""
    if any(ran.drafted[i][:1]):
        page.draft_length = ran.filled[i]
        page.count(ran.drafted[i], ran.accepted[i])
