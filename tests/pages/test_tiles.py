"""Which views a page is cut into, pixel for pixel and count for count."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from PIL import Image, ImageOps

from jocr.errors import CheckpointError
from jocr.model.vision import NEWLINE, SEPARATOR, page_layout
from jocr.pages.tiles import GREY, ProcessorConfig, choose_grid, fitted_size, letterbox, normalise, page_views

PUBLISHED = ProcessorConfig()

# Worked by hand from the rule: no tiles up to 640 x 640; else the (columns, rows) with 2..9 tiles whose ratio is
# closest; among equal ratios the larger one when the image has more than half of its pixels (640^2 a tile).
BY_HAND = [
    ((1, 1), None),
    ((640, 640), None),
    ((640, 1), None),
    ((641, 640), (2, 2)),  # ratio 1.0016: 2x2 and 3x3 tie; 0.41 MP is not half of 3.69
    ((640, 641), (2, 2)),
    ((641, 641), (2, 2)),
    ((1357, 1357), (2, 2)),  # 1,841,449 px: just not half of 3x3 (1,843,200)
    ((1358, 1358), (3, 3)),  # 1,844,164 px
    ((20000, 20000), (3, 3)),
    ((641, 1), (9, 1)),  # ratio 641: the widest grid
    ((1, 641), (1, 9)),  # ratio 0.0016: 1/9 is nearest
    ((20000, 1), (9, 1)),
    ((1, 20000), (1, 9)),
    ((1240, 1754), (2, 3)),  # A4 at 150 dpi: 0.707 is 0.040 from 2/3
    ((1754, 1240), (3, 2)),  # 1.4145 is 0.086 from 3/2
    ((1700, 2200), (2, 3)),  # US Letter at 200 dpi: 0.773; 2/3 is 0.106 away, 1 is 0.227 away
    ((700, 800), (2, 2)),  # 0.875: 1 is 0.125 away, 2/3 is 0.208 away
    ((1000, 500), (2, 1)),  # 2: 2x1 and 4x2; 0.50 MP is not half of 4x2 (1.64 MP)
    ((1812, 906), (4, 2)),  # 1,641,672 px: just over half of 4x2 (1,638,400)
    ((1810, 905), (2, 1)),  # 1,638,050 px: just under
    ((906, 1812), (2, 4)),
    ((500, 1000), (1, 2)),
    ((3000, 1000), (3, 1)),
    ((1000, 3000), (1, 3)),
    ((4000, 1000), (4, 1)),
    ((5000, 1000), (5, 1)),
    ((6500, 1000), (7, 1)),  # 6.5: exactly between 6 and 7; 6.5 MP is more than half of 7 tiles (1.43 MP)
    ((1250, 1000), (3, 2)),  # 1.25: exactly between 1 and 3/2; 1.25 MP is more than half of 3x2 (1.23 MP)
    ((8000, 1000), (8, 1)),
    ((8600, 1000), (9, 1)),
    ((1000, 8000), (1, 8)),
    ((100, 700), (1, 7)),
    ((700, 100), (7, 1)),
    ((700, 300), (2, 1)),  # 2.333: 2 is nearer than 3
]


@pytest.mark.parametrize(("size", "grid"), BY_HAND, ids=str)
def test_grid_by_hand(size, grid) -> None:
    assert choose_grid(*size, PUBLISHED) == grid


def nearest(width: int, height: int) -> set[tuple[int, int]]:
    """All grids whose ratio is nearest, in exact arithmetic."""
    ratio = Fraction(width, height)
    gap = {(w, h): abs(ratio - Fraction(w, h)) for w in range(1, 10) for h in range(1, 10) if 2 <= w * h <= 9}
    return {grid for grid, g in gap.items() if g == min(gap.values())}


def test_sweep_1_to_20000() -> None:
    pick = random.Random(5)
    edges = [1, 2, 639, 640, 641, 1279, 1280, 1281, 20000]
    sizes = [(w, h) for w in edges for h in edges]
    sizes += [(pick.randint(1, 20000), pick.randint(1, 20000)) for _ in range(3000)]
    for w, h in sizes:
        grid = choose_grid(w, h, PUBLISHED)
        if w <= 640 and h <= 640:
            assert grid is None
            continue
        best = nearest(w, h)
        assert grid in best, (w, h)
        enough = [g for g in best if w * h > 0.5 * 640 * 640 * g[0] * g[1]]
        smallest = min(g[0] * g[1] for g in best)
        assert grid[0] * grid[1] == max([smallest, *(g[0] * g[1] for g in enough)]), (w, h)


def test_no_tiles_without_crop_mode() -> None:
    assert choose_grid(5000, 5000, ProcessorConfig(crop_mode=False)) is None


def test_token_counts() -> None:
    assert PUBLISHED.token_count(None) == 273
    for w in range(1, 10):
        for h in range(1, 9 // w + 1):
            if w * h >= 2:
                assert PUBLISHED.token_count((w, h)) == 273 + 10 * h * (10 * w + 1)
                assert len(page_layout((w, h), 16, 10)) == PUBLISHED.token_count((w, h))
    assert ProcessorConfig(base_size=512, image_size=256).token_count((2, 1)) == 8 * 9 + 1 + 4 * 9


def test_layout_without_tiles_by_hand() -> None:
    n, s = NEWLINE, SEPARATOR
    assert page_layout(None, 2, 1).tolist() == [0, 1, n, 2, 3, n, s]


def test_layout_of_a_mosaic_by_hand() -> None:
    n, s = NEWLINE, SEPARATOR
    # two tiles side by side, each of 2 x 2 tokens (0..3 and 4..7), then a global view of one token (8)
    assert page_layout((2, 1), 1, 2).tolist() == [0, 1, 4, 5, n, 2, 3, 6, 7, n, 8, n, s]
    # one above the other
    assert page_layout((1, 2), 1, 2).tolist() == [0, 1, n, 2, 3, n, 4, 5, n, 6, 7, n, 8, n, s]
    # 2 x 2 tiles of one token, global view 2 x 2
    assert page_layout((2, 2), 2, 1).tolist() == [0, 1, n, 2, 3, n, 4, 5, n, 6, 7, n, s]


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(1).integers(0, 256, (height, width, 3), dtype=np.uint8))


SIZES = [
    (100, 40),
    (40, 100),
    (64, 64),
    (1, 1),
    (1, 64),
    (64, 1),
    (129, 63),
    (77, 200),
    (300, 299),
    (65, 127),
    (200, 1),
]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_letterbox_is_pil_pad(size) -> None:
    image = noise(*size)
    if min(fitted_size(*size, 64)) * max(size) < 64 * min(size) * 0.5 or size == (200, 1):
        assert letterbox(image, 64).size == (64, 64)  # PIL itself cannot: it rounds one side to zero
        return
    expected = ImageOps.pad(image, (64, 64), color=GREY)
    assert np.array_equal(np.asarray(letterbox(image, 64)), np.asarray(expected))


def test_letterbox_rounds_as_pil_does() -> None:
    pick = random.Random(3)
    for _ in range(2000):
        w, h = pick.randint(1, 20000), pick.randint(1, 20000)
        if min(w, h) / max(w, h) * 1024 < 0.6:
            assert min(fitted_size(w, h, 1024)) == 1
            continue
        fit = round(h / w * 1024) if w > h else round(w / h * 1024)
        assert fitted_size(w, h, 1024) == ((1024, fit) if w > h else (fit, 1024))


def test_tiles_are_cut_row_by_row() -> None:
    cfg = ProcessorConfig(base_size=64, image_size=32)
    image = noise(96, 64)  # exactly 3 x 2 tiles of 32: nothing is resampled
    views = page_views(image, cfg)
    assert views.grid == (3, 2)
    pixels = np.asarray(image)
    for i in range(6):
        row, column = divmod(i, 3)
        assert np.array_equal(views.tiles[i], pixels[32 * row : 32 * row + 32, 32 * column : 32 * column + 32])
    assert views.global_view.shape == (64, 64, 3)


@pytest.mark.parametrize("size", [(500, 1), (1, 500), (1, 1), (3000, 1), (1, 20000)])
def test_lines_of_one_pixel(size) -> None:
    views = page_views(noise(*size), ProcessorConfig(base_size=128, image_size=64))
    assert views.global_view.shape == (128, 128, 3)
    count = 0 if views.grid is None else views.grid[0] * views.grid[1]
    assert views.tiles.shape == (count, 64, 64, 3)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "F"])
def test_any_image_mode(mode) -> None:
    views = page_views(Image.new(mode, (30, 20)), ProcessorConfig(base_size=32, image_size=64))
    assert views.global_view.dtype == np.uint8
    assert views.grid is None


@pytest.mark.parametrize("size", [(640, 480), (700, 1500), (1281, 60)])
def test_a_grey_page_gives_what_its_three_equal_planes_give(size) -> None:
    image = Image.fromarray(np.random.default_rng(3).integers(0, 256, size[::-1], dtype=np.uint8))
    assert image.mode == "L"
    grey, wide = page_views(image, PUBLISHED), page_views(image.convert("RGB"), PUBLISHED)
    assert grey.grid == wide.grid
    for one, other in ((grey.global_view, wide.global_view), (grey.tiles, wide.tiles)):
        assert np.array_equal(one, other)
        assert one.shape[-1] == 3
        assert one.size == 0 or one.strides[-1] == 0  # one plane in memory


def test_normalise() -> None:
    pixels = np.array([[[0, 127, 255]]], np.uint8)
    assert normalise(pixels).shape == (3, 1, 1)
    np.testing.assert_allclose(normalise(pixels).ravel(), [-1, 127 / 127.5 - 1, 1], atol=1e-7)
    mean_std = (pixels.astype(np.float64) / 255 - 0.5) / 0.5
    np.testing.assert_allclose(normalise(pixels).ravel(), mean_std.ravel(), atol=1e-6)


def test_processor_config_file(tmp_path) -> None:
    with pytest.raises(CheckpointError, match="processor_config"):
        ProcessorConfig.load(tmp_path)
    (tmp_path / "processor_config.json").write_text('{"base_size": 512, "unknown": 1}')
    assert ProcessorConfig.load(tmp_path) == ProcessorConfig(base_size=512)
