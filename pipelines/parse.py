"""The archive job on Ray Data: inventory, then passes of ``render -> decode``, one row per unit of pages.

Tasks render (a child process each); actors hold a decoder, work on several units at a time and commit each as soon as
it is read; the driver plans from listings and is told counts. Page images cross the object store once, a unit at a
time, and rows do not at all; Ray Data starts no more rendering than the store has room for, and ``ray.renderers``
bounds it further.

Commits have no stage of their own: writing a unit's rows costs a few milliseconds, and tasks for that cost a worker
process each (over a second of imports) and take Ray Data's CPUs from rendering.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from jocr.archive import run, settings
from jocr.archive.commit import commit_unit
from jocr.archive.decode import UnitReader
from jocr.archive.engine import end_process, open_guarded
from jocr.archive.feed import Feed
from jocr.archive.finish import finish, shards
from jocr.archive.ledger import Ledger
from jocr.archive.manifest import ManifestInfo
from jocr.archive.outputs import write_shard
from jocr.archive.passes import run_passes
from jocr.archive.places import Places
from jocr.archive.plan import make_plan, plan_redrive
from jocr.archive.render import draw_again, render_unit
from jocr.archive.run import Summary, summary
from jocr.archive.settings import Reading
from jocr.archive.shards import Shard
from jocr.archive.work import Read, Receipt, Sheets, Shot, Work
from jocr.config import OutputSettings, ParseRecipe
from jocr.decoding.protocol import Decoder
from jocr.pages.render import Renderer, RenderLimits
from jocr.parsing import engine
from jocr.parsing.command import render_limits
from jocr.records import PageFailure, PageImage, ParsedPage
from pipelines.inventory import run_inventory
from pipelines.metrics import PageMetrics, RunMetrics
from pipelines.stages import (
    ActorStage,
    FunctionStage,
    Stage,
    call_ray,
    current_actor,
    current_task,
    on_cluster,
    project_error,
    restarted,
    run_ray,
)

STARTS = 100  # of a unit whose render task dies: its tries say which file is to blame, and end that; this ends all else
TOGETHER = 16  # most units that one decoder works on at a time

MakeDecoder = Callable[[], Decoder]
Lost = Callable[[str], None]
CommitRows = Callable[[Read], Receipt]


@dataclass(frozen=True)
class Machinery:
    """What runs stages and calls."""

    run: Callable[[Sequence[Any], Sequence[Stage]], Iterable[Any]]
    call: Callable[..., Any]  # function, arguments -> its result


def on_ray(recipe: ParseRecipe, connect: Callable[[], None] = lambda: None) -> Machinery:
    """A cluster. ``connect`` joins this process to it, and is called before anything is run on it, not sooner: what is
    wrong with sources and names is told without one."""

    def run(records: Sequence[Any], stages: Sequence[Stage]) -> Iterator[Any]:
        connect()
        return run_ray(records, stages, blocks=recipe.ray.blocks)

    def call(function: Callable[..., Any], *args: Any) -> Any:
        connect()
        return call_ray(function, *args)

    return Machinery(run, call)


def stages(
    recipe: ParseRecipe, reading: Reading, ledger: Ledger, make_decoder: MakeDecoder | None = None,
    lost: Lost = end_process, name: str = "", commit: CommitRows | None = None,
) -> list[Stage]:  # fmt: skip
    """A pass, from ``Work`` to ``Receipt``.

    Args:
        commit: what becomes of a unit that is read; None for ``ledger``'s.
        name: of the run, for its journals.
        make_decoder: None for the recipe's model.
        lost: told why the decoder of a process is gone; ends the process.
    """
    shape, make = recipe.ray, make_decoder or partial(engine.open_decoder, recipe.model)
    return [
        FunctionStage(
            "render",
            partial(render, recipe=recipe, reading=reading, ledger=ledger, name=name),
            batch=1,
            tasks=shape.renderers,
            retries=STARTS,
        ),
        ActorStage(
            "decode",
            partial(Decode, recipe, reading, ledger, make, lost, name, commit or partial(commit_unit, ledger=ledger)),
            actors=shape.decoders,
            max_actors=shape.max_decoders,
            cpus=shape.decoder_cpus,
            gpus=shape.decoder_gpus,
            batch=1,
            calls=units_together(recipe.model.batch, shape.unit),
            retries=None,
        ),
    ]


def units_together(batch: int, unit: int) -> int:
    """How many units a decoder works on at a time: those that fill its batch when all are of the least size, a quarter
    of ``unit``, and one more, so that it never waits for the next."""
    return min(TOGETHER, 1 + math.ceil(batch / max(1, unit // 4)))


def render(
    work: Work, *, recipe: ParseRecipe, reading: Reading, ledger: Ledger, name: str = ""
) -> Iterator[Sheets]:  # fmt: skip
    """A unit's pages as images. To be told apart are the tries of one task, not those of a run: a pass that ends early
    ends tasks which are to blame for nothing."""
    task = f"{name} {current_task()}"
    yield render_unit(work, recipe, reading, ledger, _renderer(render_limits(recipe)), Places(recipe), task)


class Decode:
    """The actor: one decoder, and as many units at a time as there are threads that call; each thread commits its unit
    while the others decode."""

    def __init__(
        self, recipe: ParseRecipe, reading: Reading, ledger: Ledger, make_decoder: MakeDecoder, lost: Lost, name: str,
        commit: CommitRows,
    ) -> None:  # fmt: skip
        self._recipe, self._commit = recipe, commit
        self._renderer, self._places = Renderer(render_limits(recipe)), Places(recipe)
        decoder = open_guarded(make_decoder, current_actor(), restarted=restarted())
        self._feed = Feed(decoder, lost, stall_seconds=recipe.job.stall_seconds)
        self._metrics = PageMetrics() if current_actor() else None
        self._reader = UnitReader(self._feed, reading, ledger, self._again, recipe.job.attempts, name, self._tell)
        self._side = reading.long_side

    def __call__(self, batch: Iterable[Sheets]) -> Iterator[Receipt]:
        for sheets in batch:
            yield self._commit(self._reader.read(sheets))

    def _again(self, shot: Shot, scale: float, rotate: int) -> PageImage | PageFailure:
        side = min(round(self._side * scale), self._renderer.limits.max_long_side)
        return draw_again(shot.page, self._recipe, self._renderer, self._places, side=side, rotate=rotate)

    def _tell(self, row: ParsedPage) -> None:
        if self._metrics is not None:
            with suppress(Exception):  # a metric is not worth a page
                self._metrics.row(row)
                self._metrics.flying(self._feed.flying)


def parse_archive(
    recipe: ParseRecipe, on: Machinery, make_decoder: MakeDecoder | None = None, lost: Lost = end_process
) -> Summary:
    """Read everything that has no row yet, then write the outputs.

    Raises:
        ConfigError: bad settings, found before anything is computed.
        CheckpointError, EngineError: the decoders do not start.
        StuckError: nothing goes on any more, and why.
        StorageError: the result is not writable.
    """
    run.check(recipe)
    settled = lru_cache(lambda: on.call(settle, recipe))

    def opening(records: Sequence[Any], line: Sequence[Stage]) -> Iterable[Any]:
        settled()  # a model that is not there is told before the files are opened, which may take hours
        return on.run(records, line)

    info, reading = run_inventory(recipe, run=opening), settled()
    ledger = Ledger(recipe.out, reading.settings)
    redo = recipe.job.redrive
    plan = plan_redrive(info, ledger, redo) if redo else make_plan(info, ledger)
    name = uuid.uuid4().hex[:12]
    watch = run.start(plan, recipe, ledger, RunMetrics().left if on_cluster() else lambda pages: None, name)
    line = stages(recipe, reading, ledger, make_decoder, lost, name)
    try:
        outcome = run_passes(
            plan, ledger, lambda works: on.run(works, line), watch, project_error,
            watch.purse.empty, most=recipe.ray.pass_units,
        )  # fmt: skip
    finally:
        watch.close()
    found = write_outputs(recipe, info, ledger, on, watch.purse.used(watch.progress))
    return summary(recipe, ledger, found, watch.progress, outcome)


def write_outputs(
    recipe: ParseRecipe, info: ManifestInfo, ledger: Ledger, on: Machinery, decoder_seconds: float
) -> dict[str, Any]:
    """Documents, JSONL, failures, report and ``run.json``, whose content is returned; all in tasks."""
    planned = shards(recipe, info, ledger)
    stage = FunctionStage("outputs", partial(write, ledger=ledger, outputs=recipe.outputs), batch=1)
    for _ in on.run(planned, [stage]):
        pass
    return on.call(conclude, recipe, info, ledger, planned, decoder_seconds)


def write(shard: Shard, *, ledger: Ledger, outputs: OutputSettings) -> Iterator[int]:
    """One shard of the outputs."""
    yield write_shard(ledger, shard, outputs).pages


def conclude(
    recipe: ParseRecipe, info: ManifestInfo, ledger: Ledger, planned: Sequence[Shard], decoder_seconds: float
) -> dict[str, Any]:
    """What comes after the shards."""
    return finish(recipe, info, ledger, planned, decoder_seconds=decoder_seconds)


def settle(recipe: ParseRecipe) -> Reading:
    """How pages will be read. On a worker: it knows the checkpoint, and the driver needs no model code."""
    return settings.reading(recipe)


@lru_cache(maxsize=1)
def _renderer(limits: RenderLimits) -> Renderer:
    """One renderer per worker process, whose child serves task after task."""
    return Renderer(limits)
