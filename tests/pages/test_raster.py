"""Image files through the renderer: frames, orientation, colour, depth, transparency, size limits."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, TiffImagePlugin

from jocr.records import PageFailure, PageImage

Draw = Callable[..., Any]


def marked(size: tuple[int, int] = (200, 100), mode: str = "L") -> Image.Image:
    """White with a black block in the top left quarter: says which way is up."""
    image = Image.new("L", size, 255)
    ImageDraw.Draw(image).rectangle((0, 0, size[0] // 4, size[1] // 4), fill=0)
    return image.convert(mode)


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def pixels(page: PageImage | PageFailure) -> np.ndarray:
    assert isinstance(page, PageImage), page
    image = Image.open(io.BytesIO(page.png))
    assert image.mode in ("L", "RGB")
    assert image.size == (page.width, page.height)
    return np.asarray(image.convert("RGB"))


def dark_corner(page: PageImage) -> str:
    grey = pixels(page).mean(axis=2)
    height, width = grey.shape[0] // 8, grey.shape[1] // 8
    corners = {"top left": grey[height, width], "top right": grey[height, -width]}
    corners |= {"bottom left": grey[-height, width], "bottom right": grey[-height, -width]}
    dark = [name for name, tone in corners.items() if tone < 128]
    assert len(dark) == 1, corners
    return dark[0]


@pytest.mark.parametrize("form", ["PNG", "JPEG", "TIFF", "JPEG2000", "WEBP", "BMP", "GIF"])
def test_every_type_is_read_and_never_enlarged(draw: Draw, form: str) -> None:
    (page,) = draw(saved(marked(mode="RGB"), form), long_side=4000)
    assert (page.width, page.height, page.rotation, page.dpi) == (200, 100, 0, None)
    assert dark_corner(page) == "top left"
    assert page.renderer.startswith("pillow")


@pytest.mark.parametrize("form", ["PNG", "JPEG", "TIFF", "JPEG2000", "WEBP"])
def test_a_large_image_is_reduced_to_the_long_side(draw: Draw, form: str) -> None:
    (page,) = draw(saved(marked((1500, 600), "RGB"), form), long_side=500)
    assert (page.width, page.height) == (500, 200)
    assert (page.source_width, page.source_height) == (1500, 600)
    assert dark_corner(page) == "top left"


def test_every_frame_of_a_tiff_is_a_page_in_order(draw: Draw) -> None:
    frames = [Image.new("L", (40 + 10 * n, 30), 50 * n) for n in range(4)]
    pages = draw(saved(frames[0], "TIFF", save_all=True, append_images=frames[1:]))
    assert [page.width for page in pages] == [40, 50, 60, 70]
    assert [int(pixels(page)[5, 5, 0]) for page in pages] == [0, 50, 100, 150]


def test_frames_may_be_asked_for_in_any_order_and_again(draw: Draw, renderer: Any, tmp_path: Any) -> None:
    from jocr.records import PageRef

    first, second = marked((120, 60), "RGB"), Image.new("RGB", (50, 70), "red")
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "two.tif"
    path.write_bytes(saved(first, "TIFF", save_all=True, append_images=[second], exif=exif))
    doc, pages = renderer.open(str(path))
    assert pages == 2
    shots = [
        renderer.render(PageRef(doc, index), long_side=side) for index, side in ((1, 70), (0, 60), (0, 120), (1, 70))
    ]
    assert [(shot.width, shot.height) for shot in shots[1:3]] == [(30, 60), (60, 120)]
    assert dark_corner(shots[2]) == "top right"
    assert shots[0].png == shots[3].png


def test_reduced_resolution_frames_are_no_pages(draw: Draw) -> None:
    out = io.BytesIO()
    with TiffImagePlugin.AppendingTiffWriter(out) as writer:
        for size, kind in (((80, 40), 0), ((20, 10), 1), ((90, 40), 2)):
            tags = TiffImagePlugin.ImageFileDirectory_v2()
            tags[254] = kind
            Image.new("L", size, 0).save(writer, "TIFF", tiffinfo=tags)
            writer.newFrame()
    assert [page.width for page in draw(out.getvalue())] == [80, 90]


@pytest.mark.parametrize("compression", ["group4", "group3", "jpeg", "tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_tiff_compressions(draw: Draw, compression: str) -> None:
    mode = "1" if compression.startswith("group") else "L"
    first, second = marked((320, 160), mode), marked((160, 320), mode)
    pages = draw(saved(first, "TIFF", compression=compression, save_all=True, append_images=[second]))
    assert [dark_corner(page) for page in pages] == ["top left", "top left"]


def test_big_tiff(draw: Draw) -> None:
    data = saved(marked(), "TIFF", big_tiff=True)
    assert data[:4] == b"II+\0"
    assert dark_corner(draw(data)[0]) == "top left"


@pytest.mark.parametrize(
    ("orientation", "corner", "turned"),
    [(1, "top left", 0), (3, "bottom right", 180), (6, "top right", 90), (8, "bottom left", 270), (2, "top right", 0)],
)
@pytest.mark.parametrize("form", ["JPEG", "TIFF", "PNG"])
def test_exif_orientation_is_applied(draw: Draw, form: str, orientation: int, corner: str, turned: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    (page,) = draw(saved(marked(), form, exif=exif))
    assert dark_corner(page) == corner
    assert page.rotation == turned
    assert (page.width, page.height) == ((100, 200) if turned % 180 else (200, 100))
    assert page.notes == ()


@pytest.mark.parametrize("form", ["JPEG", "TIFF"])
def test_exif_orientation_zero_is_taken_as_one(draw: Draw, form: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 0
    (page,) = draw(saved(marked(), form, exif=exif))
    assert dark_corner(page) == "top left"
    assert "orientation 0" in page.notes[0]


def test_cmyk_polarity_with_and_without_the_adobe_marker(draw: Draw) -> None:
    data = saved(marked((64, 64), "CMYK"), "JPEG", quality=95)
    at = data.index(b"\xff\xee")
    bare = data[:at] + data[at + 2 + int.from_bytes(data[at + 2 : at + 4], "big") :]
    with_marker, without = draw(data)[0], draw(bare)[0]
    assert dark_corner(with_marker) == "top left"
    assert pixels(with_marker)[60, 60].tolist() == [255, 255, 255]
    assert pixels(without)[60, 60].tolist() == [0, 0, 0]  # the same bytes mean the opposite ink there
    assert "Adobe" in without.notes[0]


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_not_clipped(draw: Draw, form: str) -> None:
    ramp = np.linspace(0, 65535, 256).astype(np.uint16)
    (page,) = draw(saved(Image.fromarray(np.tile(ramp, (16, 1))), form))
    assert np.abs(pixels(page)[8, :, 0].astype(int) - np.arange(256)).max() <= 1


def test_white_is_zero_at_sixteen_bits(draw: Draw) -> None:
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[262] = 0
    image = Image.fromarray(np.tile(np.linspace(0, 65535, 256).astype(np.uint16), (16, 1)))
    data = bytearray(saved(image, "TIFF"))
    entry = data.index(struct.pack("<HHI", 262, 3, 1))
    data[entry + 8 : entry + 10] = b"\0\0"
    (page,) = draw(bytes(data))
    assert pixels(page)[8, 0, 0] == 255
    assert pixels(page)[8, 255, 0] == 0


def test_thirty_two_bit_and_floating_grey(draw: Draw) -> None:
    ramp = np.tile(np.linspace(0, 1, 256), (16, 1))
    for values in (ramp.astype(np.float32), (ramp * 65535).astype(np.int32), (ramp * 9e5).astype(np.int32)):
        (page,) = draw(saved(Image.fromarray(values), "TIFF"))
        assert np.abs(pixels(page)[8, :, 0].astype(int) - np.arange(256)).max() <= 1


@pytest.mark.parametrize("mode", ["1", "P", "L", "RGB", "LA", "RGBA"])
def test_palette_bilevel_and_opaque_alpha(draw: Draw, mode: str) -> None:
    assert dark_corner(draw(saved(marked(mode=mode), "PNG"))[0]) == "top left"


def test_transparency_is_laid_on_white(draw: Draw) -> None:
    image = Image.new("RGBA", (200, 100), (0, 0, 0, 0))
    image.paste((0, 0, 0, 255), (0, 0, 50, 25))
    (page,) = draw(saved(image, "PNG"))
    assert dark_corner(page) == "top left"
    assert page.notes == ()


def test_white_on_transparent_is_laid_on_black_and_half_transparent_ink_stays_faint(draw: Draw) -> None:
    image = Image.new("RGBA", (200, 100), (255, 255, 255, 0))
    image.paste((255, 255, 255, 255), (20, 20, 120, 80))
    (page,) = draw(saved(image, "PNG"))
    assert pixels(page)[50, 70, 0] == 255
    assert pixels(page)[5, 5, 0] == 0
    assert "black" in page.notes[0]
    image = Image.new("RGBA", (200, 100), (0, 0, 0, 0))
    image.paste((0, 0, 0, 128), (20, 20, 120, 80))
    assert pixels(draw(saved(image, "PNG"))[0])[50, 70, 0] == pytest.approx(127, abs=2)


def test_palette_transparency(draw: Draw) -> None:
    image = marked(mode="P")
    white = image.getpixel((190, 90))
    (page,) = draw(saved(image, "PNG", transparency=white))
    assert dark_corner(page) == "top left"


@pytest.mark.parametrize(
    ("dpi", "size"),
    [((204, 98), (200, 208)), ((100, 200), (400, 100)), ((300, 300), (200, 100)), ((72, 1), (200, 100))],
)
def test_unequal_resolutions_become_square_pixels(draw: Draw, dpi: tuple[int, int], size: tuple[int, int]) -> None:
    (page,) = draw(saved(marked(), "TIFF", dpi=dpi), long_side=4000)
    assert (page.width, page.height) == size
    assert bool(page.notes) is (size != (200, 100))


def test_unequal_resolution_and_a_quarter_turn_together(draw: Draw) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    (page,) = draw(saved(marked(), "TIFF", dpi=(200, 100), exif=exif), long_side=100)
    assert (page.width, page.height) == (100, 100)
    assert dark_corner(page) == "top right"


def test_only_the_first_frame_of_an_animation_is_a_page(draw: Draw) -> None:
    frames = [Image.new("RGB", (30, 20), colour) for colour in ("red", "green", "blue")]
    for form in ("GIF", "WEBP", "PNG"):
        (page,) = draw(saved(frames[0], form, save_all=True, append_images=frames[1:]))
        assert pixels(page)[5, 5].tolist() == pytest.approx([255, 0, 0], abs=8)


def png_header(width: int, height: int) -> bytes:
    body = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", body), (b"IDAT", zlib.compress(bytes(1000)))]
    parts = [struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def jpeg_header(width: int, height: int) -> bytes:
    data = bytearray(saved(Image.new("L", (8, 8)), "JPEG"))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", height, width)
    return bytes(data)


@pytest.mark.parametrize("data", [png_header(100_000, 100_000), jpeg_header(40_000, 40_000)])
def test_declared_size_bombs_are_refused_unread(draw: Draw, data: bytes) -> None:
    (failure,) = draw(data)
    assert (failure.reason, failure.index, failure.stage) == ("too_large", 0, "render")
    assert "limit" in failure.detail


def test_a_truncated_photo_is_shown_with_a_note_or_refused(draw: Draw) -> None:
    image = Image.new("L", (400, 400), 255)
    for x in range(0, 400, 20):
        ImageDraw.Draw(image).rectangle((x, 20, x + 9, 380), fill=0)
    data = saved(image, "JPEG")
    (page,) = draw(data[: len(data) * 2 // 3])
    assert "damaged" in page.notes[-1]
    wavelets = saved(image, "JPEG2000")
    (failure,) = draw(wavelets[: wavelets.index(b"\xff\x93") + 6])  # the headers and next to no data
    assert failure.reason == "image_error"


def test_headers_without_an_image_are_corrupt(draw: Draw) -> None:
    for data in (b"\x89PNG\r\n\x1a\n" + bytes(50), b"\xff\xd8\xff\xe0" + bytes(50), b"II*\0" + bytes(50)):
        (failure,) = draw(data)
        assert failure.reason == "corrupt"


def test_heic_without_its_package_says_how_to_get_it(draw: Draw) -> None:
    head = struct.pack(">I", 24) + b"ftypheic" + bytes(4) + b"mif1heic" + bytes(100)
    (failure,) = draw(head)
    try:
        import pillow_heif  # noqa: F401
    except ImportError:
        assert failure.reason == "missing_package"
        assert "pip install pillow-heif" in failure.detail
    else:
        assert failure.reason == "corrupt"
