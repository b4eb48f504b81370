"""bf16 models in the compiled step: the same bits whatever the batch, the depth and the threads.

Products are of bf16 numbers where the CPU has the instruction, and of bf16 weights widened to fp32 elsewhere.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from numba import njit

from jocr.decoding import bf16, panels
from jocr.decoding.bf16 import pair_up, product_bf16
from jocr.decoding.cache import GRAIN, SlotCache
from jocr.decoding.compiled_steps import CompiledSteps
from jocr.decoding.compiled_weights import Packed, fits, pack_model
from jocr.decoding.kernels import product
from jocr.decoding.load import make_steps
from jocr.decoding.steps import Rows
from jocr.model.ocr import OcrModel
from tests.decoding.models import acceptance, prefilled, prompts, run, tiny_model

LIMIT = 16
HERE = bf16.supported()
dot_product = pytest.mark.skipif(not HERE, reason="this CPU has no bf16 products")


@pytest.fixture(params=[pytest.param("pairs", marks=dot_product), "widened"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How bf16 matrices are multiplied."""
    monkeypatch.setattr(bf16, "supported", lambda: request.param == "pairs")
    return str(request.param)


def narrow_model(seed: int, noise: float) -> OcrModel:
    return tiny_model(seed, noise).to(torch.bfloat16)


def steps_of(model: OcrModel, slots: int, threads: int, packed: Packed | None = None) -> CompiledSteps:
    cache = SlotCache(model.cfg.text, slots, GRAIN, torch.float32, torch.device("cpu"), transposed=True)
    return CompiledSteps(model, cache, packed, threads)


def test_the_kernel_is_a_product_in_fp32_whatever_the_rows_beside_it() -> None:
    torch.manual_seed(0)
    weight, x = torch.randn(70, 50).bfloat16(), torch.randn(9, 50)
    packed = np.zeros(panels.size(weight), np.uint16)
    panels.pack(weight, packed)
    outs = []
    for rows in range(1, 10):
        out = np.ones((rows, 96), np.float32)
        flat = x[:rows].reshape(-1).numpy()
        product(flat, 0, 50, rows, packed, 0, 32, 50 * 32, 3, 50, out.reshape(-1), 0, 96, False)
        outs.append(torch.from_numpy(out))
    want = x.double() @ weight.double().T
    torch.testing.assert_close(outs[-1][:, :70].double(), want, rtol=0, atol=2e-5)
    assert not outs[-1][:, 70:].any()
    assert all(torch.equal(out, outs[-1][: len(out)]) for out in outs)


@dot_product
@pytest.mark.parametrize("ins", [16, 37, 50, 97, 192])
def test_products_of_pairs_are_those_of_rounded_numbers_whatever_the_rows_beside_them(ins: int) -> None:
    torch.manual_seed(ins)
    weight, x = torch.randn(70, ins).bfloat16(), torch.randn(61, ins + 3)
    packed = np.zeros(bf16.size(weight), np.uint32)
    bf16.pack(weight, packed)
    outs = []
    for rows in (*range(1, 10), 13, 48, 49, 61):
        out = np.ones((rows, 100), np.float32)
        flat = x[:rows].reshape(-1).numpy()
        for add in (False, True):
            product_bf16(flat, 2, ins + 3, rows, packed, 0, bf16.span(ins), 3, ins, out.reshape(-1), 1, 100, add)
        assert (out[:, 0] == 1).all()
        assert (out[:, 97:] == 1).all()
        outs.append(torch.from_numpy(out[:, 1:97]))
    want = 2 * x[:, 2 : ins + 2].bfloat16().double() @ weight.double().T
    torch.testing.assert_close(outs[-1][:, :70].double(), want, rtol=0, atol=5e-5)
    assert not outs[-1][:, 70:].any()
    assert all(torch.equal(out, outs[-1][: len(out)]) for out in outs)


@dot_product
@pytest.mark.parametrize("depth", [1, 2, 15, 16, 31, 33, 48])
def test_rows_are_rounded_to_nearest_even_and_nothing_beside_them_is_touched(depth: int) -> None:
    x = torch.cat([torch.tensor([1.00390625, -1.01171875, float("nan"), float("inf"), 3e38, 0.0]), torch.randn(64)])
    x = x[: depth + 1].contiguous()
    for gain in (1.0, 0.3):
        pairs = (depth + 1) // 2
        out = np.full(pairs + 2, 0xABCDABCD, np.uint32)
        _pair_up(x.numpy(), depth, np.float32(gain), out)
        assert out[0] == out[-1] == 0xABCDABCD
        got = torch.from_numpy(out[1:-1].view(np.int16)).view(torch.bfloat16)
        want = (x[:depth] * np.float32(gain)).bfloat16()
        torch.testing.assert_close(got[:depth], want, rtol=0, atol=0, equal_nan=True)
        assert depth % 2 == 0 or got[depth] == 0


