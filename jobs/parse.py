"""Parse documents on Ray: ``python -m jobs.parse jobs/recipes/parse.toml --set out=out``.

Alone it starts Ray on this machine; under ``ray job submit -- python -m jobs.parse ...`` or with ``RAY_ADDRESS`` it
uses that cluster, whose nodes must see the sources and the result directory under the same paths.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from jobs._main import main
from jocr.config import ParseRecipe
from jocr.decoding.protocol import Decoder, EngineInfo
from jocr.parsing import engine
from jocr.parsing.command import Summary, check
from jocr.parsing.output import ResultDirectory
from jocr.parsing.plan import Plan
from pipelines.parse import Receipt, collect, stages
from pipelines.stages import run_ray


def run(recipe: ParseRecipe, make_decoder: Callable[[], Decoder] | None = None) -> Summary:
    """Parse ``recipe.sources`` into ``recipe.out`` on Ray.

    Raises:
        ConfigError: bad settings, before Ray is started.
        JocrError: as ``jocr.parsing.command.parse``.
    """
    selection, plan = check(recipe)
    with ResultDirectory(Path(recipe.out), force=recipe.force) as out:
        connect(recipe.ray.address)
        started = time.monotonic()
        make_decoder = make_decoder or partial(engine.open_decoder, recipe.model)
        receipts = []
        for receipt in run_ray(plan.documents, stages(recipe, selection, out.work, make_decoder)):
            receipts.append(receipt)
            _tell(receipts, started)
        seconds = time.monotonic() - started
        return _collect(recipe, plan, out, receipts, seconds)


def connect(address: str | None) -> None:
    """Join the cluster this process belongs to, or start one on this machine. CPUs are logical: fewer than four would
    let stages wait for each other."""
    import ray
    import ray.data

    if not ray.is_initialized():
        quiet: dict[str, Any] = {"logging_level": logging.WARNING, "log_to_driver": False}
        if address or os.environ.get("RAY_ADDRESS"):
            ray.init(address=address or "auto", **quiet)
        else:
            ray.init(num_cpus=max(4, os.cpu_count() or 1), include_dashboard=False, **quiet)
    ray.data.DataContext.get_current().enable_progress_bars = sys.stderr.isatty()
    logging.getLogger("ray.data").setLevel(logging.WARNING)


def _collect(recipe: ParseRecipe, plan: Plan, out: ResultDirectory, receipts: list[Receipt], seconds: float) -> Summary:
    import ray

    info = next((receipt.info for receipt in receipts if receipt.info), _unasked(recipe))
    parts = [receipt.part for receipt in receipts]
    task = ray.remote(num_cpus=1, max_retries=0)(collect)
    return ray.get(task.remote(recipe, plan, out, parts, seconds, info))


def _unasked(recipe: ParseRecipe) -> EngineInfo:
    """No page was selected, so no decoder said what it is."""
    model = recipe.model
    return EngineInfo(model.name, "", "", model.device, model.dtype or "", model.depth, "")


def _tell(receipts: list[Receipt], started: float) -> None:
    pages, failed = sum(r.rows for r in receipts), sum(r.failed for r in receipts)
    speed = pages / max(time.monotonic() - started, 1e-9)
    print(f"{pages} pages written, {failed} failed, {speed:.2f} pages/s", file=sys.stderr)


def _run(recipe: ParseRecipe) -> int:
    summary = run(recipe)
    print(f"{summary.pages} pages: {summary.run['counts']}\n{summary.out}/report.html")
    return summary.exit_code(recipe.fail_above)


if __name__ == "__main__":
    main(ParseRecipe, _run, __doc__)
