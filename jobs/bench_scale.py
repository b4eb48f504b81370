"""Does the archive job's driver stay small? ``python -m jobs.bench_scale``.

``pdf``      one PDF of 3,000 pages
``prefix``   10,000 documents in a folder
``s3``       the same 10,000 under an S3 prefix (moto in a process of its own), result in S3 too
``million``  a manifest of 1,000,000 pages: assembled, planned, anti-joined, every unit scheduled (see
             ``jobs.archive_bench.million`` for what is made up)

The first three run ``python -m jobs.parse`` with the fake engine and sample its memory. Exit code 1 where a page is
missing from a result.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psutil
from pydantic import Field

from jobs._main import main
from jobs.archive_bench import million, papers
from jobs.archive_bench.driver import Driver
from jobs.archive_bench.s3 import s3_server, upload
from jocr import provenance, storage
from jocr.config import ParseRecipe, Recipe, build
from jocr.errors import JocrError

PartName = Literal["pdf", "prefix", "s3", "million"]


class ScaleRecipe(Recipe):
    """What the bench can be told."""

    parts: tuple[PartName, ...] = ("pdf", "prefix", "s3", "million")
    pdf_pages: int = Field(default=3000, ge=1)
    documents: int = Field(default=10_000, ge=1)
    manifest_pages: int = Field(default=1_000_000, ge=1)
    manifest_unit: int = Field(default=256, ge=1, le=1024)  # ``ray.unit`` of that part
    pass_units: int = Field(default=4096, ge=1)  # ``ray.pass_units`` of that part
    limit_seconds: float = Field(default=1800.0, gt=0)  # of one part
    json_out: str | None = None


def run(recipe: ScaleRecipe) -> int:
    """Run the parts, print each as it is done, write the results where asked."""
    results: dict[str, Any] = {}
    if recipe.json_out and Path(recipe.json_out).exists():
        results = json.loads(Path(recipe.json_out).read_bytes())["parts"]
    for part in recipe.parts:
        with tempfile.TemporaryDirectory(prefix="jocr-scale-", ignore_cleanup_errors=True) as work:
            result = PARTS[part](recipe, Path(work))
        results[part] = {"provenance": provenance.collect(recipe.model_dump(mode="json")), **result}
        print(f"{part}: {json.dumps(result)}", flush=True)
        if recipe.json_out:
            data = json.dumps({"parts": results}, indent=1) + "\n"
            storage.atomic_write(recipe.json_out, data.encode("utf-8"))
    return 0


def _pdf(recipe: ScaleRecipe, work: Path) -> dict[str, Any]:
    source = work / "source"
    source.mkdir()
    (source / "long.pdf").write_bytes(papers.pdf("long", ["ink"] * recipe.pdf_pages))
    return _job(recipe, str(source), str(work / "out"), work, recipe.pdf_pages)


def _prefix(recipe: ScaleRecipe, work: Path) -> dict[str, Any]:
    return _job(recipe, str(_documents(recipe, work)), str(work / "out"), work, recipe.documents)


def _s3(recipe: ScaleRecipe, work: Path) -> dict[str, Any]:
    with s3_server() as bucket:
        source = upload(_documents(recipe, work), bucket, "archive")
        return _job(recipe, source, f"s3://{bucket}/out", work, recipe.documents)


def _documents(recipe: ScaleRecipe, work: Path) -> Path:
    source = work / "source"
    for number in range(recipe.documents):
        path = source / f"box {number // 500:03}" / f"sheet {number:06}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(papers.png(path.name))
    return source


def _job(recipe: ScaleRecipe, source: str, out: str, work: Path, pages: int) -> dict[str, Any]:
    settings = {
        "sources": [source], "out": out, "model.name": "fake", "render.long_side": 256, "report.pages": 12,
        "ray.decoders": 1, "ray.decoder_cpus": 0.5,
    }  # fmt: skip
    driver = Driver(settings, work / "driver.log", {"RAY_worker_niceness": "0"})  # Ray's own 15 waits for all others
    begin = time.monotonic()
    driver.start()
    driver.watch()
    if driver.wait(recipe.limit_seconds):
        raise JocrError(f"the parse job ended with {driver.code}:\n{driver.tail()}")
    seconds = time.monotonic() - begin
    counts = json.loads(storage.read_bytes(storage.join(out, "run.json")))["counts"]
    if counts["ok"] != pages or sum(counts.values()) != pages:
        raise JocrError(f"{pages} pages were to be read; the run says {counts}")
    return {"pages": pages, "counts": counts, "seconds": round(seconds, 1), "driver_rss_mb": memory(driver.rss)}


def memory(samples: list[tuple[float, float]]) -> dict[str, Any]:
    """What samples of (seconds, MiB) say: tenths of the run, the peak, and growth from the second tenth (imports and
    Ray are loaded by then) to the largest later one."""
    if not samples:
        return {}
    last = samples[-1][0] or 1.0
    tenths: list[list[float]] = [[] for _ in range(10)]
    for at, size in samples:
        tenths[min(9, int(10 * at / last))].append(size)
    tops = [round(max(tenth), 1) if tenth else None for tenth in tenths]
    later = [top for top in tops[3:] if top is not None]
    base = next((top for top in tops[2:] if top is not None), 0.0)
    peak = max(size for _, size in samples)
    return {"tenths": tops, "peak": round(peak, 1), "growth": round(max(later, default=base) - base, 1)}


@dataclass
class _Steps:
    """Times steps, and samples this process's memory, which is the driver's."""

    seconds: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)
    samples: list[tuple[float, float]] = field(default_factory=list)
    _step: str = ""

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:
        self._step, begin = name, time.monotonic()
        if not self.samples:
            threading.Thread(target=self._sample, args=(begin,), daemon=True).start()
        result = call()
        self.seconds[name] = round(time.monotonic() - begin, 2)
        return result

    def _sample(self, begin: float) -> None:
        own = psutil.Process(os.getpid())
        while True:
            size = own.memory_info().rss / 2**20
            self.samples.append((time.monotonic() - begin, size))
            self.peaks[self._step] = round(max(size, self.peaks.get(self._step, 0.0)), 1)
            time.sleep(0.2)


def _million(recipe: ScaleRecipe, work: Path) -> dict[str, Any]:
    import ray

    from jobs.parse import connect

    settings = {
        "sources": ["/archive"], "out": str(work / "out"), "model": {"name": "fake"},
        "ray": {"unit": recipe.manifest_unit, "pass_units": recipe.pass_units, "decoders": 1, "decoder_cpus": 0.5},
    }  # fmt: skip
    steps = _Steps()
    given = build(ParseRecipe, settings)
    counts = million.run(given, recipe.manifest_pages, steps, lambda: connect(given.ray))
    ray.shutdown()
    rate = counts["units_scheduled"] / steps.seconds["schedule"]
    return {**counts, "seconds": steps.seconds, "rss_mb": steps.peaks, "units_per_second": round(rate, 1),
            "rss_growth": memory(steps.samples)}  # fmt: skip


PARTS: dict[str, Callable[[ScaleRecipe, Path], dict[str, Any]]] = {
    "pdf": _pdf, "prefix": _prefix, "s3": _s3, "million": _million,
}  # fmt: skip

if __name__ == "__main__":
    main(ScaleRecipe, run, __doc__)
