"""Scanned volumes made by hand: PDFs whose pages are grey JPEGs of printed text at 300 dpi, with paper and noise."""

from __future__ import annotations

import io
import random
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from jobs.archive_bench.papers import pdf_file
from jocr.decoding.fake import WORDS

WIDTH, HEIGHT = 1748, 2480  # pixels: A5 at 300 dpi
LEAVES = 8  # different scans, used over and over; each is the size of a real one, so reading it costs what that costs
_POINTS = (420, 595)
_MARGIN, _PITCH, _FONT = 150, 56, 40


def volume(number: int, pages: int) -> bytes:
    """A PDF of ``pages`` scans; volumes of different numbers are different files."""
    used = sorted({(number + page) % LEAVES for page in range(pages)})
    first = 3 + len(used)  # objects: 1 catalog, 2 page tree, the scans, then a page and its content in turn
    kids = b" ".join(b"%d 0 R" % (first + 2 * page) for page in range(pages))
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count %d/Kids[%s]>>" % (pages, kids)]
    for leaf in used:
        data = scan(leaf)
        head = b"<</Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceGray/BitsPerComponent 8"
        head += b"/Filter/DCTDecode/Length %d>>stream\n"
        objects.append(head % (WIDTH, HEIGHT, len(data)) + data + b"\nendstream")
    for page in range(pages):
        name = 3 + used.index((number + page) % LEAVES)
        form = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents %d 0 R/Resources<</XObject<</S %d 0 R>>>>>>"
        objects.append(form % (*_POINTS, first + 2 * page + 1, name))
        content = b"q %d 0 0 %d 0 0 cm /S Do Q %% %d/%d" % (*_POINTS, number, page)
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
    return pdf_file(objects)


@lru_cache(maxsize=LEAVES)
def scan(leaf: int) -> bytes:
    """A JPEG of a printed page, the same bytes for the same number."""
    rng, noise = random.Random(leaf), np.random.default_rng(leaf)
    page = Image.new("L", (WIDTH, HEIGHT), 232)
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(_FONT)
    for top in range(_MARGIN, HEIGHT - _MARGIN, _PITCH):
        draw.text((_MARGIN, top), " ".join(rng.choices(WORDS, k=9)), fill=40, font=font)
    grain = noise.normal(0, 5, (HEIGHT, WIDTH))
    out = io.BytesIO()
    Image.fromarray(np.clip(np.asarray(page) + grain, 0, 255).astype(np.uint8)).save(out, "JPEG", quality=80)
    return out.getvalue()
