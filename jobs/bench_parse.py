"""How fast the archive job is around its engine: ``python -m jobs.bench_parse``, or ``jocr bench parse``.

The documents are made for it: volumes of A5 scans at 300 dpi and born-digital ones in turn. With the fake engine at 0
and at 50 ms a page, pages/s of the job against bare loops over the same functions (renderer, decoder, row, Parquet),
one loop a core, warm, over the first of the same documents, as many pages as the long run has more than the short one.
The slower the engine, the fewer pages, so that all runs take about as long. The job's settings are the defaults, but
for its decoders, which are as many as cores. Of it three figures are given:

``steady``  (pages of a long run - pages of a short one) / (seconds of the long - seconds of the short): everything that
            a page costs (inventory, render, decode, commit, Markdown, report), without what a run costs once
``pass``    pages / seconds of the passes, as the job says: with the start of workers and actors
``whole``   pages / wall seconds of ``python -m jobs.parse`` as a process, with imports and the start of Ray

And rendering: the renderer's child process (blank judgement, PNG, the next page drawn meanwhile on a second core)
against pypdfium2 in a plain loop, to bitmaps and to PNG by Pillow; ``documents`` adds PDFs of one's own to it. The
sides of each comparison alternate; medians of the rounds are kept. Nothing else may run on the machine meanwhile.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field
from rich.console import Console
from rich.table import Table

from jobs._main import main
from jobs.archive_bench import bare, papers, scans
from jobs.archive_bench.driver import Driver
from jocr import provenance, storage
from jocr.config import Recipe
from jocr.errors import JocrError

LONG_SIDE = 1280  # pixels: what a render is made at where nothing else is asked for
PER_DOCUMENT, LINES = 32, 27
RENDERED = 2  # documents of the comparison of renderers
PAGE_SECONDS = 0.02  # what a page takes a core beside its engine, about
TARGET, RENDER_TARGET = 0.85, 0.9


class BenchParseRecipe(Recipe):
    """What the bench can be told."""

    pages: int = Field(default=6144, ge=64)  # of a long run at 0 ms, besides those of the short one
    short: int = Field(default=384, ge=64)  # pages of the short run: enough that every worker has started
    rounds: int = Field(default=2, ge=1)
    slow_rounds: int = Field(default=1, ge=1)  # with an engine that takes its time: few things move that
    seconds: tuple[float, ...] = (0.0, 0.05)  # of the fake engine, a page
    limit_seconds: float = Field(default=900.0, gt=0)  # of one run
    documents: str | None = None  # a folder of PDFs, rendered as well
    json_out: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents for a short and a long run with one engine."""

    short: Path
    long: Path
    pages: int  # that the long one has more

    @classmethod
    def write(cls, folder: Path, recipe: BenchParseRecipe, seconds: float) -> Corpus:
        """For an engine that takes ``seconds`` a page."""
        more = max(64, round(recipe.pages * PAGE_SECONDS / (PAGE_SECONDS + seconds)))
        return cls(_write(folder / "short", recipe.short), _write(folder / "long", recipe.short + more), more)


