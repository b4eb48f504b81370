"""Parse an archive on Ray: ``python -m jobs.parse jobs/recipes/parse.toml --set out=out``.

Alone it starts Ray on this machine; under ``ray job submit -- python -m jobs.parse ...`` or with ``RAY_ADDRESS`` it
uses that cluster, whose nodes must see local sources and results under the same paths. The same command again goes on
where the last one ended, whatever ended it: what is committed is not read again.

Exit codes: 0 every page has its row, 1 the machinery failed, 2 bad settings, 3 more pages failed than ``fail_above``,
4 the budget is spent and pages are left, 130 and 143 stopped by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from jobs._main import end_on_sigterm, main
from jocr.archive import run as archive
from jocr.archive.run import Summary
from jocr.config import ParseRecipe, RaySettings
from pipelines.parse import MakeDecoder, on_ray, parse_archive

STOPPED = "stopped; what is committed stays, and the same command goes on from there"


def run(recipe: ParseRecipe, make_decoder: MakeDecoder | None = None) -> Summary:
    """Parse ``recipe.sources`` into ``recipe.out`` on Ray.

    Raises:
        ConfigError: bad settings, sources or names, before Ray is started.
        JocrError: as ``pipelines.parse.parse_archive``.
    """
    archive.check(recipe)
    return parse_archive(recipe, on_ray(recipe, partial(connect, recipe.ray)), make_decoder)


def connect(shape: RaySettings) -> None:
    """Join the cluster this process belongs to, or start one on this machine, with room for ``shape``."""
    import ray
    import ray.data

    if not ray.is_initialized():
        with _silent():
            _join(shape)
        end_on_sigterm()
    ray.data.DataContext.get_current().enable_progress_bars = False  # the job has a line of its own
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    logging.getLogger("ray.data._internal.progress").setLevel(logging.ERROR)  # it warns that there are no bars


def local_cpus(shape: RaySettings) -> int:
    """Logical CPUs of a Ray on this machine: what the decoders ask for, and beside them one renderer more than there
    are cores, so that none is idle while a renderer hands its pages on. More would be worse: every task at a time is a
    worker process and a renderer's child, over a second of imports and the memory of a page each."""
    decoders = max(shape.decoders, shape.max_decoders or 0)
    return math.ceil(decoders * shape.decoder_cpus) + len(os.sched_getaffinity(0)) + 1


def _join(shape: RaySettings) -> None:
    import ray
    from ray._private import worker

    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # of native code, which writes to this terminal
    os.environ.setdefault("RAY_idle_worker_killing_time_threshold_ms", "60000")  # 1 s: the next task imports all anew
    logging.getLogger("ray").setLevel(logging.ERROR)  # it says things before ``init`` sets that
    if hasattr(worker, "print_to_stdstream"):  # what raylets tell every driver; Ray has no setting for that
        worker.print_to_stdstream = lambda *_, **__: None
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if shape.address or os.environ.get("RAY_ADDRESS"):
        ray.init(address=shape.address or "auto", **quiet)
        return
    try:
        ray.init(num_cpus=local_cpus(shape), include_dashboard=False, **quiet)
    except ValueError:  # a cluster runs on this machine, and it has its own number of CPUs
        ray.init(**quiet)


@contextmanager
def _silent() -> Iterator[None]:
    """What is written to standard error meanwhile, by native code too, is seen only where this fails."""
    sys.stderr.flush()
    real = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        except BaseException:
            said.seek(0)
            os.write(real, said.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(real, 2)
            os.close(real)


def show(summary: Summary) -> str:
    """Counts, speed and the paths a person opens next."""
    counts = ", ".join(f"{n} {status}" for status, n in sorted(summary.counts.items()) if n)
    speed = summary.pages_read / summary.seconds if summary.seconds else 0.0
    lines = [f"{summary.pages} pages: {counts or 'none done'}"]
    lines += [f"  {n} x {reason}" for reason, n in sorted(summary.reasons.items(), key=lambda item: -item[1])]
    lines.append(f"{summary.pages_read} pages read in {summary.seconds:.1f} s, {speed:.2f} pages/s")
    if summary.pages_left:
        lines.append(f"the budget is spent, {summary.pages_left} pages are left: raise cost.budget to go on")
    return "\n".join([*lines, summary.report or summary.out])


def _run(recipe: ParseRecipe) -> int:
    summary = run(recipe)
    print(show(summary))
    return summary.exit_code(recipe.fail_above)


if __name__ == "__main__":
    main(ParseRecipe, _run, __doc__, stopped=STOPPED, shortcuts={"redrive": "job.redrive", "fail-above": "fail_above"})
