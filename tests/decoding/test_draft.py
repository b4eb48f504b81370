"""The draft head's cache and pairing: chained drafts equal a computation without any cache."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
import torch.nn.functional as F

from jocr.decoding.depth import OPEN, Belief, FixedDepth, Plan
from jocr.decoding.greedy import greedy
from jocr.decoding.load import make_steps
from jocr.decoding.scheduler import Scheduler
from jocr.decoding.stats import Stats
from jocr.decoding.steps import Rows, Steps
from jocr.decoding.stopping import Stopper
from jocr.model.ocr import OcrModel
from tests.decoding.models import EOS, jobs, prefilled, prompts, run, tiny_model


@torch.inference_mode()
def naive_chain(model: OcrModel, tokens: list[int], depth: int) -> tuple[list[int], list[float]]:
    """``depth`` proposals after ``tokens``, everything computed anew for each from the definition.

    Also the probability of the first 1, 2 ... of them together.

    Slot j pairs the token at j with the verifier's state at j - 1 while j is committed, and with the head's own state
    of the slot before once it is not. Nothing stands at position 0.
    """
    hidden = model.hidden(model.embed(torch.tensor(tokens))[None])
    before = F.pad(hidden[:, : len(tokens) - 1], (0, 0, 1, 0))
    text, proposals, chances = list(tokens), [], [1.0]
    for _ in range(depth):
        embedded = model.draft_embed(torch.tensor(text))[None].clone()
        embedded[:, 0] = 0
        positions = torch.arange(len(text))[None]
        state = model.draft(embedded, before, positions, len(text), _causal)[:, -1:]
        chance, token = model.draft_logits(state)[0, 0].softmax(-1).max(-1)
        proposals.append(int(token))
        chances.append(chances[-1] * float(chance))
        text.append(proposals[-1])
        before = torch.cat([before, state], dim=1)
    return proposals, chances[1:]


def naive_drafts(model: OcrModel, tokens: list[int], depth: int) -> list[int]:
    return naive_chain(model, tokens, depth)[0]


def _causal(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    from jocr.model.decoder import causal

    return causal(layer, q, k, v)


def after_rounds(steps: Steps, prompt: torch.Tensor, text: list[int], spans: list[int], depth: int) -> list[int]:
    """Walk the committed ``text`` in spans of the given lengths, with wrong drafts verified in between, then draft."""
    first = prefilled(steps, 0, prompt)
    assert first == text[0]
    at, filled = 0, 0
    for span in spans:
        start = len(prompt) + filled
        drafts = steps.draft([Rows(0, start, text[filled : at + 1])], [depth])[0]
        filled = at + 1
        good = text[at + 1 : at + span]
        wrong = [(token + 1) % 97 for token in drafts]
        steps.verify([Rows(0, len(prompt) + at, [text[at], *good, *wrong][: depth + 1])])
        at += span
    return steps.draft([Rows(0, len(prompt) + filled, text[filled : at + 1])], [depth])[0]


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("spans", [[], [1], [4], [2, 1, 3], [1, 1, 4, 2]])
def test_drafts_equal_those_computed_without_a_cache(backend: str, spans: list[int]) -> None:
    model, prompt = tiny_model(7, 1.5), prompts(7, 1)[0]
    text = greedy(model, prompt.tolist(), None, Stopper(EOS, 16))
    steps = make_steps(model, 1, backend)  # type: ignore[arg-type]
    got = after_rounds(steps, prompt, text, spans, 4)
    committed = prompt.tolist() + text[: sum(spans) + 1]
    assert got == naive_drafts(model, committed, 4)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_pages_drafted_together_to_different_depths(backend: str) -> None:
    model, ids = tiny_model(8, 1.5), prompts(8, 3)
    steps = make_steps(model, 3, backend)  # type: ignore[arg-type]
    firsts = [prefilled(steps, i, prompt) for i, prompt in enumerate(ids)]
    rows = [Rows(i, len(prompt), [first]) for i, (prompt, first) in enumerate(zip(ids, firsts, strict=True))]
    got = steps.draft(rows, [3, 1, 5])
    want = [naive_drafts(model, [*p.tolist(), f], d) for p, f, d in zip(ids, firsts, (3, 1, 5), strict=True)]
    assert got == want


def test_a_draft_head_with_its_own_embedding_norm_and_output_is_used() -> None:
    model, prompt = tiny_model(9, 1.0), prompts(9, 1)[0]
    torch.manual_seed(1)
    width, vocab = model.cfg.text.hidden_size, model.cfg.text.vocab_size
    model.mtp_embed_tokens = torch.nn.Embedding(vocab, width)
    model.mtp_lm_head = torch.nn.Linear(width, vocab, bias=False)
    for backend in ("compiled", "torch"):
        steps = make_steps(model, 1, backend)  # type: ignore[arg-type]
        first = prefilled(steps, 0, prompt)
        got = steps.draft([Rows(0, len(prompt), [first])], [4])[0]
        assert got == naive_drafts(model, [*prompt.tolist(), first], 4)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_a_gate_ends_the_chain_where_the_head_is_unsure(backend: str) -> None:
    model, ids = tiny_model(8, 1.5), prompts(8, 2)
    steps = make_steps(model, 2, backend)  # type: ignore[arg-type]
    firsts = [prefilled(steps, i, prompt) for i, prompt in enumerate(ids)]
    rows = [Rows(i, len(prompt), [first]) for i, (prompt, first) in enumerate(zip(ids, firsts, strict=True))]
    chains = [naive_chain(model, [*p.tolist(), f], 5)[1] for p, f in zip(ids, firsts, strict=True)]
    for gate in (sum(chains[0][1:3]) / 2, sum(chains[1][:2]) / 2, 1.0):
        got = [len(draft) for draft in steps.draft(rows, [5, 5], gate)]
        assert got == [1 + sum(chance > gate for chance in chain[:4]) for chain in chains]


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_priming_may_come_after_plain_rounds(backend: str) -> None:
    model, prompt = tiny_model(8, 1.5), prompts(8, 1)[0]
    steps = make_steps(model, 1, backend)  # type: ignore[arg-type]
    text = [steps.prefill(0, prompt, None)]
    for i in range(4):
        text += steps.verify([Rows(0, len(prompt) + i, text[-1:])])[0]
    steps.prime(0, prompt, None)
    assert steps.draft([Rows(0, len(prompt), text)], [4])[0] == naive_drafts(model, [*prompt.tolist(), *text], 4)


class PlainFirst(FixedDepth):
    """Drafts from the third call on."""

    calls = 0

    def choose(self, pages: Sequence[Belief], most: int) -> Plan:
        self.calls += 1
        return super().choose(pages, most) if self.calls > 2 else Plan([0] * len(pages), OPEN, 1)


def test_a_page_is_primed_once_and_only_if_it_drafts() -> None:
    model, ids = tiny_model(5, 0.6), prompts(5, 3)
    for depth, want in ((0, []), (2, [0, 1, 2])):
        steps, primed = make_steps(model, 3), []
        plain = steps.prime

        def prime(slot: int, ids: torch.Tensor, visual: torch.Tensor | None, plain=plain, primed=primed) -> None:  # type: ignore[no-untyped-def]
            primed.append(slot)
            plain(slot, ids, visual)

        steps.prime = prime  # type: ignore[method-assign]
        scheduler = Scheduler(steps, PlainFirst(depth), True, Stats())
        ended = {f.job.page_id: f.tokens for f in scheduler.run(jobs(ids, 12))}
        assert sorted(primed) == want
        assert ended == {i: f.tokens for i, f in run(model, ids, 12, 0, 1).items()}
