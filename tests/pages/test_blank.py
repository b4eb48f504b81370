"""Blank or not, on pages drawn for the purpose: each test names what a simpler rule gets wrong."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont, ImageOps

from jocr.pages.blank import judge_blank
from jocr.pages.components import find_components

HEIGHT, WIDTH = 1280, 990
ROWS, COLS = np.mgrid[0:HEIGHT, 0:WIDTH]


def sheet(tone: int = 255) -> Image.Image:
    return Image.new("L", (WIDTH, HEIGHT), tone)


def write(page: Image.Image, text: str, at: tuple[int, int], size: int = 18, ink: int = 0) -> Image.Image:
    ImageDraw.Draw(page).text(at, text, fill=ink, font=ImageFont.load_default(size))
    return page


def full_page(tone: int = 255, ink: int = 0) -> Image.Image:
    page = sheet(tone)
    for row in range(40):
        write(page, "the quick brown fox jumps over the lazy dog again and again", (80, 60 + 27 * row), ink=ink)
    return page


def paper(rng: np.random.Generator) -> np.ndarray:
    return 215 + 10 * np.sin(COLS / 300) + rng.normal(0, 4, (HEIGHT, WIDTH))


def judge(image: Image.Image | np.ndarray) -> tuple[bool, str]:
    return judge_blank(np.clip(np.asarray(image), 0, 255).astype(np.uint8))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize("tone", [255, 0, 128, 30])
def test_an_even_page_of_any_tone_is_blank(tone: int) -> None:
    blank, evidence = judge(sheet(tone))
    assert blank
    assert "nothing stands out" in evidence


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.5, 0.9])
def test_black_and_white_noise_is_blank(rng: np.random.Generator, share: float) -> None:
    assert judge(np.where(rng.random((HEIGHT, WIDTH)) < share, 0, 255))[0]


@pytest.mark.parametrize("sigma", [5, 40, 80])
def test_gaussian_and_even_noise_are_blank(rng: np.random.Generator, sigma: int) -> None:
    assert judge(rng.normal(190, sigma, (HEIGHT, WIDTH)))[0]
    assert judge(rng.integers(0, 256, (HEIGHT, WIDTH)))[0]


@pytest.mark.parametrize("times", [2, 3])
def test_enlarged_noise_makes_blobs_and_is_blank(rng: np.random.Generator, times: int) -> None:
    small = Image.fromarray(np.where(rng.random((HEIGHT // times, WIDTH // times)) < 0.05, 0, 255).astype(np.uint8))
    assert judge(small.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))[0]


def test_mirrored_show_through_at_twelve_percent_is_blank_and_real_text_is_not(rng: np.random.Generator) -> None:
    ink = 255.0 - np.asarray(full_page())
    ghost = 255 - 0.12 * np.asarray(ImageOps.mirror(Image.fromarray(ink.astype(np.uint8))))
    assert judge(ghost)[0]
    assert judge(paper(rng) * ghost / 255)[0]
    assert not judge(paper(rng) * (255 - 0.4 * ink) / 255)[0]


@pytest.mark.parametrize("word", ["Hello", "of", "ab", "7"])
@pytest.mark.parametrize("size", [12, 20, 60])
def test_one_small_word_is_not_blank(word: str, size: int) -> None:
    blank, evidence = judge(write(sheet(), word, (480, 600), size))
    assert not blank, evidence


def test_one_word_is_seen_on_dark_noisy_shaded_and_tightly_cut_ground(rng: np.random.Generator) -> None:
    word = 1 - np.asarray(write(sheet(), "Index", (300, 900), 16)) / 255.0
    assert not judge(255 * word)[0]
    assert not judge(paper(rng) * (1 - 0.8 * word))[0]
    shaded = (250 - 0.15 * COLS) * (1 - 0.8 * word)
    assert not judge(shaded)[0]
    assert not judge(write(Image.new("L", (120, 22), 255), "Tight crop", (0, -2), 20))[0]


@pytest.mark.parametrize("seed", range(4))
def test_edge_shadows_and_specks_are_blank(seed: int) -> None:
    rng = np.random.default_rng(seed)
    page = Image.fromarray(paper(rng).astype(np.uint8))
    for _ in range(25):
        x, y = rng.integers(20, WIDTH - 20), rng.integers(20, HEIGHT - 20)
        width, height = rng.integers(1, 5, 2)
        ImageDraw.Draw(page).ellipse((x, y, x + width, y + height), fill=int(rng.integers(20, 120)))
    scan = np.asarray(page).astype(float)
    edge = 50 + 6 * np.sin(ROWS / 37) + rng.normal(0, 1.5, (HEIGHT, 1))
    scan[edge > COLS] = 25
    scan[-20:] = 10
    scan *= 1 - 0.4 * np.exp(-(((WIDTH - COLS) / 90.0) ** 2))
    coverage = float((scan < 128).mean())
    blank, evidence = judge(scan)
    assert blank, evidence
    assert coverage > 0.05  # more "ink" than a page of text has: coverage cannot decide this
    assert float((np.asarray(full_page()) < 128).mean()) < coverage


def test_punch_holes_ruling_and_an_empty_frame_are_blank() -> None:
    page = sheet()
    pen = ImageDraw.Draw(page)
    for y in (200, 640, 1080):
        pen.ellipse((30, y, 60, y + 30), fill=0)
    for y in range(100, 1200, 40):
        pen.line((80, y, 930, y), fill=90)
    pen.rectangle((70, 60, 940, 1220), outline=0, width=2)
    assert judge(page)[0]


@pytest.mark.parametrize("turn", [0, 90, 180, 270, 7])
def test_text_in_any_direction_or_tone_is_not_blank(turn: int) -> None:
    assert not judge(full_page().rotate(turn, expand=True, fillcolor=255))[0]
    assert not judge(full_page(tone=0, ink=255).rotate(turn, expand=True))[0]
    assert not judge(full_page(ink=180).rotate(turn, expand=True, fillcolor=255))[0]


def test_a_column_of_glyphs_is_not_blank() -> None:
    page = sheet()
    for row in range(8):
        write(page, "A", (500, 200 + 26 * row))
    assert not judge(page)[0]


def test_pictures_are_not_blank() -> None:
    fields = np.select([(COLS > ROWS) & (COLS + ROWS < 1100), COLS > ROWS], [150, 29], 76)
    assert not judge(fields)[0]
    disc = sheet()
    ImageDraw.Draw(disc).ellipse((300, 300, 700, 700), fill=60)
    assert not judge(disc)[0]


@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (500, 1), (7, 900)])
def test_images_too_small_for_a_glyph_are_blank(shape: tuple[int, int]) -> None:
    blank, evidence = judge_blank(np.zeros(shape, np.uint8))
    assert blank
    assert "no glyph" in evidence


@pytest.mark.parametrize("density", [0.05, 0.3, 0.45, 0.9])
def test_components_are_those_of_a_flood_fill(rng: np.random.Generator, density: float) -> None:
    mask = rng.random((40, 37)) < density
    found = find_components(mask)
    boxes = zip(found.top, found.left, found.bottom, found.right, found.area, strict=True)
    assert sorted(tuple(map(int, box)) for box in boxes) == sorted(flood_fill(mask))


def flood_fill(mask: np.ndarray) -> list[tuple[int, int, int, int, int]]:
    left, found = {(int(y), int(x)) for y, x in np.argwhere(mask)}, []
    while left:
        stack, part = [left.pop()], []
        while stack:
            y, x = stack.pop()
            part.append((y, x))
            near = {(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)} & left
            left -= near
            stack += near
        ys, xs = zip(*part, strict=True)
        found.append((min(ys), min(xs), max(ys) + 1, max(xs) + 1, len(part)))
    return found
