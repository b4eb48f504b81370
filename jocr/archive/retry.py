"""The retry ladder: a page that looped, was cut off or came back empty is read again, changed as the recipe says.

Small changes of size, turn or sampling end most loops (public reports C1, D7), a larger cap ends truncation (C8); no
penalty is ever put on repetition, which would empty honest tables (C4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from jocr import documents
from jocr.config import Rung
from jocr.documents import Origin
from jocr.records import PageFailure, PageImage, ParsedPage, Transcript

Ask = Callable[[PageImage, Rung], Transcript]
Render = Callable[[float, int], PageImage | PageFailure]
RANK = {"ok": 4, "truncated": 3, "loop": 2, "empty_output": 1}  # of endings, best first; all else is worse


@dataclass(frozen=True, slots=True)
class Try:
    """One reading of the page: its row by itself, and the rung it was asked on (0: the first)."""

    row: ParsedPage
    number: int = 0
    rung: Rung = field(default_factory=Rung)

    @property
    def ending(self) -> str:
        """``ok``, ``truncated``, ``loop``, or the reason it failed for."""
        return self.row.reason or self.row.status if self.row.status == "failed" else self.row.status

    @property
    def value(self) -> tuple[int, int]:
        """Orders tries: by ``RANK``, then by how much text is good."""
        return RANK.get(self.ending, 0), len(self.row.markdown)

    def told(self) -> str:
        """In words, for the row's detail."""
        rung, side = self.rung, max(self.row.width or 0, self.row.height or 0)
        parts = [f"{self.ending} at {side} px"]
        parts += [f"turned {rung.rotate} degrees"] if rung.rotate else []
        parts += [f"up to {rung.max_tokens} tokens"] if rung.max_tokens else []
        parts += [sampling(rung)] if rung.temperature else []
        parts += [f"rung {self.number}"] if self.number else []
        return ", ".join(parts)


def climb(first: ParsedPage, image: PageImage, rungs: Sequence[Rung], ask: Ask, render: Render) -> ParsedPage:
    """Read a page again, rung by rung, until it is ok.

    A rung is taken where its ``on`` names how the page would end now, and asks what was not asked before: sizes, turns
    and caps are those of ``first`` changed by this rung alone. Where no rung helps, the best ending is kept: truncated
    before looping before empty before failed, then the longest good text, then the earliest.

    Args:
        first: the row of the first reading, of ``image``.
        ask: decodes an image with the rung's cap (None: the first one), temperature and seed.
        render: the page anew: times the first rendering's long side, degrees clockwise on top of the page's own.

    Returns:
        the kept reading's row. ``attempts`` counts every decode; seconds and tokens of all of them add up; ``detail``
        says what was tried. ``first`` itself where no rung applies.

    Raises:
        EngineError: from ``ask``, where the decoder as a whole died.
    """
    drawn = cache(render)  # rungs of one size and turn share a rendering
    best, told, asked = Try(first), [Try(first).told()], {_question(Rung())}
    decodes, spent, rendered = 0, [first], {}
    for number, rung in enumerate(rungs, 1):
        if best.ending == "ok" or best.ending not in rung.on or _question(rung) in asked:
            continue
        asked.add(_question(rung))
        place = (rung.scale, rung.rotate)
        sheet = image if place == (1.0, 0) else drawn(*place)
        if isinstance(sheet, PageFailure):
            told.append(f"{sheet.reason} when drawn at {rung.scale:g} times the size, rung {number}")
            continue
        if sheet is not image:
            rendered[place] = sheet.seconds
        again = Try(_row(first, sheet, ask(sheet, rung), rung), number, rung)
        decodes += 1
        spent.append(again.row)
        told.append(again.told())
        best = max(best, again, key=lambda t: t.value)  # the earlier one where they are equal
    return first if len(told) == 1 else _kept(best, told, spent, decodes, sum(rendered.values()))


def sampling(rung: Rung) -> str:
    """What a row says of how its tokens were chosen."""
    return f"temperature {rung.temperature:g}, seed {rung.seed}" if rung.temperature else "greedy"


def _question(rung: Rung) -> tuple[float, ...]:
    """What makes two readings of a page differ; equal questions have equal answers."""
    seed = rung.seed if rung.temperature else 0
    return (rung.scale, rung.rotate, rung.max_tokens or 0, rung.temperature, seed)


def _row(first: ParsedPage, image: PageImage, transcript: Transcript, rung: Rung) -> ParsedPage:
    """This reading's row by itself; whose page it is and by which model it is read stay as ``first`` has them."""
    origin = Origin(first.model or "", first.revision or "", first.prompt_hash or "", first.engine or "")
    row = documents.transcribed(image, transcript, origin)
    names = ("page_id", "uri", "sha256", "page", "model", "revision", "prompt_hash", "engine", "member", "etag",
             "collection", "key")  # fmt: skip
    return replace(row, sampling=sampling(rung), **{name: getattr(first, name) for name in names})


def _kept(best: Try, told: list[str], spent: list[ParsedPage], decodes: int, rendering: float) -> ParsedPage:
    first = spent[0]
    detail = "; ".join(told)
    if best.ending != "ok":
        which = f"rung {best.number}" if best.number else "the first"
        detail += f"; kept {which}" + (f": {best.row.detail}" if best.row.detail else "")
    decoding = sum(row.decode_seconds for row in spent)
    return replace(
        best.row,
        detail=detail,
        attempts=first.attempts + decodes,
        tokens=sum(row.tokens for row in spent),
        prompt_tokens=sum(row.prompt_tokens for row in spent),
        decode_seconds=decoding,
        render_seconds=first.render_seconds + rendering,
        seconds=first.seconds + rendering + decoding - first.decode_seconds,
    )
