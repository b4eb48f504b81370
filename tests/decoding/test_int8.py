"""The draft head in int8: products close to the exact ones, drafts nearly as good, and what is committed the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jocr.decoding import int8
from jocr.decoding.cache import GRAIN, SlotCache
from jocr.decoding.compiled_steps import CompiledSteps
from jocr.decoding.compiled_weights import pack_model
from jocr.decoding.load import make_steps
from jocr.decoding.steps import Rows
from tests.decoding.models import acceptance, prefilled, prompts, run, tiny_model

pytestmark = pytest.mark.skipif(not int8.supported(), reason="this CPU has no int8 dot product of AVX-512")


@pytest.mark.parametrize(("rows", "outs", "ins"), [(1, 32, 4), (1, 96, 64), (3, 70, 192), (7, 333, 576), (2, 31, 2048)])
def test_products_differ_from_exact_ones_by_rounding(rows: int, outs: int, ins: int) -> None:
    rng = np.random.default_rng(outs)
    x, w = rng.normal(size=(rows, ins)).astype(np.float32), rng.normal(size=(outs, ins)).astype(np.float32)
    packed = np.empty(int8.size(torch.from_numpy(w)), np.int8)
    int8.pack(torch.from_numpy(w), packed)
    panels = -(-outs // 32)
    out = np.full((rows, panels * 32), 5.0, np.float32)
    for add, extra in ((False, 0.0), (True, 1.0)):
        before = out.copy() * extra
        int8.product_int8(x.reshape(-1), 0, ins, rows, packed, 0, int8.span(ins), panels, ins, out.reshape(-1), 0,
                          panels * 32, add)  # fmt: skip
        assert not out[:, outs:].any()  # padding: zeros, also where they are added to
        got = (out - before)[:, :outs]
        step = np.abs(x).max(1, keepdims=True) / 127
        weight_step = np.abs(w).max(1) / 127
        # a rounded factor is off by half a step at most
        bound = 0.5 * (step * np.abs(w).sum(1) + weight_step * (np.abs(x).sum(1, keepdims=True) + 0.5 * step * ins))
        assert (np.abs(got - x @ w.T) <= bound * 1.01 + 1e-4).all()
        assert np.abs(got - x @ w.T).max() > 0 or ins == 4


def test_a_row_is_the_same_whatever_stands_beside_it_and_zeros_stay_zeros() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 64)).astype(np.float32), torch.from_numpy(rng.normal(size=(64, 64)).astype(np.float32))
    x[2] = 0
    packed = np.empty(int8.size(w), np.int8)
    int8.pack(w, packed)

    def product(rows: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), 64), np.float32)
        int8.product_int8(rows.reshape(-1), 0, 64, len(rows), packed, 0, int8.span(64), 2, 64, out.reshape(-1), 0, 64,
                          False)  # fmt: skip
        return out

    together = product(x)
    assert np.array_equal(together, np.concatenate([product(row[None].copy()) for row in x]))
    assert not together[2].any()


def test_outputs_are_greedys_and_drafts_nearly_as_good() -> None:
    for seed, noise in ((3, 0.3), (4, 1.0), (5, 2.0)):
        model, ids = tiny_model(seed, noise), prompts(seed, 6)
        packed = pack_model(model, quick=True)
        assert packed.draft.matrices.dtype == np.int8
        want, plain = run(model, ids, 24, 0, 1), run(model, ids, 24, 3, 3)
        got = run(model, ids, 24, 3, 3, steps=make_steps(model, 3, weights=packed))
        assert {i: f.tokens for i, f in got.items()} == {i: f.tokens for i, f in want.items()}
        assert acceptance(got) > acceptance(plain) - 0.05


def test_a_head_of_its_own_is_rounded_too() -> None:
    model, prompt = tiny_model(9, 0.3), prompts(9, 1)[0]
    width, vocab = model.cfg.text.hidden_size, model.cfg.text.vocab_size
    drafts = []
    for own in (False, True):
        if own:
            model.mtp_lm_head = torch.nn.Linear(width, vocab, bias=False)
        steps = make_steps(model, 1, weights=pack_model(model, quick=True))
        first = prefilled(steps, 0, prompt)
        drafts.append(steps.draft([Rows(0, len(prompt), [first])], [4])[0])
    assert drafts[0] != drafts[1]


def test_a_team_drafts_what_one_thread_drafts_and_matrices_can_be_handed_over() -> None:
    model, ids = tiny_model(6, 0.6).to(torch.bfloat16), prompts(6, 3)
    want = run(model, ids, 16, 0, 1)
    packed, states = pack_model(model, hand_over=True, quick=True), []
    for threads in (1, 2, 3):
        steps = CompiledSteps(model, SlotCache(model.cfg.text, 2, GRAIN, torch.float32, torch.device("cpu"),
                                               transposed=True), packed, threads)  # fmt: skip
        ended = run(model, ids, 16, 3, 2, steps=steps)
        assert {i: f.tokens for i, f in ended.items()} == {i: f.tokens for i, f in want.items()}
        states.append([f.state.accepted for f in ended.values() if f.state])
    assert states[0] == states[1] == states[2]
