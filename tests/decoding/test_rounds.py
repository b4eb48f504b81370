"""Many rounds in one call: what single rounds commit and propose, and ends found in time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jocr.decoding import scheduler
from jocr.decoding.calibrate import calibrate
from jocr.decoding.compiled_steps import CompiledSteps
from jocr.decoding.compiled_weights import pack_model
from jocr.decoding.depth import MAX_DEPTH, AutoDepth, Costs, Prices
from jocr.decoding.guard import CompiledGuard
from jocr.decoding.load import make_steps
from jocr.decoding.speculative import PageState, book, speculate
from jocr.decoding.steps import Steps
from jocr.markup.repeats import LoopGuard
from tests.decoding.models import prefilled, prompts, run, tiny_model


class Single:
    """Steps that can only do one round a call."""

    def __init__(self, steps: Steps) -> None:
        self.cache, self.guarantee, self.clock = steps.cache, steps.guarantee, steps.clock
        self.prefill, self.verify, self.draft, self.logits = steps.prefill, steps.verify, steps.draft, steps.logits


def started(steps: Steps, limits: tuple[int, ...]) -> list[PageState]:
    steps.cache.reserve(200)
    pages = []
    for slot, (prompt, limit) in enumerate(zip(prompts(21, len(limits)), limits, strict=True)):
        first = prefilled(steps, slot, prompt)
        pages.append(PageState(str(slot), slot, len(prompt), limit, [first], len(prompt)))
    return pages


def play(steps: Steps, pages: list[PageState], depths: list[int], gate: float, most: int, eos: int) -> int:
    """Call until a page ends; the rounds it took."""
    rounds = 0
    while rounds < 40 and not any(page.room <= 0 or eos in page.tokens[1:] for page in pages):
        ran = speculate(steps, pages, depths, gate, most, eos).ran
        rounds += ran.rounds
        for i, page in enumerate(pages):
            book(page, ran, i)
            page.tokens += ran.spans[i]
    return rounds


@pytest.mark.parametrize("depths", [[0, 0, 0], [3, 0, 5], [5, 5, 5], [1, 2, 0]])
@pytest.mark.parametrize("gate", [0.0, 0.02])
def test_many_rounds_are_single_rounds(depths: list[int], gate: float) -> None:
    model = tiny_model(21, 1.0)
    for limits, stop in (((40, 40, 40), False), ((9, 40, 40), False), ((40, 40, 40), True)):
        eos, seen = -1, []
        for most, single in ((1, True), (1, False), (7, False), (32, False)):
            steps = make_steps(model, 3)
            pages = started(steps, limits)
            rounds = play(Single(steps) if single else steps, pages, depths, gate, most, eos)  # type: ignore[arg-type]
            seen.append((rounds, [(p.tokens, p.drafted, p.accepted, p.draft_length, p.rounds) for p in pages]))
            if stop and eos < 0:
                eos, seen = pages[1].tokens[len(pages[1].tokens) // 2], []  # in the middle of a call of the others
        tokens = [[page[0] for page in pages] for _, pages in seen]
        assert all(t == tokens[0] for t in tokens)
        assert all(rounds == seen[0][0] for rounds, _ in seen)
        for _, pages in seen:
            for mine, want in zip(pages, seen[0][1], strict=True):
                padded = [[*counts, *[0] * (MAX_DEPTH - len(counts))] for counts in (*mine[1:3], *want[1:3])]
                assert padded[:2] == padded[2:]
                assert mine[3:] == want[3:]


@pytest.mark.parametrize("most", [1, 3, 32])
def test_pages_end_alike_however_many_rounds_a_call_has(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "MOST_ROUNDS", most)
    monkeypatch.setattr(scheduler, "PAUSE", 1e9)
    model, ids = tiny_model(22, 0.6), prompts(22, 6)
    costs = Costs()
    for pages in (1, 4):
        costs.set(pages, Prices(1.0, 0.01, 0.01, 0.01, 0.01))
    want = run(model, ids, 30, 0, 1)
    for policy in (0, 2, AutoDepth(costs)):
        got = run(model, ids, 30, policy, 4)
        assert {i: f.tokens for i, f in got.items()} == {i: f.tokens for i, f in want.items()}
    assert sum(sum(f.state.drafted) for f in got.values() if f.state) > 30  # auto did draft


def test_a_loop_ends_where_a_guard_that_sees_single_tokens_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = tiny_model(23, 0.0), prompts(23, 3)  # a walk through fixed successors must come round
    ended = []
    for most, guard in ((1, LoopGuard), (32, LoopGuard), (32, CompiledGuard)):
        monkeypatch.setattr(scheduler, "MOST_ROUNDS", most)
        monkeypatch.setattr(scheduler, "PAUSE", 1e9)
        ended.append(_loops(model, ids, guard))
    assert ended[0] == ended[1] == ended[2]
    assert any(stop == "loop" for _, stop, _ in ended[0])


def _loops(model, ids, guard):  # type: ignore[no-untyped-def]
    from jocr.decoding.depth import FixedDepth
    from jocr.decoding.stats import Stats
    from tests.decoding.models import jobs

    made = scheduler.Scheduler(make_steps(model, 2), FixedDepth(3), True, Stats()).run(jobs(ids, 600, guard))
    return sorted((f.tokens, f.job.stopper.stop, f.job.stopper.detail) for f in made)


@pytest.mark.parametrize("decode", [None, lambda ids: "".join(chr(97 + i) for i in ids)])
@pytest.mark.parametrize("size", [1, 5, 32, 4000])
def test_the_compiled_guard_answers_as_the_plain_one(decode, size: int) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    for trial in range(6):
        unit = rng.integers(0, 20, rng.integers(1, 60)).tolist()
        text = [*rng.integers(0, 20, rng.integers(0, 700)).tolist(), *unit * int(rng.integers(1, 90))][:3000]
        plain, want = LoopGuard(decode=decode), None
        at = len(text)
        for i, token in enumerate(text):
            if (want := plain.push((token,))) is not None:
                at = i + 1
                break
        guard, taken, found = CompiledGuard(decode=decode), 0, None
        while taken < len(text) and found is None:
            step, found = guard.scan(text[taken : taken + size])
            taken += step
        assert (taken, found) == (at, want), trial


def test_weights_that_bf16_holds_are_kept_in_half_the_memory_and_change_no_bit() -> None:
    model, prompt = tiny_model(24, 0.8).bfloat16().float(), prompts(24, 1)[0]
    halved = pack_model(model)
    assert halved.weights.matrices.dtype == halved.weights.embed.dtype == np.uint16
    odd = tiny_model(24, 0.8)
    assert pack_model(odd).weights.matrices.dtype == np.float32
    model.model.layers[0].mlp.gate_up.weight.data[0, 0] += 2e-9  # type: ignore[union-attr,operator]
    model.lm_head.weight.data[-1] = torch.full((model.cfg.text.hidden_size,), 0.1)  # no bf16 number; never chosen
    whole = pack_model(model)
    assert whole.weights.matrices.dtype == np.float32
    states = []
    for packed in (halved, whole):
        steps = make_steps(model, 1, weights=packed)
        assert isinstance(steps, CompiledSteps)
        prefilled(steps, 0, prompt)
        states.append(steps.cache.hidden[0, : len(prompt)].clone())
    torch.testing.assert_close(states[0], states[1], rtol=1e-5, atol=1e-6)


def test_calibration_tells_what_is_paid_once_from_what_is_paid_for_each_page() -> None:
    steps, costs = make_steps(tiny_model(25, 0.6), 4), Costs()
    calibrate(steps, costs, 97, (1, 4))
    assert sorted(costs.known) == [1, 4]
    for prices in costs.known.values():
        assert prices.plain > 0
        assert min(prices.first, prices.first_page, prices.further, prices.further_page) >= 0
        assert prices.first + prices.first_page > 0
