"""bf16 with oneDNN's packed matrices: the same function, and the published-size benchmark on a tiny model."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from jocr.decoding import packed
from jocr.decoding.bench_published import active_bytes, measure_published, random_model
from jocr.model.config import OcrConfig
from jocr.model.ocr import PageViews
from tests.decoding.models import VISION, prompts, run, tiny_model

needs_bf16 = pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="this CPU has no bf16 matrix kernels"
)


@needs_bf16
def test_packing_replaces_every_matrix_and_changes_states_only_by_rounding() -> None:
    plain = tiny_model(1, 0.6).to(torch.bfloat16)
    model = copy.deepcopy(plain)
    assert packed.fits(model)
    packed.pack(model)
    left = [n for n, w in model.named_parameters() if w.dim() > 1 and ("layers" in n or "mtp" in n) and "gate" not in n]
    assert [n for n in left if "sam" not in n and "vision" not in n and "projector" not in n] == []
    ids = prompts(1, 1)[0][None]
    with torch.inference_mode():
        want, got = (m.hidden(m.embed(ids[0])[None]).float() for m in (plain, model))
        assert (want - got).abs().max() < 0.05 * want.abs().max()
        one = model.hidden(model.embed(ids[0, :1])[None]).float()  # a single row takes the other path
        assert (want[:, :1] - one).abs().max() < 0.05 * want.abs().max()


def test_packed_towers_see_the_same_in_fp32() -> None:
    model = tiny_model(1, 0.6, VISION)
    views = PageViews(torch.randn(3, 64, 64), torch.randn(2, 3, 64, 64), (2, 1))
    with torch.inference_mode():
        want = model.encode_page(views)
        packed.pack_vision(model)
        left = [part for part in model.model.modules() if isinstance(part, torch.nn.Linear)]
        assert not any(part in left for part in model.model.vision_model.modules())
        assert not any(part in left for part in model.model.sam_model.modules())
        assert sum(isinstance(part, packed.PackedConv) for part in model.model.sam_model.modules()) == 4
        torch.testing.assert_close(model.encode_page(views), want, rtol=1e-4, atol=1e-5)


@needs_bf16
def test_packed_speculation_accepts_what_a_near_deterministic_model_drafts() -> None:
    model = tiny_model(1, 0.3).to(torch.bfloat16)
    packed.pack(model)
    ids = prompts(1, 4)
    plain, fast = run(model, ids, 10, 0, 1, "torch"), run(model, ids, 10, 3, 2, "torch")
    assert {i: f.tokens for i, f in plain.items()} == {i: f.tokens for i, f in fast.items()}
    assert sum(f.state.accepted[0] for f in fast.values() if f.state) > 4


@needs_bf16
def test_the_published_benchmark_on_a_tiny_model() -> None:
    cfg = replace(VISION, text=replace(VISION.text, vocab_size=512))
    rows = {row["what"]: row for row in measure_published(cfg=cfg, rounds=1, buffer_bytes=1 << 22)}
    assert rows["decode, plain, batch 1"]["value"] > 0
    assert rows["round at K=4"]["value"] > 0
    assert rows["prefill, nine tiles"]["value"] > 0
    assert rows["tokens of K=3 equal to plain"]["value"] == 1


def test_active_bytes_of_the_published_size() -> None:
    with torch.device("meta"):
        from jocr.model.ocr import OcrModel

        model = OcrModel(OcrConfig()).to(torch.bfloat16)
    assert active_bytes(model) == pytest.approx(2 * 573e6, rel=0.01)


def test_random_weights_fill_every_matrix() -> None:
    model = random_model(VISION)
    assert all(w.dim() == 1 or w.float().std() > 0 for w in model.parameters())
