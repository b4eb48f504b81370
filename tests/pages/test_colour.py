"""Grey pages are kept grey, coloured ones are not touched, and the PNG of either is what went in."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from jocr.pages.colour import squeeze
from jocr.pages.png import encode_png


def grey_page() -> np.ndarray:
    return np.repeat(np.random.default_rng(0).integers(0, 256, (150, 70, 1), np.uint8), 3, axis=2)


def test_a_page_without_colour_becomes_one_channel() -> None:
    page = grey_page()
    assert np.array_equal(squeeze(page), page[..., 0])
    assert squeeze(page[..., 0]).shape == (150, 70)


@pytest.mark.parametrize("where", [(0, 0), (149, 69), (64, 0), (63, 69)])
@pytest.mark.parametrize("channel", [0, 1, 2])
def test_one_coloured_pixel_keeps_the_page_in_colour(where: tuple[int, int], channel: int) -> None:
    page = grey_page()
    page[(*where, channel)] ^= 1
    assert squeeze(page) is page


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (150, 70), (1, 1, 3), (7, 3, 3), (150, 70, 3)])
def test_png_holds_the_pixels(shape: tuple[int, ...]) -> None:
    page = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    image = Image.open(io.BytesIO(encode_png(page)))
    assert image.mode == ("L" if page.ndim == 2 else "RGB")
    assert np.array_equal(np.asarray(image), page)
