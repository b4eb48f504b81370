"""The straight line as Ray Data stages: open -> render -> decode -> assemble -> sink, then one task that finishes.

The functions are those of ``jocr``; the rows are those of ``jocr parse``, page for page.
"""

from __future__ import annotations

import hashlib
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from jocr import documents, storage
from jocr.config import ParseRecipe
from jocr.decoding.protocol import Decoder, EngineInfo
from jocr.pages.render import Renderer, RenderLimits
from jocr.parsing import engine
from jocr.parsing.command import Summary, finish, render_limits
from jocr.parsing.output import ResultDirectory
from jocr.parsing.plan import PageSelection, Plan, Planned
from jocr.parsing.rendering import Opened, Rendered, RenderJob, open_document, render_page
from jocr.parsing.runner import Instruction
from jocr.parsing.writer import Writer
from jocr.records import PageFailure, PageImage, PageInput, PageRef, ParsedPage, Transcript
from pipelines.stages import ActorStage, FunctionStage, SinkStage, Spread, Stage

PARTS = ".parts"


@dataclass(frozen=True, slots=True)
class PageTask:
    """A page to render."""

    number: int
    ref: PageRef


@dataclass(frozen=True, slots=True)
class Answered:
    """A page with what the decoder made of it; ``transcript`` is None where it was not asked."""

    rendered: Rendered
    transcript: Transcript | None
    info: EngineInfo


@dataclass(frozen=True, slots=True)
class Row:
    """A terminal row of document ``number``."""

    number: int
    page: ParsedPage
    info: EngineInfo


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the sink tells the driver: where a part lies, and how much is in it."""

    part: str
    rows: int
    failed: int
    info: EngineInfo | None


def stages(
    recipe: ParseRecipe, selection: PageSelection, out: Path, make_decoder: Callable[[], Decoder]
) -> list[Stage]:
    """The pipeline, from ``Planned`` documents to ``Receipt``s."""
    side = engine.long_side(recipe.model, recipe.render)
    job = RenderJob(side, recipe.render.password, selection, recipe.render.workers)
    words, limits, shape = engine.instruction(recipe.model), render_limits(recipe), recipe.ray
    return [
        FunctionStage("open", partial(open_pages, job=job, limits=limits), cpus=0.5, batch=8),
        Spread(8),
        FunctionStage("render", partial(render, job=job, limits=limits), batch=8),
        ActorStage(
            "decode",
            partial(Decode, make_decoder, words),
            actors=shape.decoders,
            cpus=shape.decoder_cpus,
            gpus=shape.decoder_gpus,
            batch=shape.unit,
        ),
        FunctionStage("assemble", partial(assemble, words=words), cpus=0.25, batch=64),
        SinkStage("sink", partial(write_part, str(out)), batch=256),
    ]


@lru_cache(maxsize=1)
def _renderer(limits: RenderLimits) -> Renderer:
    """One renderer per worker process, whose child serves task after task."""
    return Renderer(limits)


def open_pages(planned: Planned, *, job: RenderJob, limits: RenderLimits) -> Iterator[Opened | PageTask | Rendered]:
    """Identify a document and list its pages."""
    opened = open_document(_renderer(limits), planned.number, planned.uri, job)
    yield opened
    if isinstance(opened, Opened):
        for index in opened.indices:
            yield PageTask(planned.number, PageRef(opened.doc, index))


def render(item: Opened | PageTask | Rendered, *, job: RenderJob, limits: RenderLimits) -> Iterator[Opened | Rendered]:
    """Turn a page into an image; what is not a page passes."""
    yield render_page(_renderer(limits), item.number, item.ref, job) if isinstance(item, PageTask) else item


class Decode:
    """The actor: a decoder that reads the pages with ink and lets everything else pass."""

    def __init__(self, make_decoder: Callable[[], Decoder], words: Instruction) -> None:
        self._decoder = make_decoder()
        self._words = words

    def __call__(self, batch: Iterable[Opened | Rendered]) -> Iterator[Opened | Answered]:
        asked: dict[str, Rendered] = {}
        for place, item in enumerate(batch):
            if isinstance(item, Opened):
                yield item
            elif isinstance(item.result, PageImage) and not item.result.blank:
                asked[f"{item.result.ref.page_id}@{place}"] = item
            else:
                yield Answered(_without_pixels(item), None, self._decoder.info)
        inputs = [
            self._input(key, item.result.png) for key, item in asked.items() if isinstance(item.result, PageImage)
        ]
        for transcript in self._decoder.decode(inputs):
            yield Answered(_without_pixels(asked.pop(transcript.page_id)), transcript, self._decoder.info)

    def _input(self, key: str, png: bytes) -> PageInput:
        return PageInput(key, png, self._words.text, self._words.max_tokens)


def assemble(item: Opened | Answered, *, words: Instruction) -> Iterator[Opened | Row]:
    """The terminal row of a page."""
    if isinstance(item, Opened):
        yield item
        return
    origin = engine.origin(item.info, words)
    number, result, attempts = item.rendered.number, item.rendered.result, item.rendered.attempts
    if isinstance(result, PageFailure):
        page = documents.failed(result, origin, attempts=attempts)
    elif item.transcript is None:
        page = documents.blank(result, origin, attempts=attempts)
    else:
        page = documents.transcribed(result, item.transcript, origin, attempts=attempts)
    yield Row(number, page, item.info)


def write_part(out: str, batch: list[Opened | Row]) -> Receipt:
    """Write a batch under a name derived from which pages it holds. Only parts with a receipt count."""
    keys = sorted((item.number, item.page.page if isinstance(item, Row) else 0) for item in batch)
    name = hashlib.sha256(repr(keys).encode()).hexdigest()[:24]
    storage.atomic_write(str(Path(out) / PARTS / name), pickle.dumps(batch))
    rows = [item for item in batch if isinstance(item, Row)]
    failed = sum(row.page.status == "failed" for row in rows)
    return Receipt(name, len(rows), failed, rows[0].info if rows else None)


def collect(
    recipe: ParseRecipe, plan: Plan, out: ResultDirectory, parts: list[str], seconds: float, info: EngineInfo
) -> Summary:
    """Read the parts, write the result as ``jocr parse`` does, publish it. Runs as one task on a worker.

    Raises:
        ValueError: a page without a row, or with two.
    """
    items: list[Any] = []
    for part in parts:
        items += pickle.loads((out.work / PARTS / part).read_bytes())
        (out.work / PARTS / part).unlink()
    shutil.rmtree(out.work / PARTS, ignore_errors=True)  # parts without a receipt, of tasks that were tried again
    writer = Writer(plan, out)
    for item in sorted(items, key=_order):
        if isinstance(item, Opened):
            writer.opened(item)
        else:
            writer.page(item.number, item.page)
    writer.close()
    factory = partial(Renderer, render_limits(recipe))
    return finish(recipe, plan, out, writer, seconds=seconds, info=info, factory=factory)


def _order(item: Opened | Row) -> tuple[int, int]:
    return item.number, item.page.page if isinstance(item, Row) else 0


def _without_pixels(item: Rendered) -> Rendered:
    result = item.result
    return replace(item, result=replace(result, png=b"")) if isinstance(result, PageImage) else item
