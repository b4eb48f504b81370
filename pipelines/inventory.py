"""The inventory on Ray Data: the driver lists, tasks open documents, and the manifest is put together in listing order.

Listing and answers travel as small tables below ``OUT/manifest/.open``, a chunk of neighbouring files each, named by
their content: an inventory that was stopped finds what its tasks had finished.
"""

from __future__ import annotations

import hashlib
import io
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jocr import storage
from jocr.archive import collect, inventory, manifest, trials
from jocr.archive.assemble import assemble
from jocr.archive.layout import MANIFEST, place
from jocr.archive.listing import list_sources
from jocr.archive.manifest import ManifestInfo
from jocr.archive.opening import deadly, open_file
from jocr.archive.reuse import Earlier, Index, earlier
from jocr.config import ParseRecipe
from jocr.errors import ConfigError, JocrError, StorageError
from jocr.pages.render import Renderer, RenderLimits
from jocr.parsing.command import render_limits
from jocr.parsing.plan import PageSelection
from pipelines.stages import FunctionStage, Stage, current_task, run_ray

WORK = ".open"
STARTS = 100  # of a chunk whose task dies: its tries say which file is to blame, and end that; this ends all else
TRIES = 2  # more, where another driver does the same at the same time
Runner = Callable[[Sequence[Any], Sequence[Stage]], Iterable[Any]]
RAY: Runner = partial(run_ray, blocks=None)
Progress = Callable[[int, int | None], None]  # files listed, files opened; None while listing


@dataclass(frozen=True, slots=True)
class Chunk:
    """Neighbouring files of the listing: where their table lies. Its column ``rows`` says where an earlier manifest has
    theirs: part, first row, row after the last, and so on."""

    number: int
    uri: str
    files: int


@dataclass(frozen=True, slots=True)
class Opened:
    """What a task tells the driver: counts, and where the rest lies."""

    number: int
    uri: str
    files: int
    documents: int


def run_inventory(recipe: ParseRecipe, progress: Progress | None = None, *, run: Runner = RAY) -> ManifestInfo:
    """List ``recipe.sources``, open what is new or changed, write the manifest below ``recipe.out``.

    Args:
        recipe: sources, out, pages, render and ray.unit count.
        progress: told how many files are listed and opened; None for a line on standard error.
        run: ``run_ray`` on the cluster this process is connected to, or ``run_local``.

    Raises:
        ConfigError: a source that is not there or cannot be listed, an output not writable, names that collide;
            all found before any document is opened.
        StorageError: ``out`` failed later.
    """
    PageSelection.parse(recipe.pages)
    if not recipe.out:
        raise ConfigError("no result directory: set out to a folder or an s3:// prefix")
    told = progress or Line()
    with TemporaryDirectory(prefix="jocr-inventory-") as folder:
        files = list_sources(recipe.sources, recipe.out)
        _check_writable(recipe.out)
        listing = collect.collect(files, Path(folder), lambda listed: told(listed, None))
        for _ in range(TRIES):
            with suppress(FileNotFoundError):  # another driver finished the same work and cleared it: reuse that
                return _inventory(recipe, listing, told, run, Path(folder))
        return _inventory(recipe, listing, told, run, Path(folder))


def _inventory(
    recipe: ParseRecipe, listing: collect.Listing, told: Progress, run: Runner, folder: Path
) -> ManifestInfo:
    before = manifest.latest(recipe.out)
    chunks = list(_write_chunks(recipe.out, listing, Index(before)))
    task = partial(open_chunk, recipe=recipe, before=earlier(before) if before else None, name=uuid.uuid4().hex[:12])
    stages: list[Stage] = [FunctionStage("open", task, batch=1, tasks=recipe.ray.renderers, retries=STARTS)]
    answers: list[str] = []
    opened = 0
    for answer in run(chunks, stages):
        (folder / f"{answer.number:08d}.parquet").write_bytes(storage.read_bytes(answer.uri))
        answers.append(answer.uri)
        opened += answer.files
        told(len(listing), opened)
    found = sorted(folder.glob("*.parquet"))
    if not len(chunks) == len(answers) == len(found):
        raise JocrError(f"{len(chunks)} chunks of files went out and {len(answers)} came back; run it again")
    info = assemble(
        lambda: (pq.read_table(path) for path in found),
        recipe.out,
        unit=recipe.ray.unit,
        sources=recipe.sources,
        selection=recipe.pages,
    )
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(storage.delete, [*(chunk.uri for chunk in chunks), *answers]))
    return info


