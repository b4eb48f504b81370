"""A decoder without a model: text made from the page's own bytes, failures by script. For tests, demos and benchmarks.

The text depends on the image alone, so that two runs (in process, on Ray, in another order) must give equal rows.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from jocr.decoding.protocol import EngineInfo
from jocr.errors import EngineError
from jocr.records import PageInput, Transcript

Act = Literal["end", "length", "loop", "error", "empty", "timeout", "die"]
WORDS = "archive page river stone letter museum winter harbour copper garden ledger village morning paper".split()


def _info() -> EngineInfo:
    return EngineInfo("fake", "fake-1", "jocr-fake 1", "cpu", "none", "0", "exact")


@dataclass
class FakeDecoder:
    """Implements ``Decoder``.

    Args:
        seconds: time that each page takes.
        batch: pages taken in before the first one is given back; above 1 they come back in reverse order.
        script: what to do at the n-th page taken (counted from 0); pages not named end normally. ``die`` raises
            ``EngineError`` from ``decode``, as an engine process that went away does.
    """

    seconds: float = 0.0
    batch: int = 1
    script: Mapping[int, Act] = field(default_factory=dict)
    info: EngineInfo = field(default_factory=_info)
    taken: int = 0

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
        self.taken += 1
        if self.seconds:
            time.sleep(self.seconds)
        if act == "die":
            raise EngineError("the fake engine died, as its script says")
        text = {"error": "", "timeout": "", "empty": ""}.get(act, fake_text(page.png))
        if act == "loop":
            text += "\n" + "again and again " * 40
        words = tuple(range(min(len(text.split()), page.max_tokens)))
        stop = {"empty": "end", "timeout": "error"}.get(act, act)
        detail = {"error": "scripted", "timeout": "decode_timeout: scripted", "loop": "scripted"}.get(act, "")
        return Transcript(page.page_id, text, words, stop, 10, self.seconds, detail=detail)  # type: ignore[arg-type]


def fake_text(png: bytes) -> str:
    """Markdown (heading, paragraph, formula, table) that depends on ``png`` and nothing else."""
    digest = hashlib.sha256(png).digest()
    words = [WORDS[byte % len(WORDS)] for byte in digest]
    return (
        f"# {words[0].title()} {digest[:2].hex()}\n\n{' '.join(words[1:17]).capitalize()}.\n\n"
        f"$$x_{{{digest[0]}}} = \\frac{{{digest[1]}}}{{{digest[2] + 1}}}$$\n\n"
        f"<table><tr><td>{words[17]}</td><td>{digest[3]}</td></tr>"
        f"<tr><td>{words[18]}</td><td>{digest[4]}</td></tr></table>"
    )
