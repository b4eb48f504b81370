"""Kill the parse job at random and see that no page is lost.

``python -m jobs.bench_chaos --set runs=3 --set pages=200``, or ``jocr bench chaos``. Each run reads a generated archive
(PDFs, TIFFs, images, zips; pages that crash or hang renderer and engine) on a Ray cluster of a head and two workers,
which the runs share.
Driver, worker processes or whole nodes are sent SIGKILL at random moments; a killed driver is started again with the
same command, a killed node is replaced. In the end the result's files must hold exactly one row for every page of the
manifest, each with the status, reason and text that a bare loop gives it.

Exit code 1 where a run leaves anything else.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import Field
from rich.console import Console
from rich.table import Table

from jobs._main import main
from jobs.archive_bench import chaos, corpus
from jobs.archive_bench.cluster import Nodes
from jobs.archive_bench.corpus import End, Place
from jocr import provenance, storage
from jocr.config import Recipe


class ChaosRecipe(Recipe):
    """What the chaos bench can be told."""

    runs: int = Field(default=20, ge=1)
    pages: int = Field(default=2000, ge=60)
    kills: int = Field(default=3, ge=0)  # SIGKILLs of a run
    nodes: int = Field(default=2, ge=1)  # of the cluster, besides its head
    seed: int = 0  # of the first run; the others count on
    limit_seconds: float = Field(default=600.0, gt=0)  # a run that takes longer has failed
    work: str | None = None  # folder for archive and results, kept; None: a temporary one
    json_out: str | None = None  # results with commit, versions and hardware


def run(recipe: ChaosRecipe) -> int:
    """Run, print a table, write the results where asked."""
    console = Console(width=120)
    trials: list[chaos.Trial] = []
    with _folder(recipe.work) as work:
        source, ends = prepare(recipe.pages, work)
        counted = Counter(end.status for end in ends.values())
        console.print(f"{len(ends)} pages; the bare loop says {dict(counted)}", highlight=False)
        with Nodes(recipe.nodes) as cluster:
            for seed in range(recipe.seed, recipe.seed + recipe.runs):
                limits: dict[str, Any] = {"kills": recipe.kills, "limit": recipe.limit_seconds}
                trials.append(chaos.run(seed, cluster, str(source), work / f"run-{seed}", ends, **limits))
                console.print(_line(trials[-1]), markup=False, highlight=False, soft_wrap=True)
                if recipe.json_out:
                    write(recipe, trials, counted, Path(recipe.json_out))
    console.print(_table(trials))
    return 1 if any(trial.problems for trial in trials) else 0


def prepare(pages: int, work: Path) -> tuple[Path, Mapping[Place, End]]:
    """The archive and how its pages must end; what lies in ``work`` already is used again."""
    source, known = work / f"archive-{pages}", work / f"ends-{pages}.json"
    if not known.exists():
        made = corpus.plan(pages)
        corpus.write(made, source)
        corpus.save(corpus.reference(made, work / "reference"), known)
    return source, corpus.load(known)


def write(recipe: ChaosRecipe, trials: Sequence[chaos.Trial], ends: Mapping[str, int], path: Path) -> None:
    """The results file."""
    seconds = [trial.seconds for trial in trials]
    data: dict[str, Any] = {
        "provenance": provenance.collect(recipe.model_dump(mode="json")),
        "runs": len(trials),
        "kills": dict(Counter(kill.split()[0] for trial in trials for kill in trial.kills)),
        "violations": sum(bool(trial.problems) for trial in trials),
        "expected": dict(ends),
        "seconds_median": statistics.median(seconds),
        "seconds_longest": max(seconds),
        "trials": [asdict(trial) for trial in trials],
    }
    storage.atomic_write(str(path), (json.dumps(data, indent=1) + "\n").encode("utf-8"))


def _line(trial: chaos.Trial) -> str:
    ends = ", ".join(f"{count} {status}" for status, count in sorted(trial.counts.items()))
    told = f"seed {trial.seed}: {trial.seconds:.0f} s, {trial.starts} starts, {'; '.join(trial.kills)}; {ends}"
    return "\n  VIOLATED ".join([told, *trial.problems])


def _table(trials: Sequence[chaos.Trial]) -> Table:
    table = Table(title="chaos: pages after SIGKILLs", title_justify="left")
    for name in ("seed", "driver", "worker", "node", "starts", "s", "units", *corpus_statuses(trials), "holds"):
        table.add_column(name, justify="right")
    for trial in trials:
        kinds = Counter(kill.split()[0] for kill in trial.kills)
        counts = (str(trial.counts.get(status, 0)) for status in corpus_statuses(trials))
        table.add_row(
            str(trial.seed), *(str(kinds[kind]) for kind in chaos.KINDS), str(trial.starts), f"{trial.seconds:.0f}",
            str(trial.units), *counts, "NO" if trial.problems else "yes",
        )  # fmt: skip
    return table


def corpus_statuses(trials: Sequence[chaos.Trial]) -> list[str]:
    """Statuses that occur, in alphabetical order."""
    return sorted({status for trial in trials for status in trial.counts})


@contextmanager
def _folder(path: str | None) -> Iterator[Path]:
    if path is not None:
        Path(path).mkdir(parents=True, exist_ok=True)
        yield Path(path).absolute()
        return
    with tempfile.TemporaryDirectory(prefix="jocr-chaos-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


if __name__ == "__main__":
    main(ChaosRecipe, run, __doc__)
