"""Compiled resampling against Pillow's own, number for number."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from jocr.decoding.resample import bicubic
from jocr.pages.tiles import ProcessorConfig, page_views

PILLOWS = Image.Resampling.BICUBIC


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("seed", range(6))
def test_every_size_to_every_size(mode: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(40):
        w, h, to_w, to_h = (int(n) for n in rng.integers(1, 150, 4))
        pixels = rng.integers(0, 256, (h, w, 3)[: 2 + (mode == "RGB")], dtype=np.uint8)
        image = Image.fromarray(pixels if seed % 2 else (pixels > 127).astype(np.uint8) * 255)  # overshoots are clipped
        got = bicubic(image, (to_w, to_h))
        assert got.mode == mode
        assert np.array_equal(np.array(got), np.array(image.resize((to_w, to_h), PILLOWS))), (w, h, to_w, to_h)


@pytest.mark.parametrize("size", [(2000, 1), (1, 2000), (700, 900)])
def test_far_smaller_and_far_larger(size: tuple[int, int]) -> None:
    image = Image.fromarray(np.random.default_rng(3).integers(0, 256, size[::-1], dtype=np.uint8))
    for to in ((1, 1), (3, 500), (500, 3), size):
        assert np.array_equal(np.array(bicubic(image, to)), np.array(image.resize(to, PILLOWS)))


def test_other_modes_are_left_to_pillow() -> None:
    image = Image.fromarray(np.random.default_rng(3).integers(0, 256, (9, 7, 4), dtype=np.uint8))
    assert np.array_equal(np.array(bicubic(image, (20, 10))), np.array(image.resize((20, 10), PILLOWS)))


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("size", [(90, 60), (200, 130), (300, 700)])
def test_a_page_is_cut_into_the_same_views(size: tuple[int, int], mode: str) -> None:
    image = Image.fromarray(np.random.default_rng(3).integers(0, 256, size[::-1], dtype=np.uint8)).convert(mode)
    cfg = ProcessorConfig(base_size=128, image_size=64)
    ours, pillows = page_views(image, cfg, bicubic), page_views(image, cfg)
    assert np.array_equal(ours.global_view, pillows.global_view)
    assert np.array_equal(ours.tiles, pillows.tiles)
