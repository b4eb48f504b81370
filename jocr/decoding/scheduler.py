"""Continuous batching: pages come and go one by one while the others decode.

Between two rounds at most one waiting page is prefilled, so a long prompt delays the running pages once and no more.
A page's result does not depend on which pages it shares rounds with (see ``Steps.guarantee``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

from torch import Tensor

from jocr.decoding.depth import OPEN, DepthPolicy, Plan
from jocr.decoding.sampling import Sampler
from jocr.decoding.speculative import PageState, Round, book, speculate
from jocr.decoding.stats import Stats
from jocr.decoding.steps import Steps
from jocr.decoding.stopping import Stopper

MOST_ROUNDS = 32  # between two looks at the pages: what the loop guard and the time limit may come late by
LOOK = 64  # plain rounds in a row that are more than a policy's look at what they cost
PAUSE = 0.02  # seconds of work between two such looks, where rounds are not quick


@dataclass(frozen=True, slots=True)
class Filled:
    """A slot that holds a page's prompt already, and the prompt's first token, by greedy choice."""

    slot: int
    first: int
    primed: bool  # whether the draft's cache holds the prompt too
    seconds: float  # what it took


@dataclass(frozen=True, slots=True)
class Job:
    """A page ready to decode: prompt ids (T,), its visual tokens (n, H) or None, what ends it, what draws its tokens
    where it is not greedy, and its slot where that is filled."""

    page_id: str
    ids: Tensor
    visual: Tensor | None
    limit: int
    stopper: Stopper
    sampler: Sampler | None = None
    filled: Filled | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """A page that ended; ``error`` where it failed."""

    job: Job
    state: PageState | None
    tokens: list[int]
    error: Exception | None = None


def fill(steps: Steps, job: Job, slot: int, prime: bool = False) -> Filled:
    """Read a page's prompt into a slot; with ``prime`` into the draft's cache too."""
    begun = perf_counter()
    steps.cache.reserve(job.ids.shape[0] + 1)
    first = steps.prefill(slot, job.ids, job.visual)
    if prime:
        steps.prime(slot, job.ids, job.visual)
    return Filled(slot, first, prime, perf_counter() - begun)


class Scheduler:
    """Decodes jobs with up to ``steps.cache.pages`` of them at a time."""

    def __init__(self, steps: Steps, policy: DepthPolicy, drafting: bool, stats: Stats) -> None:
        self.steps, self.policy, self.drafting, self.stats = steps, policy, drafting, stats
        self.running: list[tuple[Job, PageState]] = []
        self.pace = PAUSE  # seconds of a round, lately
        self._plain = LOOK  # rounds since one that drafted

    def run(self, jobs: Iterator[Job]) -> Iterator[Finished]:
        """Yield every job's result, in order of completion. ``jobs`` is pulled as room appears; where it can say that
        its next one is not ``ready``, the running pages go on meanwhile."""
        ready: Callable[[], bool] = getattr(jobs, "ready", lambda: True)
        more = True
        try:
            while more or self.running:
                if more and self._room() and (not self.running or ready()):
                    job = next(jobs, None)
                    more = job is not None
                    if job is not None:
                        yield from self._admit(job)
                if self.running:
                    yield from self._rounds(more and self._room() and ready())
        finally:
            for _, page in self.running:
                self.steps.cache.release(page.slot)
            self.running = []

    @property
    def drafting_now(self) -> bool:
        """Whether pages draft at the moment, short looks at plain rounds apart: whether one that comes next probably
        will."""
        return self._plain < LOOK

    def _room(self) -> bool:
        return len(self.running) < self.steps.cache.pages

    def _admit(self, job: Job) -> Iterator[Finished]:
        if job.stopper.stop is not None:
            yield Finished(job, None, [])
            return
        filled = job.filled
        slot = self.steps.cache.lease() if filled is None else filled.slot
        try:
            filled = filled or fill(self.steps, job, slot)
            first = filled.first
            if job.sampler is not None:
                first = job.sampler.pick(self.steps.logits(slot, job.ids.shape[0] - 1), 0)
        except Exception as error:  # a page's failure is this page's result
            self.steps.cache.release(slot)
            yield Finished(job, None, [], error)
            return
        self.stats.prefill_seconds += filled.seconds
        prompt = job.ids.shape[0]
        page = PageState(job.page_id, slot, prompt, job.limit, [], prompt, self.policy.admit(), job.sampler)
        page.primed = filled.primed
        self.running.append((job, page))
        job.stopper.take(page.tokens, [first])
        yield from self._retire()

    def _rounds(self, filling: bool) -> Iterator[Finished]:
        """A few rounds; one where a page waits for a slot that is free."""
        pages = [page for _, page in self.running]
        most = 1 if filling else max(1, min(MOST_ROUNDS, int(PAUSE / self.pace)))
        plan = self._plan(pages, most)
        self._plain = 0 if any(plan.depths) else self._plain + plan.most
        far = [plan.most * (depth + 1) for depth in plan.depths]
        ends = [min(p.length + n, p.prompt + p.limit) for p, n in zip(pages, far, strict=True)]
        try:
            self.steps.cache.reserve(max(ends) + 1)
            self._prime(plan)
            outcome = speculate(self.steps, pages, plan.depths, plan.gate, plan.most, self.running[0][0].stopper.eos)
        except Exception as error:
            yield from self._isolate(error)
            return
        self._book(pages, outcome)
        yield from self._retire()

    def _prime(self, plan: Plan) -> None:
        """Fill the draft's cache over the prompts of the pages that are to draft for the first time."""
        begun = perf_counter()
        for (job, page), depth in zip(self.running, plan.depths, strict=True):
            if depth and not page.primed:
                self.steps.prime(page.slot, job.ids, job.visual)
                page.primed = True
        self.stats.prefill_seconds += perf_counter() - begun

    def _plan(self, pages: list[PageState], most: int) -> Plan:
        """What the policy says of the greedy pages; nothing is drafted for the others."""
        greedy = [i for i, page in enumerate(pages) if page.sampler is None]
        depths = [0] * len(pages)
        if not (self.drafting and greedy):
            return Plan(depths, OPEN, most)
        plan = self.policy.choose([pages[i].belief for i in greedy], most)
        for i, depth in zip(greedy, plan.depths, strict=True):
            depths[i] = depth
        return Plan(depths, plan.gate, plan.most)

    def _book(self, pages: list[PageState], outcome: Round) -> None:
        ran, seconds = outcome.ran, outcome.seconds
        self.policy.observe([page.belief for page in pages], ran.drafted, ran.accepted, ran.rounds, seconds)
        self.pace = seconds / ran.rounds
        before = sum(len(page.tokens) for page in pages)
        for i, (job, page) in enumerate(self.running):
            book(page, ran, i)
            job.stopper.take(page.tokens, ran.spans[i])
        self.stats.rounds(ran, sum(len(page.tokens) for page in pages) - before, seconds)

    def _isolate(self, error: Exception) -> Iterator[Finished]:
        """A round failed: repeat it page by page, so that only the page that causes it pays."""
        survivors, lost = [], []
        for job, page in self.running:
            try:
                if len(self.running) == 1:
                    raise error
                outcome = speculate(self.steps, [page], [0])
                job.stopper.take(page.tokens, outcome.spans[0])
                survivors.append((job, page))
            except Exception as own:
                lost.append(Finished(job, page, page.tokens, own))
                self.steps.cache.release(page.slot)
        self.running = survivors
        yield from lost
        yield from self._retire()

    def _retire(self) -> Iterator[Finished]:
        ended = [(job, page) for job, page in self.running if job.stopper.stop is not None]
        self.running = [(job, page) for job, page in self.running if job.stopper.stop is None]
        for _, page in ended:
            self.steps.cache.release(page.slot)
        self.stats.pages += len(ended)
        for job, page in ended:
            yield Finished(job, page, job.stopper.trim(page.tokens))
