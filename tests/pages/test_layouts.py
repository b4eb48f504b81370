"""Ways in which scanners and libraries store pixels: TIFF layouts, fax codes, wavelets, photographs inside PDFs."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from jocr.records import PageFailure, PageImage

from .made_tiff import tiff

Draw = Callable[..., Any]
SIZE = (160, 80)
GREY = np.full((80, 160), 255, np.uint8)
GREY[:20, :40] = 0  # black at the top left
COLOUR = np.stack([GREY, np.full_like(GREY, 200), np.where(GREY == 0, 100, 255).astype(np.uint8)], axis=2)


def pixels(page: PageImage | PageFailure) -> np.ndarray:
    assert isinstance(page, PageImage), page
    return np.asarray(Image.open(io.BytesIO(page.png)).convert("RGB"))


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def assert_shows(page: Any, expected: np.ndarray, tolerance: int = 2) -> None:
    got = pixels(page).astype(int)
    wanted = expected if expected.ndim == 3 else np.repeat(expected[:, :, None], 3, axis=2)
    assert got.shape == wanted.shape
    assert float(np.abs(got - wanted).max()) <= tolerance


def wide(values: np.ndarray, order: str = "<") -> np.ndarray:
    return (values.astype(np.uint16) * 257).astype(f"{order}u2")


@pytest.mark.parametrize("order", ["<", ">"])
def test_planes_may_lie_apart(draw: Draw, order: str) -> None:
    planes = [COLOUR[:, :, n].tobytes() for n in range(3)]
    data = tiff(SIZE, planes, bits=(8, 8, 8), photometric=2, more={284: [2], 278: [80]}, order=order)
    assert_shows(draw(data)[0], COLOUR)


@pytest.mark.parametrize("order", ["<", ">"])
def test_sixteen_bits_a_colour(draw: Draw, order: str) -> None:
    data = tiff(SIZE, [wide(COLOUR, order).tobytes()], bits=(16, 16, 16), photometric=2, order=order)
    assert_shows(draw(data)[0], COLOUR)
    data = tiff(SIZE, [wide(GREY, order).tobytes()], bits=(16,), order=order)
    assert_shows(draw(data)[0], GREY)


def test_tiles_and_many_strips(draw: Draw) -> None:
    padded = np.pad(GREY, ((0, 16), (0, 32)), constant_values=255)
    tiles = [padded[y : y + 32, x : x + 64].tobytes() for y in (0, 32, 64) for x in (0, 64, 128)]
    assert_shows(draw(tiff(SIZE, tiles, more={322: [64], 323: [32]}))[0], GREY)
    strips = [GREY[y : y + 8].tobytes() for y in range(0, 80, 8)]
    assert_shows(draw(tiff(SIZE, strips))[0], GREY)


@pytest.mark.parametrize("photometric", [0, 1])
@pytest.mark.parametrize("fill_order", [1, 2])
def test_one_bit_of_either_polarity_and_order(draw: Draw, photometric: int, fill_order: int) -> None:
    set_bits = GREY > 128 if photometric == 1 else GREY <= 128
    packed = np.packbits(set_bits, axis=1, bitorder="big" if fill_order == 1 else "little").tobytes()
    assert_shows(draw(tiff(SIZE, [packed], bits=(1,), photometric=photometric, more={266: [fill_order]}))[0], GREY)


@pytest.mark.parametrize("photometric", [0, 1])
def test_four_bits_of_either_polarity(draw: Draw, photometric: int) -> None:
    levels = (GREY // 17) if photometric == 1 else 15 - GREY // 17
    packed = (levels[:, ::2] << 4 | levels[:, 1::2]).astype(np.uint8).tobytes()
    assert_shows(draw(tiff(SIZE, [packed], bits=(4,), photometric=photometric))[0], GREY)


def test_inks_and_inverted_grey(draw: Draw) -> None:
    inks = np.zeros((80, 160, 4), np.uint8)
    inks[:20, :40, 3] = 255
    assert_shows(draw(tiff(SIZE, [inks.tobytes()], bits=(8, 8, 8, 8), photometric=5))[0], GREY, tolerance=40)
    assert_shows(draw(tiff(SIZE, [(255 - GREY).tobytes()], photometric=0))[0], GREY)


@pytest.mark.parametrize("compression", ["tiff_ccitt", "group3", "group4"])
@pytest.mark.parametrize("photometric", [0, 1])
def test_fax_codes_of_either_polarity(draw: Draw, compression: str, photometric: int) -> None:
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[262] = photometric
    image = Image.fromarray(GREY).convert("1")
    (page,) = draw(saved(image, "TIFF", compression=compression, tiffinfo=tags))
    assert_shows(page, GREY)


@pytest.mark.parametrize("mode", ["L", "RGB", "YCbCr", "CMYK"])
def test_photographs_in_a_tiff(draw: Draw, mode: str) -> None:
    image = Image.fromarray(GREY).convert("RGB").convert(mode)
    pages = draw(saved(image, "TIFF", compression="jpeg", save_all=True, append_images=[image], big_tiff=True))
    assert len(pages) == 2
    for page in pages:
        assert pixels(page)[10, 20].max() < 60
        assert pixels(page)[60, 120].min() > 240


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "I;16"])
@pytest.mark.parametrize("bare", [True, False])
def test_wavelets_in_every_mode_with_and_without_a_file_format(draw: Draw, mode: str, bare: bool) -> None:
    image = Image.fromarray(wide(GREY)) if mode == "I;16" else Image.fromarray(GREY).convert(mode)
    assert_shows(draw(saved(image, "JPEG2000", no_jp2=bare))[0], GREY)


def test_a_large_wavelet_picture_is_read_at_a_fraction(draw: Draw) -> None:
    large = Image.fromarray(GREY).resize((3200, 1600), Image.Resampling.NEAREST)
    (page,) = draw(saved(large, "JPEG2000", num_resolutions=6), long_side=160)
    assert pixels(page)[10, 20].max() < 30
    assert pixels(page)[60, 120].min() > 240
    assert (page.source_width, page.source_height) == (3200, 1600)


def test_webp_bmp_and_gif_in_their_modes(draw: Draw) -> None:
    image = Image.fromarray(GREY)
    for mode, form, options in (
        ("RGB", "WEBP", {"lossless": True}), ("RGBA", "WEBP", {"lossless": True}), ("1", "BMP", {}), ("P", "BMP", {}),
        ("L", "BMP", {}), ("RGB", "BMP", {}), ("RGBA", "BMP", {}), ("P", "GIF", {}), ("L", "GIF", {"interlace": 1}),
    ):  # fmt: skip
        assert_shows(draw(saved(image.convert(mode), form, **options))[0], GREY)


def test_heic_with_its_package(draw: Draw) -> None:
    heif = pytest.importorskip("pillow_heif")
    out = io.BytesIO()
    heif.from_pillow(Image.fromarray(GREY).convert("RGB")).save(out, quality=95)
    (page,) = draw(out.getvalue())
    assert pixels(page)[8, 16].max() < 40
    assert pixels(page)[60, 120].min() > 230


def fax(image: Image.Image) -> bytes:
    """The bare Group 4 data of a one-strip TIFF."""
    data = saved(image, "TIFF", compression="group4", strip_size=1 << 20)
    with Image.open(io.BytesIO(data)) as stored:
        (at,), (count,) = stored.tag_v2[273], stored.tag_v2[279]  # type: ignore[attr-defined]
    return data[at : at + count]


@pytest.mark.parametrize("decode", [b"", b"/Decode [1 0]"])
@pytest.mark.parametrize("black_is_one", [True, False])
def test_fax_codes_in_a_pdf_of_either_polarity(draw: Draw, pdf: Any, decode: bytes, black_is_one: bool) -> None:
    """What the sheet shows follows from /BlackIs1 and /Decode together; it is white with a black corner either way."""
    turned = (decode != b"") == black_is_one  # Pillow's TIFF calls the white runs black
    image = Image.fromarray(255 - GREY if turned else GREY).convert("1", dither=Image.Dither.NONE)
    parameters = b"/K -1 /Columns 160 /Rows 80 /BlackIs1 %s" % (b"true" if black_is_one else b"false")
    head = b"/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /CCITTFaxDecode /DecodeParms << %s >> " % parameters
    document = pdf()
    number = document.image(*SIZE, fax(image), head + decode)
    more = b"/Resources << /XObject << /I %d 0 R >> >>" % number
    document.page(b"q 160 0 0 80 0 0 cm /I Do Q", box="0 0 160 80", more=more)
    assert_shows(draw(document.bytes(), long_side=160)[0], GREY, tolerance=60)


@pytest.mark.parametrize("inverted", [True, False])
def test_four_inks_in_a_pdf_of_either_polarity(draw: Draw, pdf: Any, inverted: bool) -> None:
    """Photographs of Adobe's programs hold inverted inks and say so by /Decode."""
    inks = np.zeros((80, 160, 4), np.uint8)
    inks[:20, :40, 3] = 255
    data = saved(Image.fromarray(255 - inks if not inverted else inks, "CMYK"), "JPEG", quality=95)  # Pillow inverts
    head = b"/ColorSpace /DeviceCMYK /BitsPerComponent 8 /Filter /DCTDecode "
    document = pdf()
    number = document.image(*SIZE, data, head + (b"/Decode [1 0 1 0 1 0 1 0]" if inverted else b""))
    more = b"/Resources << /XObject << /I %d 0 R >> >>" % number
    document.page(b"q 160 0 0 80 0 0 cm /I Do Q", box="0 0 160 80", more=more)
    (page,) = draw(document.bytes(), long_side=160)
    assert pixels(page)[60, 120].min() > 230
    assert pixels(page)[8, 16].max() < 60