def _check_writable(out: str) -> None:
    try:
        storage.check_writable(out)
    except StorageError as error:
        raise ConfigError(str(error)) from error


def _write_chunks(out: str, listing: collect.Listing, index: Index) -> Iterator[Chunk]:
    for number, files in enumerate(listing.chunks()):
        table = collect.to_table(files)
        name = hashlib.sha256(_parquet(table)).hexdigest()[:24]
        rows = pa.array([[at for run in index.rows(file.uri) for at in run] for file in files], pa.list_(pa.int64()))
        uri = place(out, MANIFEST, WORK, f"{name}.files.parquet")
        storage.atomic_write(uri, _parquet(table.append_column("rows", rows)))
        yield Chunk(number, uri, len(files))


def open_chunk(chunk: Chunk, *, recipe: ParseRecipe, before: Earlier | None, name: str = "") -> Iterator[Opened]:
    """The task: open every file of a chunk, write what is found beside it. A file whose opening kills the process
    ``job.attempts`` times is a failed document."""
    renderer, selection = _renderer(render_limits(recipe)), PageSelection.parse(recipe.pages)
    stem = chunk.uri.removesuffix(".files.parquet")
    uri = f"{stem}.documents.parquet"
    unfinished = _finished(uri)
    found: list[inventory.Document] = []
    table = _read(chunk.uri)
    files = zip(collect.from_table(table), table["rows"].to_pylist(), strict=True)
    with trials.begin(f"{stem}.tries", recipe.job.attempts, f"{name} {current_task()}") as trial:
        for number, (file, rows) in enumerate(files):
            if number in trial.kept:
                found += inventory.from_table(_read(trial.kept[number]))
                continue
            if trial.exhausted(number):
                found.append(deadly(file, trial.lone[number]))
                continue
            if trial.careful:
                trial.started(number)
            known = unfinished.get(file.uri) or (before.documents(file.uri, rows) if before else [])
            care = trials.Within(trial, number, file.uri) if trial.careful else None
            held = list(open_file(file, recipe, renderer, known, care))
            if trial.careful:
                trial.saved(number, _parquet(inventory.to_table(held, selection)))
            found += held
        storage.atomic_write(uri, _parquet(inventory.to_table(found, selection)))
    yield Opened(chunk.number, uri, chunk.files, len(found))


def _finished(uri: str) -> dict[str, list[inventory.Document]]:
    """What a task that was stopped, or an inventory that was, had found out about these files."""
    found: dict[str, list[inventory.Document]] = {}
    if storage.exists(uri):
        for document in inventory.from_table(_read(uri)):
            found.setdefault(document.uri, []).append(document)
    return found


@lru_cache(maxsize=1)
def _renderer(limits: RenderLimits) -> Renderer:
    """One renderer per worker process, whose child serves task after task."""
    return Renderer(limits)


def _parquet(table: pa.Table) -> bytes:
    target = io.BytesIO()
    pq.write_table(table, target, compression="zstd")
    return target.getvalue()


def _read(uri: str) -> pa.Table:
    return pq.read_table(io.BytesIO(storage.read_bytes(uri)))


class Line:
    """How many files are listed and opened, on standard error, at most once a second and at the end."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, listed: int, opened: int | None) -> None:
        if opened == listed or time.monotonic() >= self._next:
            self._next = time.monotonic() + 1.0
            more = "" if opened is None else f", {opened} opened"
            print(f"{listed} files listed{more}", file=sys.stderr)


def describe(info: ManifestInfo) -> str:
    """Counts by kind and reason, for people."""
    lines = [f"{info.pages} pages in {info.documents} documents, {info.groups} units; manifest {info.id}"]
    for title, counts in (("kinds", info.kinds), ("not opened", info.reasons), ("left out", info.skipped_reasons)):
        if counts:
            lines.append(f"{title}: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    if info.skipped:
        lines.append(f"what was left out is listed in {info.skipped_uri}")
    return "\n".join(lines)