@njit
def _pair_up(x, depth, gain, out):
    pair_up(x, 0, depth, gain, out, 1)


@dot_product
def test_states_are_nearer_to_those_of_fp32_than_the_modules_own_in_bf16() -> None:
    model, prompt = narrow_model(1, 0.8), prompts(1, 1)[0]
    steps = make_steps(model, 2)
    assert isinstance(steps, CompiledSteps)
    assert steps.guarantee == "exact"
    assert steps.packed.weights.matrices.dtype == np.uint32
    wide = copy.deepcopy(model).float()
    with torch.inference_mode():
        want = wide.hidden(wide.embed(prompt)[None])[0]
        theirs = (model.hidden(model.embed(prompt)[None])[0] - want).abs().mean()
        prefilled(steps, 1, prompt)
        ours = (steps.cache.hidden[1, : len(prompt)] - want).abs().mean()
    assert 0 < ours < theirs < 0.05 * want.abs().mean()


def test_widened_states_are_those_of_fp32_arithmetic_on_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bf16, "supported", lambda: False)
    model, prompt = narrow_model(1, 0.8), prompts(1, 1)[0]
    steps = make_steps(model, 2)
    assert isinstance(steps, CompiledSteps)
    assert steps.guarantee == "exact"
    wide = copy.deepcopy(model).float()
    with torch.inference_mode():
        want = wide.hidden(wide.embed(prompt)[None])[0]
        first = prefilled(steps, 1, prompt)
        torch.testing.assert_close(steps.cache.hidden[1, : len(prompt)], want, rtol=1e-4, atol=1e-4)
        logits = wide.lm_head(want[-1:])[0]
        torch.testing.assert_close(steps.logits(1, len(prompt) - 1), logits, rtol=1e-4, atol=1e-4)
    assert first == int(logits.argmax())


def test_rows_and_threads_change_no_bit(kind: str) -> None:
    model, prompt = narrow_model(2, 1.0), prompts(2, 1)[0].repeat(4)[:48]
    packed, seen = pack_model(model), []
    for rows, threads in ((48, 1), (48, 2), (1, 1), (2, 2), (5, 2), (7, 3)):
        steps = steps_of(model, 2, threads, packed)
        steps.prefill(1, prompt[:rows], None)
        for start in range(rows, len(prompt), rows):
            steps.verify([Rows(1, start, prompt[start : start + rows].tolist())])
        seen.append(steps.cache.hidden[1, : len(prompt)].clone())
    assert all(torch.equal(states, seen[0]) for states in seen)


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_speculation_writes_what_plain_decoding_writes(noise: float, kind: str) -> None:
    model, ids = narrow_model(int(noise * 10), noise), prompts(int(noise * 100), 8)
    packed = pack_model(model)
    assert packed.weights.matrices.dtype == {"pairs": np.uint32, "widened": np.uint16}[kind]
    plain = run(model, ids, LIMIT, 0, 1, steps=steps_of(model, 1, 1, packed))
    want = {i: f.tokens for i, f in plain.items()}
    for depth in range(6):
        for batch, threads in ((1, 1), (5, 1 + depth % 3)):
            ended = run(model, ids, LIMIT, depth, batch, steps=steps_of(model, batch, threads, packed))
            assert {i: f.tokens for i, f in ended.items()} == want, (depth, batch, threads)
    assert noise > 0.5 or acceptance(ended) > 0.8


def test_a_model_that_handed_its_matrices_over_decodes_the_same(kind: str) -> None:
    model, ids = narrow_model(3, 0.6), prompts(3, 3)
    assert fits(model)
    before = run(model, ids, LIMIT, 2, 2)
    packed = pack_model(model, hand_over=True)
    assert model.lm_head.weight.numel() == model.model.layers[1].mlp.experts.down.numel() == 0
    after = run(model, ids, LIMIT, 2, 2, steps=make_steps(model, 2, weights=packed))
    assert {i: f.tokens for i, f in after.items()} == {i: f.tokens for i, f in before.items()}