def _paths(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*.pdf"))


def run(recipe: BenchParseRecipe) -> int:
    """Measure, print a table, write the results where asked. Misses of a target are in the table, not the exit code."""
    console = Console(width=120)
    with tempfile.TemporaryDirectory(prefix="jocr-parse-", ignore_cleanup_errors=True) as name:
        work = Path(name)
        every = _paths(_write(work / "render", RENDERED * PER_DOCUMENT))
        sets = {"render": every, "render, scans": every[::2], "render, born digital": every[1::2]}
        if recipe.documents:
            sets |= {f"render, {recipe.documents}": _paths(Path(recipe.documents))}
        rows = [_render_row(name, paths, recipe.rounds) for name, paths in sets.items()]
        for seconds in recipe.seconds:
            corpus = Corpus.write(work / f"{seconds:g}", recipe, seconds)
            rows.append(_job_row(recipe, corpus, work, seconds, console))
    console.print(_table(rows))
    if recipe.json_out:
        data = {"provenance": provenance.collect(recipe.model_dump(mode="json")), "load_average": os.getloadavg()[0]}
        text = json.dumps({**data, "rows": rows}, indent=1) + "\n"
        storage.atomic_write(recipe.json_out, text.encode("utf-8"))
    return 0


def _write(folder: Path, pages: int) -> Path:
    for number in range(0, pages, PER_DOCUMENT):
        count = min(PER_DOCUMENT, pages - number)
        scanned = number // PER_DOCUMENT % 2 == 0
        path = folder / f"{number // 1024}" / f"{number:06}.pdf"
        path.parent.mkdir(parents=True, exist_ok=True)
        label = f"{folder.parent.name} {folder.name} {number}"
        path.write_bytes(scans.volume(number, count) if scanned else papers.pdf(label, ["ink"] * count, LINES))
    return folder


def _render_row(name: str, paths: Sequence[str], rounds: int) -> dict[str, Any]:
    ours, raster, png = [], [], []
    for _ in range(rounds):
        raster.append(bare.pypdfium2_rate(paths, LONG_SIDE, png=False))
        ours.append(bare.renderer_rate(paths, LONG_SIDE))
        png.append(bare.pypdfium2_rate(paths, LONG_SIDE, png=True))
    rate, best, packed = (statistics.median(values) for values in (ours, raster, png))
    return {
        "name": name, "pages_per_second": rate, "pypdfium2": best, "pypdfium2_png": packed,
        "ratio": rate / best, "ratio_png": rate / packed, "target": RENDER_TARGET, "rounds": [ours, raster, png],
    }  # fmt: skip


def _job_row(recipe: BenchParseRecipe, corpus: Corpus, work: Path, seconds: float, console: Console) -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0))
    model = f"fake:seconds={seconds:g}"
    measured: dict[str, list[float]] = {name: [] for name in ("bare", "steady", "pass", "whole")}
    more, every = corpus.pages, corpus.pages + recipe.short
    paths = _paths(corpus.long)[: more // PER_DOCUMENT]
    for number in range(recipe.slow_rounds if seconds else recipe.rounds):
        with bare.Loops(cores, model, LONG_SIDE, paths[0]) as loops:
            measured["bare"].append(loops.pages_per_second(paths))
        short, _ = _job(recipe, corpus.short, work, model)
        long, passes = _job(recipe, corpus.long, work, model)
        measured["steady"].append(more / (long - short))
        measured["whole"].append(every / long)
        measured["pass"].append(every / passes)
        console.print(
            f"{model}, round {number + 1}: " + ", ".join(f"{k} {v[-1]:.1f}" for k, v in measured.items()),
            highlight=False,
        )
    rates = {name: statistics.median(values) for name, values in measured.items()}
    ratios = {f"ratio_{name}": rates[name] / rates["bare"] for name in ("steady", "pass", "whole")}
    return {
        "name": model, "pages": every, "pages_per_second": rates, **ratios,
        "ratio": ratios["ratio_steady"], "target": TARGET, "rounds": measured,
    }  # fmt: skip


def _job(recipe: BenchParseRecipe, source: Path, work: Path, model: str) -> tuple[float, float]:
    """(wall seconds, seconds of its passes) of a parse job as a process."""
    out = work / f"out-{time.monotonic_ns()}"
    cores = len(os.sched_getaffinity(0))
    settings = {
        "sources": [str(source)], "out": str(out), "model.name": model, "render.long_side": LONG_SIDE,
        "report.pages": 0, "ray.decoders": cores, "ray.decoder_cpus": 0.5,
    }  # fmt: skip
    driver = Driver(settings, work / "driver.log", {"RAY_worker_niceness": "0"})  # Ray's own 15 waits for all others
    begin = time.monotonic()
    driver.start()
    code = driver.wait(recipe.limit_seconds)
    seconds = time.monotonic() - begin
    said = re.findall(r"^\d+ pages read in ([\d.]+) s", driver.tail(), re.MULTILINE)
    if code or not said:
        raise JocrError(f"the parse job ended with {code}:\n{driver.tail()}")
    return seconds, float(said[-1])


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="pages/s: medians of alternating rounds", title_justify="left")
    for name in ("what", "ours", "bare", "ratio", "target", "more"):
        table.add_column(name, justify="left" if name in ("what", "more") else "right")
    for row in rows:
        rates = row["pages_per_second"]
        if row["name"].startswith("render"):
            more = f"pypdfium2 with PNG {row['pypdfium2_png']:.1f}: ratio {row['ratio_png']:.2f}"
            ours, other = rates, row["pypdfium2"]
        else:
            more = ", ".join(f"{name} {rates[name]:.1f}: {row[f'ratio_{name}']:.2f}" for name in ("pass", "whole"))
            ours, other = rates["steady"], rates["bare"]
        table.add_row(row["name"], f"{ours:.1f}", f"{other:.1f}", f"{row['ratio']:.2f}", f"{row['target']:g}", more)
    return table


if __name__ == "__main__":
    main(BenchParseRecipe, run, __doc__)
