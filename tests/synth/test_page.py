"""Pages: the same from the same seed, never empty, and labelled by what was drawn."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from PIL import Image

from jocr.errors import ConfigError
from jocr.synth.canvas import GLYPH
from jocr.synth.noise import turn
from jocr.synth.page import KINDS, SPLITS, SynthPage, make_page


def page_of(seed: int, kind: str, width: int, height: int, split: str = "train") -> SynthPage:
    """A page; the test is skipped where the split's fonts are not installed."""
    try:
        return make_page(seed, kind, width, height, split=split)
    except ConfigError as error:
        if "fonts" not in str(error):
            raise
        pytest.skip(str(error))


def sample(n: int, size: int = 256) -> list[SynthPage]:
    return [page_of(seed, kind, size, size) for kind in KINDS for seed in range(n)]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("kind", KINDS)
def test_same_arguments_give_the_same_page(kind: str, split: str) -> None:
    one, two = page_of(7, kind, 256, 256, split), page_of(7, kind, 256, 256, split)
    assert one.markdown == two.markdown
    assert one.font == two.font
    np.testing.assert_array_equal(one.image, two.image)
    np.testing.assert_array_equal(one.glyphs, two.glyphs)


def test_every_argument_changes_the_page() -> None:
    pages = [page_of(s, k, w, 256, split) for s in (1, 2) for k in KINDS for w in (256, 272) for split in SPLITS[:2]]
    assert len({page.markdown for page in pages}) == len(pages)


def test_labels_are_the_characters_of_the_reference() -> None:
    for page in sample(16):
        own = page.glyphs[page.glyphs["pos"] >= 0]
        assert [page.markdown[i] for i in own["pos"]] == own["char"].tolist()
        assert len(set(own["pos"].tolist())) == len(own), "two glyphs stand for one character"


def test_every_printed_character_of_a_paragraph_has_its_glyph() -> None:
    for seed in range(40):
        page = page_of(seed, "paragraph", 256, 256)
        printed = {i for i, char in enumerate(page.markdown) if char != " "}
        assert printed == set(page.glyphs["pos"].tolist())


def test_text_of_tables_is_all_labelled() -> None:
    for seed in range(40):
        page = page_of(seed, "table", 256, 256)
        inside = re.sub(r"<[^>]*>", lambda tag: " " * len(tag.group()), page.markdown)
        assert {i for i, char in enumerate(inside) if not char.isspace()} == set(page.glyphs["pos"].tolist())


def test_there_is_ink_under_every_box() -> None:
    for page in sample(10):
        dark = page.image.astype(np.float32)
        paper = np.median(dark)
        for glyph in page.glyphs:
            x0, x1 = int(glyph["x"] - glyph["w"] / 2) - 1, int(glyph["x"] + glyph["w"] / 2) + 2
            y0, y1 = int(glyph["y"] - glyph["h"] / 2) - 1, int(glyph["y"] + glyph["h"] / 2) + 2
            patch = dark[max(0, y0) : y1, max(0, x0) : x1]
            assert patch.min() < paper - 25, (page.markdown, glyph)


def test_no_ink_lies_outside_the_boxes() -> None:
    """Away from every glyph box a clean paragraph page is blank: no glyph is without its label."""
    seen = 0
    for seed in range(40):
        page = page_of(seed, "paragraph", 256, 256)
        if page.image.max() < 255 or 0 not in page.image:
            continue  # a damaged page
        cover = np.zeros_like(page.image, dtype=bool)
        for g in page.glyphs:
            pad = 4  # a turn of less than a degree moves a box's corners by little
            top, left = int(g["y"] - g["h"] / 2) - pad, int(g["x"] - g["w"] / 2) - pad
            cover[max(0, top) : int(g["y"] + g["h"] / 2) + pad, max(0, left) : int(g["x"] + g["w"] / 2) + pad] = True
        assert page.image[~cover].min(initial=255) > 150, page.markdown
        seen += 1
    assert seen > 10


def test_centres_follow_a_turn() -> None:
    """The mean darkness at labelled centres' boxes is the same on turned and clean pages."""

    pixels = np.full((300, 400), 255, np.uint8)
    spots = [(40, 30), (350, 40), (60, 270), (380, 280), (200, 150)]
    for x, y in spots:
        pixels[y - 1 : y + 2, x - 1 : x + 2] = 0
    glyphs = np.array([("o", x + 0.5, y + 0.5, 3, 3, 0) for x, y in spots], dtype=GLYPH)
    image, moved = turn(Image.fromarray(pixels), glyphs, 0.012)
    turned = 255.0 - np.asarray(image)
    assert np.abs(moved["x"] - glyphs["x"]).max() > 1
    for g in moved:
        y0, x0 = int(g["y"]) - 4, int(g["x"]) - 4
        window = turned[y0 : y0 + 9, x0 : x0 + 9]
        ys, xs = np.mgrid[y0 : y0 + 9, x0 : x0 + 9] + 0.5
        assert abs((window * xs).sum() / window.sum() - g["x"]) < 0.4
        assert abs((window * ys).sum() / window.sum() - g["y"]) < 0.4


@pytest.mark.parametrize("kind", KINDS)
def test_any_size_gives_a_page_with_a_reference(kind: str) -> None:
    rng = random.Random(3)
    sizes = [
        (64, 64),
        (64, 1024),
        (1024, 64),
        (1024, 1024),
        *((rng.randint(64, 700), rng.randint(64, 700)) for _ in range(3)),
    ]
    for seed, (width, height) in enumerate(sizes):
        page = page_of(seed, kind, width, height, SPLITS[seed % 2])
        assert page.image.shape == (height, width)
        assert page.image.dtype == np.uint8
        assert page.markdown.strip() == page.markdown != ""
        assert len(page.glyphs) > 0
        assert (page.glyphs["x"] > 0).all()
        assert (page.glyphs["x"] < width).all()
        assert (page.glyphs["y"] > 0).all()
        assert (page.glyphs["y"] < height).all()


def test_about_four_pages_in_ten_are_clean() -> None:
    clean = sum(page_of(seed, "paragraph", 96, 96).image.max() == 255 for seed in range(150))
    assert 45 < clean < 110


def test_bad_requests_are_refused() -> None:
    with pytest.raises(ConfigError, match="kind"):
        make_page(0, "poem", 256, 256)
    with pytest.raises(ConfigError, match="split"):
        make_page(0, "table", 256, 256, split="test")
    with pytest.raises(ConfigError, match="small"):
        make_page(0, "table", 256, 20)
