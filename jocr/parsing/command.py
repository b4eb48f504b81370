"""``jocr parse`` as a function: settings in, a published result directory and its summary out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from jocr import provenance
from jocr.config import ParseRecipe
from jocr.decoding.protocol import Decoder, EngineInfo
from jocr.errors import ConfigError, EngineError
from jocr.pages.render import Renderer, RenderLimits
from jocr.parsing import engine
from jocr.parsing.gallery import Gallery
from jocr.parsing.output import PAGES, REPORT, ResultDirectory, listed
from jocr.parsing.plan import PageSelection, Plan, make_plan
from jocr.parsing.rendering import RendererFactory, RenderJob
from jocr.parsing.runner import Run, Sink
from jocr.parsing.table import plain, read_rows
from jocr.parsing.writer import Writer
from jocr.records import ParsedPage
from jocr.report.parse import choose, report


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run comes to. ``run`` is what ``run.json`` holds."""

    out: Path
    run: dict[str, Any]

    @property
    def pages(self) -> int:
        return sum(self.run["counts"].values())

    @property
    def failed_share(self) -> float:
        return self.run["counts"]["failed"] / self.pages if self.pages else 0.0

    def exit_code(self, fail_above: float | None) -> int:
        """3 where more than ``fail_above`` of the pages failed, else 0."""
        return 3 if fail_above is not None and self.failed_share > fail_above else 0


def parse(
    recipe: ParseRecipe,
    *,
    planned: tuple[PageSelection, Plan] | None = None,
    sinks: tuple[Sink, ...] = (),
    factory: RendererFactory | None = None,
    decoder: Decoder | None = None,
) -> Summary:
    """Parse ``recipe.sources`` into ``recipe.out``.

    Args:
        planned: what ``check`` returned, where the caller has it already.
        sinks: told of every document opened and every row, besides the writer.
        factory: renderers; None for child processes with the recipe's limits.
        decoder: None to load the recipe's model.

    Raises:
        ConfigError: bad settings, found before anything is computed.
        JocrError: the checkpoint, engine or disk failed; nothing is left behind.
    """
    selection, plan = planned or check(recipe)
    factory = factory or partial(Renderer, render_limits(recipe))
    with ResultDirectory(Path(recipe.out), force=recipe.force) as out:
        words = engine.instruction(recipe.model)
        with closing(decoder or engine.open_decoder(recipe.model)) as decoder:
            started = time.monotonic()
            origin = engine.origin(decoder.info, words)
            writer = Writer(plan, out)
            side = engine.long_side(recipe.model, recipe.render)
            job = RenderJob(side, recipe.render.password, selection, recipe.render.workers, recipe.model.batch)
            try:
                Run(plan, job, words, decoder, origin, (writer, *sinks)).execute(factory)
            except EngineError as error:
                done = f"{writer.totals['pages']} pages were read, and nothing was written to {recipe.out}"
                raise EngineError(f"{error}; {done}") from error
            writer.close()
            seconds = time.monotonic() - started
            info = decoder.info
        return finish(recipe, plan, out, writer, seconds=seconds, info=info, factory=factory)


def check(recipe: ParseRecipe) -> tuple[PageSelection, Plan]:
    """Everything that can be wrong with the settings, found in seconds."""
    if not recipe.out:
        raise ConfigError("no result directory: name one with --out DIR")
    if recipe.out.startswith("s3://"):
        raise ConfigError("results are written to a local directory; give --out a path and copy it afterwards")
    selection = PageSelection.parse(recipe.pages)
    out = Path(recipe.out).absolute()
    return selection, make_plan(recipe.sources, own={str(out / name) for name in listed(out)})


def render_limits(recipe: ParseRecipe) -> RenderLimits:
    """The recipe's limits of one document and one page."""
    seconds = recipe.render.page_seconds
    return RenderLimits(seconds_open=2 * seconds, seconds_page=seconds, memory_mb=recipe.render.memory_mb)


def finish(
    recipe: ParseRecipe,
    plan: Plan,
    out: ResultDirectory,
    writer: Writer,
    *,
    seconds: float,
    info: EngineInfo,
    factory: RendererFactory,
) -> Summary:
    """Write report and ``run.json``, and publish."""
    run = describe(recipe, plan, writer, seconds=seconds, info=info)
    with (out.work / PAGES).open("rb") as file:
        statuses = pq.read_table(file, columns=["status"])["status"].to_pylist()
    chosen = choose(statuses, recipe.report.pages)
    with Gallery(recipe, factory) as gallery:
        html = report(run, _rows(out.work / PAGES, chosen), gallery.image)
    out.write(REPORT, html.encode("utf-8"))
    out.publish(run)
    return Summary(out.out, run)


def describe(recipe: ParseRecipe, plan: Plan, writer: Writer, *, seconds: float, info: EngineInfo) -> dict[str, Any]:
    """The content of ``run.json``; ``seconds`` is wall time without loading the checkpoint."""
    prompt = engine.origin(info, engine.instruction(recipe.model)).prompt_hash
    model = {"model": info.model, "revision": info.revision, "engine": info.engine, "prompt_hash": prompt}
    more = {"device": info.device, "dtype": info.dtype, "draft_depth": info.draft_depth, "guarantee": info.guarantee}
    decoded = writer.totals["decoded"]
    return {
        **provenance.collect(recipe.model_dump(mode="json"), **model, **more),
        "counts": dict(writer.statuses),
        "reasons": dict(writer.reasons),
        "speed": {
            "seconds": round(seconds, 3),
            "pages_per_second": round(writer.totals["pages"] / seconds, 3) if seconds else 0.0,
            "tokens_per_second": round(writer.totals["tokens"] / seconds, 1) if seconds else 0.0,
            "tokens": writer.totals["tokens"],
            "tokens_per_page": round(writer.totals["tokens"] / decoded, 1) if decoded else None,
            "render_seconds": round(writer.render_seconds, 3),
            "decode_seconds": round(writer.decode_seconds, 3),
            "tau": writer.tau,
        },
        "documents": writer.documents,
        "skipped": [{"uri": plain(u), "reason": reason, "detail": plain(detail)} for u, reason, detail in plan.skipped],
    }


def _rows(path: Path, chosen: list[int]) -> Iterator[ParsedPage]:
    wanted = iter(chosen)
    target = next(wanted, None)
    for place, row in enumerate(islice(read_rows(path), (chosen[-1] + 1) if chosen else 0)):
        if place == target:
            yield row
            target = next(wanted, None)
