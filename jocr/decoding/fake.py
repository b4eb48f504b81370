"""A decoder without a model: text made from the page's own bytes, failures by script. For tests, demos and benchmarks.

The text depends on the image alone (of a sampled page: on temperature, seed and page id too), so that two runs (in
process, on Ray, in another order) must give equal rows. As a model it is named ``fake``, or with settings
``fake:seconds=0.05,marks``: with ``marks`` a page that carries a coloured mark in its upper left corner (``MARKS``) is
acted upon, in whichever process and run it turns up.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from jocr.decoding.protocol import EngineInfo
from jocr.decoding.sampling import sampler_of
from jocr.errors import ConfigError, EngineError
from jocr.records import PageInput, Transcript

Act = Literal["end", "length", "loop", "error", "empty", "timeout", "die", "exit", "hang"]
FAKE = "fake"
WORDS = "archive page river stone letter museum winter harbour copper garden ledger village morning paper".split()
MARKS: dict[Act, tuple[int, int, int]] = {  # RGB of the mark: 10 % of the page's width, 6 % of its height
    "exit": (230, 20, 20),  # the process ends at once, as in a crash of native code
    "hang": (20, 20, 230),  # no answer, ever
    "loop": (20, 180, 20),
    "length": (230, 200, 20),
    "error": (200, 20, 200),
    "empty": (20, 200, 200),
}
MARK_WIDTH, MARK_HEIGHT = 0.10, 0.06


def _info() -> EngineInfo:
    return EngineInfo("fake", "fake-1", "jocr-fake 1", "cpu", "none", "0", "exact")


@dataclass
class FakeDecoder:
    """Implements ``Decoder``.

    Args:
        seconds: time that each page takes.
        batch: pages taken in before the first one is given back; above 1 they come back in reverse order.
        script: what to do at the n-th page taken (counted from 0); pages not named end normally. ``die`` raises
            ``EngineError`` from ``decode``, as an engine process that went away does; ``exit`` ends this process and
            ``hang`` never returns.
        marks: obey the marks that pages carry.
    """

    seconds: float = 0.0
    batch: int = 1
    script: Mapping[int, Act] = field(default_factory=dict)
    info: EngineInfo = field(default_factory=_info)
    taken: int = 0
    marks: bool = False

    def decode(self, pages: Iterable[PageInput]) -> Iterator[Transcript]:
        waiting: list[Transcript] = []
        for page in pages:
            waiting.append(self._one(page))
            if len(waiting) == self.batch:
                yield from reversed(waiting)
                waiting.clear()
        yield from reversed(waiting)

    def close(self) -> None:
        """Nothing to release."""

    def _one(self, page: PageInput) -> Transcript:
        act = self.script.get(self.taken, "end")
        if self.marks and act == "end":
            act = mark_of(page.png) or "end"
        self.taken += 1
        if self.seconds:
            time.sleep(self.seconds)
        if act == "die":
            raise EngineError("the fake engine died, as its script says")
        if act == "exit":
            os._exit(13)
        while act == "hang":
            time.sleep(3600)
        text = "" if act in ("error", "timeout", "empty") else fake_text(page.png, _sampled(page))
        if act == "loop":
            text += "\n" + "again and again " * 40
        words = tuple(range(min(len(text.split()), page.max_tokens)))
        stop = {"empty": "end", "timeout": "error"}.get(act, act)
        detail = {"error": "scripted", "timeout": "decode_timeout: scripted", "loop": "scripted"}.get(act, "")
        return Transcript(page.page_id, text, words, stop, 10, self.seconds, detail=detail)  # type: ignore[arg-type]


def is_fake(model: str) -> bool:
    """Whether a model's name means this decoder."""
    return model == FAKE or model.startswith(FAKE + ":")


def make_fake(model: str) -> FakeDecoder:
    """The decoder that ``fake`` or ``fake:seconds=0.05,batch=4,marks`` names.

    Raises:
        ConfigError: a setting it does not have.
    """
    decoder = FakeDecoder()
    for setting in filter(None, model.partition(":")[2].split(",")):
        key, equals, value = setting.partition("=")
        try:
            if key == "marks" and not equals:
                decoder.marks = True
            elif key == "seconds":
                decoder.seconds = float(value)
            elif key == "batch":
                decoder.batch = int(value)
            else:
                raise ValueError
        except ValueError:
            example = f"{FAKE}:seconds=0.05,batch=4,marks"
            raise ConfigError(f"model.name = {model!r}: {setting!r} is no setting of it; write {example}") from None
    return decoder


def _sampled(page: PageInput) -> str:
    """What a sampled page's text depends on beside the image; empty where it is greedy."""
    sampler = sampler_of(page)
    return f"{sampler.temperature} {sampler.seed} {sampler.page_id}" if sampler else ""


def fake_text(png: bytes, sampled: str = "") -> str:
    """Markdown (heading, paragraph, formula, table) that depends on ``png`` and ``sampled`` and nothing else."""
    digest = hashlib.sha256(png + sampled.encode("utf-8", "surrogatepass")).digest()
    words = [WORDS[byte % len(WORDS)] for byte in digest]
    return (
        f"# {words[0].title()} {digest[:2].hex()}\n\n{' '.join(words[1:17]).capitalize()}.\n\n"
        f"$$x_{{{digest[0]}}} = \\frac{{{digest[1]}}}{{{digest[2] + 1}}}$$\n\n"
        f"<table><tr><td>{words[17]}</td><td>{digest[3]}</td></tr>"
        f"<tr><td>{words[18]}</td><td>{digest[4]}</td></tr></table>"
    )


def mark_of(png: bytes) -> Act | None:
    """What the mark in the page's corner asks for; None where it carries none."""
    colour = _corner(png)
    near = (act for act, mark in MARKS.items() if max(abs(a - b) for a, b in zip(colour, mark, strict=True)) < 12)
    return next(near, None)


def _corner(png: bytes) -> tuple[int, int, int]:
    """RGB of the pixel in the middle of where a mark would be, mostly without decoding more than the rows above it."""
    width, height, bits, kind = struct.unpack(">IIBB", png[16:26])
    x, y = int(width * MARK_WIDTH / 2), int(height * MARK_HEIGHT / 2)
    if bits == 8 and kind in (0, 2) and png[37:41] == b"IDAT":
        size = 3 if kind else 1  # bytes of a pixel, RGB or grey
        row = 1 + size * width
        rows = b""
        with contextlib.suppress(zlib.error):
            rows = zlib.decompressobj().decompress(png[41:], (y + 1) * row)
        if len(rows) == (y + 1) * row and not rows[y * row]:  # this row is not filtered
            pixel = rows[y * row + 1 + size * x :][:size]
            return pixel[0], pixel[-2 % size], pixel[-1]
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        return image.convert("RGB").getpixel((x, y))  # type: ignore[return-value]
