"""The compiled towers against the model's own modules, and what a page's tokens may not depend on."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from jocr.decoding import bf16
from jocr.decoding.vision_kernels import STRIP
from jocr.decoding.vision_weights import CompiledVision, fits
from jocr.model.config import ClipConfig, SamConfig
from jocr.model.ocr import OcrModel, PageViews
from tests.decoding.models import TEXT, VISION, tiny_model
from tests.model.tiny_model import scatter

SMALL = replace(
    VISION, text=replace(TEXT, vocab_size=262),
    sam=SamConfig(width=64, layers=3, heads=2, image_size=128, window_size=3, global_attn_indexes=(1,),
                  neck_channels=32, downsample_channels=(96, 64)),
    clip=ClipConfig(width=64, layers=2, heads=1, image_size=32, patch_size=4),
)  # fmt: skip


dot_product = pytest.mark.skipif(not bf16.supported(), reason="this CPU has no bf16 products")
NARROW = [pytest.param(False, id="fp32"), pytest.param(True, id="bf16", marks=dot_product)]


@pytest.fixture(scope="module")
def model() -> OcrModel:
    made = OcrModel(SMALL).eval()
    scatter(made.model.sam_model, 1)
    scatter(made.model.vision_model, 2)
    scatter(made.model.projector, 3)
    return made


def pixels(side: int, count: int) -> Tensor:
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(side)) * 2 - 1


@torch.inference_mode()
@pytest.mark.parametrize("side", [32, 64, 80, 128, 144, 208, 336])
def test_the_same_tokens_as_the_modules(model: OcrModel, side: int) -> None:
    """Windows of 3 are padded at every size but 9 x 9; positions are resampled but at 128 px; 81 keys fill no panel."""
    assert fits(model)
    vision, x = CompiledVision(model), pixels(side, 2)
    torch.testing.assert_close(vision.encode(x)[0], model.encode(x), rtol=1e-4, atol=2e-4)


@torch.inference_mode()
def test_planes_that_are_one_in_memory_are_read_once(model: OcrModel) -> None:
    grey = pixels(80, 3)[:, :1].expand(-1, 3, -1, -1)
    vision = CompiledVision(model)
    torch.testing.assert_close(vision.encode(grey)[0], vision.encode(grey.contiguous())[0], rtol=1e-4, atol=2e-4)
    torch.testing.assert_close(vision.encode(grey)[0], model.encode(grey), rtol=1e-4, atol=2e-4)


@torch.inference_mode()
def test_a_page_of_tiles_in_its_order(model: OcrModel) -> None:
    page = PageViews(pixels(128, 1)[0], pixels(64, 6), (3, 2))
    torch.testing.assert_close(CompiledVision(model)(page), model.encode_page(page), rtol=1e-4, atol=2e-4)
    alone = PageViews(pixels(128, 1)[0], torch.empty(0, 3, 64, 64), None)
    torch.testing.assert_close(CompiledVision(model)(alone), model.encode_page(alone), rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("narrow", NARROW)
def test_a_view_gives_the_same_bits_beside_others_in_threads_and_in_another_layout(
    model: OcrModel, narrow: bool
) -> None:
    if narrow:
        model = copy.deepcopy(model).bfloat16()
    vision, x = CompiledVision(model), pixels(128, 6)
    want = vision.encode(x)[0]
    for layout in (x, x.contiguous(memory_format=torch.channels_last)):
        assert all(
            torch.equal(vision.encode(view[None])[0][0], tokens) for view, tokens in zip(layout, want, strict=True)
        )
    with ThreadPoolExecutor(2) as threads:
        assert all(torch.equal(got, want) for (got,) in threads.map(vision.encode, [x] * 6))


@dot_product
@torch.inference_mode()
@pytest.mark.parametrize("side", [32, 64, 80, 128, 144, 208, 336])
def test_bf16_towers_are_nearer_to_fp32_than_the_modules_own_in_bf16(model: OcrModel, side: int) -> None:
    narrow, x = copy.deepcopy(model).bfloat16(), pixels(side, 2)
    assert fits(narrow)
    wide, vision = copy.deepcopy(narrow).float(), CompiledVision(narrow)
    for views in (x, x[:, :1].expand(-1, 3, -1, -1)):  # of the second one plane is read
        want = wide.encode(views)
        theirs, ours = (narrow.encode(views.bfloat16()) - want).abs(), (vision.encode(views)[0] - want).abs()
        assert 0 < ours.mean() < theirs.mean()
        assert ours.max() < 0.1 * want.abs().max()


@pytest.mark.parametrize("narrow", NARROW)
@torch.inference_mode()
def test_every_weight_is_read(model: OcrModel, narrow: bool) -> None:
    model, page = (copy.deepcopy(model).bfloat16() if narrow else model), pixels(128, 1)
    want = CompiledVision(model).encode(page)[0]
    body = model.model
    unread = {"vision_model.embeddings.patch_embedding.weight"}
    for part in ("sam_model", "vision_model", "projector"):
        for name, weight in getattr(body, part).named_parameters():
            kept = weight.clone()
            weight.add_(torch.randn_like(weight))
            changed = not torch.equal(CompiledVision(model).encode(page)[0], want)
            weight.copy_(kept)
            assert changed != (f"{part}.{name}" in unread), name


def test_only_small_towers_of_whole_panels_and_bf16_where_the_cpu_multiplies_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not fits(tiny_model(1, 0.6, VISION))
    small = OcrModel(SMALL)
    for quick in (False, True):
        monkeypatch.setattr(bf16, "supported", lambda quick=quick: quick)
        assert fits(small)
        assert fits(copy.deepcopy(small).bfloat16()) is quick
    assert STRIP % 6 == STRIP % bf16.MANY == 0  # the kernels' rows at a time
