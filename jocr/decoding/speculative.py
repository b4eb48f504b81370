"""One round for several pages: draft, verify, commit (FastMTP; self-speculation with a recursive draft head).

Plain greedy decoding is the same round at depth 0, so both take the same step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jocr.decoding.depth import OPEN, Gain
from jocr.decoding.sampling import Sampler
from jocr.decoding.steps import Rows, Steps
from jocr.decoding.verify import accept


@dataclass(slots=True)
class PageState:
    """A page being decoded. All but the last of its tokens are in the verifier's cache.

    Attributes:
        tokens: generated so far.
        draft_length: positions of the draft's cache that hold committed tokens paired with the verifier's states.
        sampler: draws the tokens of a page that is not greedy; its rounds have depth 0.
    """

    page_id: str
    slot: int
    prompt: int  # positions taken by the prompt
    limit: int  # tokens it may generate
    tokens: list[int]
    draft_length: int
    belief: Gain = field(default_factory=Gain.prior)
    sampler: Sampler | None = None  # None: greedy
    rounds: int = 0
    drafted: list[int] = field(default_factory=list)  # per draft position
    accepted: list[int] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Positions in the verifier's cache: where the next row goes."""
        return self.prompt + len(self.tokens) - 1

    def count(self, drafted: int, accepted: int) -> None:
        """Book one verify round."""
        self.rounds += 1
        while len(self.drafted) < drafted:
            self.drafted.append(0)
            self.accepted.append(0)
        for i in range(drafted):
            self.drafted[i] += 1
            self.accepted[i] += i < accepted


@dataclass(frozen=True, slots=True)
class Round:
    """What a round may commit, page by page, and what it took in seconds of ``steps.clock``."""

    spans: list[list[int]]
    drafted: list[int]
    accepted: list[int]
    seconds: float


def speculate(steps: Steps, pages: Sequence[PageState], depths: Sequence[int], gate: float = OPEN) -> Round:
    """Draft up to ``depths[i]`` tokens for page i, verify all rows in one pass, and say what may be committed.

    A chain of drafts ends early where the head gives it a smaller probability than ``gate``.

    The pages are left as they are (see ``book``), so a round that raises can be repeated.
    """
    begun = steps.clock()
    drafts: list[list[int]] = [[] for _ in pages]
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
    drafted = [len(draft) for draft in drafts]
    return Round([o[0] for o in outcome], drafted, [o[1] for o in outcome], steps.clock() - begun)


def _refill(page: PageState) -> Rows:
    """Committed tokens the draft's cache lacks, the newest (which the verifier has not read yet) last."""
    return Rows(page.slot, page.draft_length, page.tokens[page.draft_length - page.prompt :])


def book(page: PageState, depth: int, accepted: int) -> None:
    """Keep the page's books after a round, before its span is appended to ``page.tokens``."""
    if depth:
        page.draft_length = page.length + 1  # the newest token's row was built from the verifier's state
        page.count(depth, accepted)
