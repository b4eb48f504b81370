"""Small archives, recipes and machinery for the tests of the archive job."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field

from PIL import Image, ImageDraw

from jocr.archive.ledger import Ledger
from jocr.config import ParseRecipe, build
from jocr.decoding.fake import MARKS, FakeDecoder
from pipelines.parse import Machinery, parse_archive
from pipelines.stages import run_local

LOCAL = Machinery(run_local, lambda function, *args: function(*args))
TIMES = {"seconds", "render_seconds", "decode_seconds"}


def recipe(sources, out, **more):
    settings = {"model": {"name": "fake"}, "render": {"long_side": 64}, "report": {"pages": 0}}
    return build(ParseRecipe, {"sources": [str(sources)], "out": str(out), **settings, **more})


def page(number, act=None):
    """A small page with ink of its own, and a mark where it is to break something."""
    image = Image.new("RGB", (64, 48), "white")
    draw = ImageDraw.Draw(image)
    for bit in range(12):
        if number >> bit & 1:
            draw.rectangle((10 + 4 * bit, 12, 12 + 4 * bit, 40), "black")
    draw.rectangle((8, 8, 60, 10), "black")
    if act:
        draw.rectangle((0, 0, 7, 3), MARKS[act])
    return image


def tiff(pages):
    target = io.BytesIO()
    pages[0].save(target, "TIFF", save_all=True, append_images=pages[1:], compression="raw")
    return target.getvalue()


@dataclass
class Counting(FakeDecoder):
    """Keeps the ids of the pages it was given."""

    asked: list[str] = field(default_factory=list)

    def decode(self, pages):
        def noted():
            for one in pages:
                self.asked.append(one.page_id)
                yield one

        yield from super().decode(noted())


def parse_here(given, decoder=None, lost=None):
    """A run in this process; the decoder outlives it."""
    decoder = decoder or Counting()
    return parse_archive(given, LOCAL, lambda: decoder, lost or (lambda why: None))


def rows(out, settings=None):
    """Every committed row, by source and page."""
    if settings is None:
        (settings,) = {path.name for path in (out / "commits").iterdir()}
    ledger = Ledger(str(out), settings)
    found = [row for commit in ledger.committed().values() for row in ledger.rows(commit)]
    return sorted(found, key=lambda row: (row.uri, row.member, row.page))


def timeless(row, *, without=frozenset()):
    found = {key: value for key, value in row.row().items() if key not in TIMES | without}
    return found | {"detail": re.sub(r"0x[0-9a-f]+", "0x", found["detail"])}  # libraries print where an object lies
