"""PDF pages through the renderer: boxes, rotation, scaling, passwords, damage, forms."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jocr.records import REASONS, PageFailure, PageImage

from .made import WORDS

Draw = Callable[..., Any]
XFA = b"/AcroForm << /XFA 40 0 R /Fields [] >> "


def pixels(page: PageImage) -> np.ndarray:
    image = Image.open(io.BytesIO(page.png))
    assert image.mode in ("L", "RGB")
    assert image.size == (page.width, page.height)
    return np.asarray(image.convert("RGB"))


def reasons(pages: list[PageImage | PageFailure]) -> list[str | None]:
    return [page.reason if isinstance(page, PageFailure) else None for page in pages]


def test_a_page_is_drawn_at_the_long_side_asked_for(draw: Draw, pdf: Any) -> None:
    (page,) = draw(pdf().page().bytes(), long_side=800)
    assert (page.width, page.height) == (618, 800)
    assert (page.source_width, page.source_height) == (612, 792)
    assert page.dpi == pytest.approx(72 * 800 / 792)
    assert page.renderer.startswith("pypdfium2 5.")
    assert not page.blank
    assert (page.rotation, page.notes) == (0, ())
    ink = np.argwhere(pixels(page).min(axis=2) < 128)
    assert len(ink) > 200
    assert ink[:, 0].min() == pytest.approx((792 - 400 - 29) * 800 / 792, abs=4)  # the top of the capitals


def test_a_page_without_area_costs_only_itself(draw: Draw, pdf: Any) -> None:
    pages = draw(pdf().page().page(box="0 0 0 0").page(box="0 0 612 0").page().bytes())
    assert reasons(pages) == [None, "zero_area", "zero_area", None]
    assert (pages[1].index, pages[1].stage) == (1, "render")


@pytest.mark.parametrize(
    ("box", "more", "note"),
    [
        ("612 792 0 0", b"", False),
        ("0 792 612 0", b"", False),
        ("612 0 0 792", b"", False),
        ("0 0 612 792", b"/CropBox [612 792 0 0]", False),
        ("0 0 612 792", b"/CropBox [-50 -50 900 900]", False),
        ("0 0 612.0 792.0", b"/TrimBox [0 0 0 0] /BleedBox [9 9 1 1]", False),
        (None, b"", False),
        ("0 0 612 792", b"/CropBox [0 0 0 0]", False),
        ("0 0 612 792", b"/CropBox [1000 1000 1200 1200]", True),
    ],
)
def test_reversed_missing_and_senseless_boxes_show_the_page(
    draw: Draw, pdf: Any, box: str | None, more: bytes, note: bool
) -> None:
    plain, (page,) = draw(pdf().page().bytes())[0], draw(pdf().page(box=box, more=more).bytes())
    assert page.png == plain.png
    assert any("CropBox" in text for text in page.notes) is note


def test_a_box_that_does_not_begin_at_zero(draw: Draw, pdf: Any) -> None:
    plain = pixels(draw(pdf().page().bytes())[0])
    (page,) = draw(pdf().page(b"1 0 0 1 -100 -2000 cm " + WORDS, box="-100 -2000 512 -1208").bytes())
    assert np.abs(pixels(page).astype(int) - plain).max() <= 1


@pytest.mark.parametrize(("asked", "turned"), [(0, 0), (360, 0), (-90, 270), (450, 90), (180, 180), (-720, 0)])
def test_rotate_counts_modulo_360(draw: Draw, pdf: Any, asked: int, turned: int) -> None:
    upright = pixels(draw(pdf().page(box="0 0 600 800").bytes())[0])
    (page,) = draw(pdf().page(box="0 0 600 800", more=b"/Rotate %d" % asked).bytes())
    assert page.rotation == turned
    assert (page.source_width, page.source_height) == (600, 800)
    expected = np.rot90(upright, -turned // 90)
    assert float(np.abs(pixels(page).astype(int) - expected).mean()) < 2.0


@pytest.mark.parametrize("asked", [45, 100, -91, 271])
def test_rotate_of_no_right_angle_is_ignored_with_a_note(draw: Draw, pdf: Any, asked: int) -> None:
    direct = pdf().page(more=b"/Rotate %d" % asked)
    indirect = pdf().page(more=b"/Rotate 90 0 R")
    indirect.objects[90] = (b"=%d" % asked, None)
    for document in (direct, indirect):
        (page,) = draw(document.bytes())
        assert page.rotation == 0
        assert page.height > page.width
        assert f"/Rotate {asked} " in page.notes[0]


def test_an_indirect_right_angle_still_turns(draw: Draw, pdf: Any) -> None:
    document = pdf().page(more=b"/Rotate 55 0 R")
    document.objects[55] = (b"=90", None)
    assert draw(document.bytes())[0].rotation == 90


@pytest.mark.parametrize(
    ("box", "size"), [("0 0 20000 300", (1000, 15)), ("0 0 14400 14400", (1000, 1000)), ("0 0 2 3", (667, 1000))]
)
def test_huge_and_tiny_pages_are_scaled_to_fit(draw: Draw, pdf: Any, box: str, size: tuple[int, int]) -> None:
    (page,) = draw(pdf().page(box=box).bytes(), long_side=1000)
    assert (page.width, page.height) == size
    assert any("low effective resolution" in note for note in page.notes) is (box != "0 0 2 3")


def test_aspect_is_kept_down_to_one_pixel(draw: Draw, pdf: Any) -> None:
    (page,) = draw(pdf().page(box="0 0 14400 3").bytes(), long_side=100)
    assert (page.width, page.height) == (100, 1)


def test_resolution_follows_the_page_not_a_picture_on_it(draw: Draw, pdf: Any) -> None:
    document = pdf()
    picture = document.image(1500, 1500, bytes(1500 * 1500))
    content = b"q 28 0 0 28 100 100 cm /I Do Q q 0 0 0 0 0 0 cm /I Do Q"  # a centimetre, and one of no size at all
    document.page(content, more=b"/Resources << /XObject << /I %d 0 R >> >>" % picture)
    (page,) = draw(document.bytes(), long_side=900)
    assert max(page.width, page.height) == 900
    assert pixels(page).min() < 30


def test_an_image_bomb_is_refused_before_it_is_decoded(draw: Draw, pdf: Any) -> None:
    document = pdf()
    bomb = document.image(40_000, 40_000, b"x")
    document.page(b"q 99 0 0 99 0 0 cm /I Do Q", more=b"/Resources << /XObject << /I %d 0 R >> >>" % bomb).page()
    pages = draw(document.bytes())
    assert reasons(pages) == ["too_large", None]
    assert "40000x40000" in pages[0].detail


def test_an_inverted_decode_array_comes_out_black_on_white(draw: Draw, pdf: Any) -> None:
    stripes = bytes([0, 0, 0, 0, 0, 0, 255, 0]) * 64  # one set row of eight
    for decode, dark in ((b"", 7 / 8), (b"/Decode [1 0]", 1 / 8)):
        document = pdf()
        picture = document.image(8, 512, stripes, b"/ColorSpace /DeviceGray /BitsPerComponent 1 " + decode)
        document.page(b"q 612 0 0 792 0 0 cm /I Do Q", more=b"/Resources << /XObject << /I %d 0 R >> >>" % picture)
        assert float((pixels(draw(document.bytes(), long_side=1024)[0]) < 128).mean()) == pytest.approx(dark, abs=0.05)


def test_passwords(draw: Draw, pdf: Any) -> None:
    locked, open_to_read = pdf().page().bytes(user=b"secret"), pdf().page().bytes(user=b"")
    assert reasons(draw(locked)) == ["encrypted"]
    assert reasons(draw(locked, password="guess")) == ["wrong_password"]
    plain = draw(pdf().page().bytes())[0].png
    for data, password in ((locked, "secret"), (locked, "owner"), (open_to_read, None), (open_to_read, "whatever")):
        assert draw(data, password=password)[0].png == plain


def test_passwords_under_aes(draw: Draw, pdf: Any) -> None:
    pikepdf = pytest.importorskip("pikepdf")
    plain = draw(pdf().page().bytes())[0].png
    for revision, aes in ((4, True), (6, True), (3, False)):
        locked, owned = io.BytesIO(), io.BytesIO()
        for target, user in ((locked, "s\u00e9same"), (owned, "")):
            with pikepdf.open(io.BytesIO(pdf().page().bytes())) as document:
                rules = pikepdf.Encryption(user=user, owner="h\u00f6he", R=revision, aes=aes, metadata=aes)
                document.save(target, encryption=rules)
        assert draw(owned.getvalue())[0].png == plain
        assert reasons(draw(locked.getvalue())) == ["encrypted"]
        assert reasons(draw(locked.getvalue(), password="guess")) == ["wrong_password"]
        for password in ("s\u00e9same", "h\u00f6he"):
            assert draw(locked.getvalue(), password=password)[0].png == plain


def test_damage_in_one_page_costs_only_that_page(draw: Draw, pdf: Any) -> None:
    document = pdf().page().page().page()
    document.objects[document.kids[1]] = (b"=null", None)
    got = reasons(draw(document.bytes()))
    assert got[0] is None
    assert got[-1] is None
    document = pdf().page().page(b"\xff\xfe ( BT /F1 ((((").page()
    assert reasons(draw(document.bytes())) == [None, None, None]


def test_junk_in_front_and_a_broken_pointer_are_survived(draw: Draw, pdf: Any) -> None:
    data = pdf().page().bytes()
    plain = draw(data)[0]
    (shifted,) = draw(b"\x00%!PS-AI junk\n" * 70 + data)
    assert shifted.png == plain.png
    (mended,) = draw(data.replace(b"startxref\n", b"startxref\n9"))
    assert mended.png == plain.png
    assert "cross-reference" in mended.notes[0]


def test_damage_has_a_reason_of_its_own(draw: Draw, pdf: Any) -> None:
    data = pdf().page().bytes()
    assert reasons(draw(b"")) == ["empty_file"]
    assert reasons(draw(data[:60])) == ["corrupt"]
    assert reasons(draw(b"%PDF-1.7\n%%EOF\n")) == ["corrupt"]
    assert reasons(draw(pdf().bytes())) == ["no_pages"]
    (failure,) = draw(b"just some text", name="text.pdf")
    assert (failure.reason, failure.stage, failure.index) == ("not_a_document", "open", None)
    assert failure.reason in REASONS


def test_a_second_parser_mends_what_pdfium_refuses(draw: Draw, pdf: Any) -> None:
    data = pdf().page().page().bytes()
    headless = data[: data.rindex(b"xref\n0")]
    try:
        import pikepdf  # noqa: F401
    except ImportError:
        assert "pip install pikepdf" in draw(headless)[0].detail
    else:
        pages = draw(headless)
        assert reasons(pages) == [None, None]
        assert "pikepdf" in pages[0].notes[0]


def test_a_dynamic_form_is_refused_and_a_static_one_drawn(draw: Draw, pdf: Any) -> None:
    dynamic, static = pdf(), pdf()
    for document, catalog in ((dynamic, XFA + b"/NeedsRendering true"), (static, XFA)):
        document.catalog, document.objects[40] = catalog, (b"", b"<xdp/>")
    dynamic.page(b"BT /F1 9 Tf 60 400 Td (Please wait... If this message is not eventually replaced) Tj ET")
    assert reasons(draw(dynamic.bytes())) == ["xfa_unsupported"]
    assert reasons(draw(static.page().bytes())) == [None]


def test_form_fields_are_drawn(draw: Draw, pdf: Any) -> None:
    document = pdf()
    look = document.add(b"/Type /XObject /Subtype /Form /BBox [0 0 200 50]", b"0 0 200 50 re f")
    field = b"/Type /Annot /Subtype /Widget /FT /Tx /T (name) /F 4 /Rect [100 100 300 150] /AP << /N %d 0 R >>"
    number = document.add(field % look)
    document.catalog = b"/AcroForm << /Fields [%d 0 R] >>" % number
    document.page(b"", more=b"/Annots [%d 0 R]" % number)
    (page,) = draw(document.bytes(), long_side=792)
    assert pixels(page)[792 - 125, 200].max() < 200
    assert pixels(page)[300, 200].min() == 255


def test_text_that_draws_nothing_is_mentioned_and_never_used(draw: Draw, pdf: Any) -> None:
    (page,) = draw(pdf().page(b"BT /F1 40 Tf 3 Tr 60 400 Td (A hidden layer) Tj ET").bytes())
    assert page.blank
    assert "14 characters" in page.notes[-1]