def segment(number: int, kind: int, data: bytes, refers_to: bytes = b"") -> bytes:
    """One segment of JBIG2 (ITU-T T.88, 7.2) on page 1."""
    return struct.pack(">LBB", number, kind, len(refers_to) << 5) + refers_to + struct.pack(">BL", 1, len(data)) + data


def halftone(cells: np.ndarray, pattern: int = 8) -> bytes:
    """A page that is nothing but a halftone of two patterns, white and black (T.88, 6.6 and 6.7)."""

    def coded(bits: np.ndarray) -> bytes:
        return fax(Image.fromarray((255 * bits).astype(np.uint8)).convert("1", dither=Image.Dither.NONE))

    rows, columns = cells.shape
    height, width = rows * pattern, columns * pattern
    two = np.repeat([[0, 1]], pattern, axis=1).repeat(pattern, axis=0)
    page = segment(0, 48, struct.pack(">LLLLBH", width, height, 0, 0, 0, 0))
    dictionary = segment(1, 16, struct.pack(">BBBL", 1, pattern, pattern, 1) + coded(two))
    region = struct.pack(">LLLLB", width, height, 0, 0, 0) + b"\1"
    grid = struct.pack(">LLllHH", columns, rows, 0, 0, pattern * 256, 0)
    return page + dictionary + segment(2, 23, region + grid + coded(cells), refers_to=b"\1")


def test_a_halftone_of_patterns_is_not_blank(draw: Draw, pdf: Any) -> None:
    cells = np.zeros((10, 20), np.uint8)
    cells[:3, :5] = 1
    document = pdf()
    head = b"/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /JBIG2Decode"
    number = document.image(160, 80, halftone(cells), head)
    more = b"/Resources << /XObject << /I %d 0 R >> >>" % number
    document.page(b"q 160 0 0 80 0 0 cm /I Do Q", box="0 0 160 80", more=more)
    (page,) = draw(document.bytes(), long_side=160)
    assert_shows(page, np.where(cells.repeat(8, axis=0).repeat(8, axis=1), 0, 255).astype(np.uint8))
    assert not page.blank
