"""Pages with a temperature: their text is a matter of seed and page alone, and greedy pages do not notice them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from jocr.decoding.depth import AutoDepth, Costs, DepthPolicy, FixedDepth
from jocr.decoding.fake import FakeDecoder
from jocr.decoding.load import Backend, make_steps
from jocr.decoding.sampling import Sampler, request_seed, sampler_of
from jocr.decoding.scheduler import Finished, Scheduler
from jocr.decoding.stats import Stats
from jocr.decoding.vllm_options import make_request
from jocr.records import PageInput, Transcript
from tests.decoding.models import TEXT, VISION, byte_tokenizer, jobs, png, prompts, tiny_model
from tests.decoding.test_engine import PROCESSOR, Poisoned, decoder, page

MODEL = replace(VISION, text=TEXT)
HOT = {"1": Sampler(0.8, 7, "one"), "3": Sampler(1.2, 7, "three")}


def sampled(
    ids: Sequence[torch.Tensor], samplers: dict[str, Sampler], policy: DepthPolicy, batch: int,
    backend: Backend = "auto", poison: int | None = None,
    limit: int = 24,
) -> dict[str, Finished]:  # fmt: skip
    steps = make_steps(tiny_model(11, 1.0, MODEL), batch, backend)
    if poison is not None:
        steps = Poisoned(steps, poison)  # type: ignore[assignment]
        steps.logits = steps.steps.logits  # type: ignore[method-assign,attr-defined]
    work = (replace(job, sampler=samplers.get(job.page_id)) for job in jobs(ids, limit))
    ended = Scheduler(steps, policy, True, Stats()).run(work)
    return {f.job.page_id: f for f in ended}


def test_the_random_numbers_follow_the_softmax() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, -50.0])
    for temperature in (0.5, 1.0, 3.0):
        share = torch.softmax(logits / temperature, 0)
        counts = Counter(Sampler(temperature, 3, "p").pick(logits, i) for i in range(4000))
        for token in range(3):
            spread = 4 * math.sqrt(float(share[token]) * (1 - float(share[token])) / 4000)
            assert abs(counts[token] / 4000 - float(share[token])) < spread
        assert counts[3] == 0
    assert Sampler(1e-6, 3, "p").pick(logits, 0) == 2


def test_seed_page_and_place_each_change_the_draw() -> None:
    flat = torch.zeros(10_000)
    base = Sampler(1.0, 1, "p").pick(flat, 0)
    others = [Sampler(1.0, seed, name).pick(flat, i) for seed, name, i in ((2, "p", 0), (1, "q", 0), (1, "p", 1))]
    assert len({base, *others}) == 4
    assert Sampler(1.0, 1, "p").pick(flat, 0) == base


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("policy", ["0", "3", "auto"])
def test_greedy_neighbours_are_unchanged_and_sampled_pages_independent_of_the_batch(
    backend: Backend, policy: str
) -> None:
    def make() -> DepthPolicy:
        return AutoDepth(Costs()) if policy == "auto" else FixedDepth(int(policy))

    ids = prompts(11, 5)
    plain = sampled(ids, {}, make(), 3, backend)
    mixed = sampled(ids, HOT, make(), 3, backend)
    for i in ("0", "2", "4"):
        assert mixed[i].tokens == plain[i].tokens
        if policy == "3":  # speculation beside a sampled page accepts exactly what it accepts without
            assert mixed[i].state.accepted == plain[i].state.accepted  # type: ignore[union-attr]
    for i in HOT:
        assert mixed[i].tokens != plain[i].tokens
        assert mixed[i].state.rounds == 0  # type: ignore[union-attr]  # never drafted
    for batch, order in ((1, "0"), (5, "3")):
        again = sampled(ids, HOT, FixedDepth(int(order)), batch, backend)
        assert {i: again[i].tokens for i in HOT} == {i: mixed[i].tokens for i in HOT}


def test_a_repeated_round_draws_the_same_tokens() -> None:
    """The round that breaks is done again page by page: sampled pages must not have moved on."""
    ids = [p[:9].repeat(2)[:9] for p in prompts(6, 4)]
    ids[2] = ids[2].repeat(3)
    calm = sampled(ids, HOT, FixedDepth(2), 3, limit=8)
    broken = sampled(ids, HOT, FixedDepth(2), 3, poison=30, limit=8)
    assert str(broken["2"].error) == "poison"
    assert {i: broken[i].tokens for i in ("0", "1")} == {i: calm[i].tokens for i in ("0", "1")}


def test_the_decoder_honours_temperature_and_seed_of_each_page() -> None:
    def texts(*pages: PageInput, depth: int = 2, batch: int = 3) -> dict[str, Transcript]:
        return {t.page_id: t for t in decoder(depth, batch).decode(pages)}

    hot = replace(page(1), temperature=1.5, seed=4)
    greedy, mixed = texts(page(0), page(1), page(2)), texts(page(0), hot, page(2))
    assert [mixed[i].tokens for i in ("p0", "p2")] == [greedy[i].tokens for i in ("p0", "p2")]
    assert mixed["p1"].tokens != greedy["p1"].tokens
    assert mixed["p1"].tokens == texts(hot, depth=0, batch=1)["p1"].tokens
    assert mixed["p1"].rounds == 0
    assert mixed["p1"].tokens != texts(replace(hot, seed=5))["p1"].tokens
    assert texts(replace(page(1), temperature=1e-4, seed=4))["p1"].tokens == greedy["p1"].tokens


@pytest.mark.parametrize("temperature", [-0.1, math.nan, math.inf])
def test_a_temperature_that_is_none_is_the_pages_own_failure(temperature: float) -> None:
    done = {t.page_id: t for t in decoder().decode([replace(page(0), temperature=temperature), page(1)])}
    assert (done["p0"].stop, done["p1"].stop) == ("error", "length")
    assert "temperature" in done["p0"].detail


def test_requests_are_seeded_by_seed_and_page() -> None:
    seeds = {request_seed(replace(page(i), seed=s)) for i in range(3) for s in range(3)}
    assert len(seeds) == 9
    assert all(0 <= seed < 1 << 63 for seed in seeds)
    assert sampler_of(page(0)) is None


def test_vllm_is_asked_for_each_pages_temperature_and_seed() -> None:
    hot = replace(page(1), temperature=0.7, seed=3)
    request = make_request(hot, byte_tokenizer(), PROCESSOR, 1024)
    assert (request.temperature, request.seed) == (0.7, request_seed(hot))
    greedy = make_request(page(1), byte_tokenizer(), PROCESSOR, 1024)
    assert (greedy.temperature, greedy.seed) == (0.0, None)


def test_the_fake_decoder_samples_too() -> None:
    def text(temperature: float, seed: int, name: str = "p") -> str:
        (done,) = FakeDecoder().decode([PageInput(name, png(1), "read", 500, temperature, seed)])
        return done.text

    assert text(0, 1) == text(0, 2) == text(0, 1, "q")
    assert text(0.4, 1) == text(0.4, 1)
    assert len({text(0, 1), text(0.4, 1), text(0.4, 2), text(0.5, 1), text(0.4, 1, "q")}) == 5
