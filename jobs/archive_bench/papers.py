"""Documents made by hand, byte for byte the same everywhere: thousands of pages in a second, each with its own content.

A page is drawn after its *act*: ``ink``, ``blank``, one of the fake engine's marks (``exit``, ``hang``, ``loop`` ...),
or a page that really breaks a renderer: ``render_hang`` shades every pixel by a program of a million steps, which
takes minutes and no memory; ``render_crash`` inflates to more than the memory limit that it is made for, ``CRASH_MB``,
which ends pdfium with SIGABRT.
"""

from __future__ import annotations

import io
import random
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from PIL import Image

from jocr.decoding.fake import MARK_HEIGHT, MARK_WIDTH, MARKS, WORDS
from jocr.pages.png import encode_png

WIDTH, HEIGHT = 300, 400  # points, or pixels of an image
CRASH_MB = 300  # ``render.memory_mb`` at which ``render_crash`` crashes
_STEPS = 500_000  # pairs of instructions
_CELLS = 16  # squares a side of an image page's pattern


def pdf(label: str, acts: Sequence[str], lines: int = 3) -> bytes:
    """A PDF with one page per act.

    Args:
        label: printed on every page with the page's number; makes the document's bytes its own.
        acts: what each page is; see the module's description.
        lines: lines of prose on a page with ink.
    """
    first = 3 + 2 * ("render_hang" in acts)  # objects: 1 catalog, 2 page tree, 3 font, shading, its program, pages
    count = len(acts)
    kids = b" ".join(b"%d 0 R" % (first + 1 + 2 * i) for i in range(count))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (count, kids),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    if "render_hang" in acts:
        objects += _shading(4)
    for index, act in enumerate(acts):
        more = b"/Shading<</S 4 0 R>>" if act == "render_hang" else b""
        page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents %d 0 R/Resources<</Font<</T 3 0 R>>%s>>>>"
        objects.append(page % (WIDTH, HEIGHT, first + 2 + 2 * index, more))
        objects.append(_bomb() if act == "render_crash" else _stream(_content(label, index, act, lines)))
    return pdf_file(objects)


def picture(label: str, index: int, act: str = "ink") -> np.ndarray:
    """An image page (HEIGHT, WIDTH, 3): a pattern of squares that is its number's own."""
    rgb = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    if act == "blank":
        return rgb
    cells = np.frombuffer(random.Random(f"{label}/{index}").randbytes(_CELLS * _CELLS), np.uint8) < 128
    square = np.kron(cells.reshape(_CELLS, _CELLS), np.ones((12, 12), bool))
    rgb[100 : 100 + len(square), 50 : 50 + len(square)][square] = 0
    if act in MARKS:
        rgb[: int(HEIGHT * MARK_HEIGHT), : int(WIDTH * MARK_WIDTH)] = MARKS[act]
    return rgb


def pdf_file(objects: Sequence[bytes]) -> bytes:
    """A PDF of these objects, numbered from 1; the first is its catalog."""
    out, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer <</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def png(label: str, act: str = "ink") -> bytes:
    return encode_png(picture(label, 0, act))


def tiff(label: str, acts: Sequence[str]) -> bytes:
    """A multi-page TIFF with one frame per act."""
    frames = [Image.fromarray(picture(label, index, act)) for index, act in enumerate(acts)]
    out = io.BytesIO()
    frames[0].save(out, "TIFF", save_all=True, append_images=frames[1:], compression="tiff_deflate")
    return out.getvalue()


def zip_of(members: Mapping[str, bytes]) -> bytes:
    """A zip with these members, the same bytes every time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data)
    return out.getvalue()


def _content(label: str, index: int, act: str, lines: int) -> bytes:
    if act == "blank":
        return b""
    if act == "render_hang":
        return b"/S sh"
    rng = random.Random(f"{label}/{index}")
    head = (
        f"BT /T 26 Tf 20 {HEIGHT - 70} Td ({index + 1}) Tj ET BT /T 11 Tf 90 {HEIGHT - 70} Td ({_plain(label)}) Tj ET"
    )
    parts = [head]
    for line in range(lines):
        words = " ".join(rng.choices(WORDS, k=8))
        parts.append(f"BT /T 10 Tf 20 {HEIGHT - 100 - 11 * line} Td ({words}) Tj ET")
    if act in MARKS:
        red, green, blue = (value / 255 for value in MARKS[act])
        width, height = WIDTH * MARK_WIDTH, HEIGHT * MARK_HEIGHT
        parts.append(f"{red:.4f} {green:.4f} {blue:.4f} rg 0 {HEIGHT - height:g} {width:g} {height:g} re f")
    return "\n".join(parts).encode("ascii")


def _plain(label: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in " .-/#%") else "-" for c in label)[-24:]


def _shading(first: int) -> list[bytes]:
    matrix = b"/Matrix[%d 0 0 %d 0 0]" % (WIDTH, HEIGHT)
    shading = b"<</ShadingType 1/ColorSpace/DeviceGray/Domain[0 1 0 1]%s/Function %d 0 R>>" % (matrix, first + 1)
    program = b"{ pop " + b"dup mul " * _STEPS + b"}"
    return [shading, _stream(program, b"/FunctionType 4/Domain[0 1 0 1]/Range[0 1]")]


@lru_cache(maxsize=1)
def _bomb() -> bytes:
    """A stream of white space, half as large again as the limit; one packed block of it is repeated."""
    packer = zlib.compressobj(9)
    head = packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = head + block * (CRASH_MB * 3 // 2)
    return b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed)


def _stream(data: bytes, more: bytes = b"") -> bytes:
    packed = zlib.compress(data, 1)
    return b"<</Length %d/Filter/FlateDecode%s>>stream\n%s\nendstream" % (len(packed), more, packed)
