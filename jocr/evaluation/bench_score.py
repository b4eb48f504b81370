"""``jocr bench score``: scoring speed against the reference implementations, medians of one run.

Each row gives wall and CPU time (all threads of the process) of one call. Wall time suffers from whatever else runs on
the machine, so speed-ups are ratios of CPU time: both sides compute and wait for nothing. olmOCR-Bench's own scorer
runs in an interpreter of its own, named by ``JOCR_OLMOCR_PYTHON`` (a venv with olmocr==0.4.27 and the few packages its
tests need).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jocr.errors import ConfigError
from jocr.evaluation import bench_inputs

OLMOCR_PYTHON = "JOCR_OLMOCR_PYTHON"
Row = dict[str, Any]

_THEIRS = """
import json, sys, time
from olmocr.bench.tests import load_tests
folder = sys.argv[1]
times, verdicts = [], {}
for _ in range(int(sys.argv[2])):
    begin, cpu = time.perf_counter(), time.process_time()
    for test in load_tests(folder + "/tests.jsonl"):
        name = test.pdf[:-4] + "_pg" + str(test.page) + "_repeat1.md"
        with open(folder + "/pred/" + name, encoding="utf-8") as file:
            verdicts[test.id] = bool(test.run(file.read())[0])
    times.append((time.perf_counter() - begin, time.process_time() - cpu))
json.dump([times, verdicts], sys.stdout)
"""


def measure(call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median (wall, CPU) seconds of ``repeats`` calls."""
    times = []
    for _ in range(repeats):
        begin, cpu = time.perf_counter(), time.process_time()
        call()
        times.append((time.perf_counter() - begin, time.process_time() - cpu))
    return statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)


def bench_teds(repeats: int = 5) -> Row:
    """TEDS of a 30 x 10 table, ours against apted's; the values must agree."""
    import random

    from jocr.markup.trees import teds, warm_up

    cells = bench_inputs.table(random.Random(1), 30, 10)
    pred, ref = bench_inputs.html(bench_inputs.misread(random.Random(2), cells)), bench_inputs.html(cells)
    warm_up()
    value = teds(pred, ref)
    ours = measure(lambda: teds(pred, ref), 4 * repeats)
    row: Row = {"name": "teds 30x10", "wall_ms": ours[0] * 1e3, "cpu_ms": ours[1] * 1e3, "target": ">= 50 x apted"}
    try:
        from jocr.evaluation.apted_teds import teds_by_apted
    except ImportError:
        return row | {"note": "apted is not installed (pip install 'jocr[dev]'): nothing to compare with"}
    theirs = measure(lambda: teds_by_apted(pred, ref), repeats)
    if abs(teds_by_apted(pred, ref) - value) > 1e-9:
        raise AssertionError("TEDS differs from apted's value")
    speedup = theirs[1] / ours[1]
    return row | {
        "reference_wall_ms": theirs[0] * 1e3,
        "reference_cpu_ms": theirs[1] * 1e3,
        "speedup": speedup,
        "met": speedup >= 50,
    }


def bench_reward(pages: int = 30) -> list[Row]:
    """The full reward of pages never seen before, one core: the first rollout of a sample, which also parses the
    reference, and a later one, which finds the reference's views in the caches (nothing of the prediction is kept)."""
    from jocr.rewards.page import Reward, score_page

    score_page(bench_inputs.reward_page(0).prediction, bench_inputs.reward_page(0).sample)  # start KaTeX, load kernels
    todo = [bench_inputs.reward_page(i) for i in range(1, pages + 1)]
    rewards: list[Reward] = []
    times: dict[str, list[tuple[float, float]]] = {"first rollout": [], "later rollout": []}
    for page in todo:
        for name, prediction in (("first rollout", page.prediction), ("later rollout", page.second)):
            times[name].append(
                measure(lambda p=prediction, s=page.sample: rewards.append(score_page(p, s)), 1)  # type: ignore[misc]
            )
    unscored = [r.unscored_reason for r in rewards if r.value is None]
    rows = []
    for name, both in times.items():
        wall, cpu = (statistics.median(t[k] for t in both) for k in (0, 1))
        row: Row = {"name": f"full reward, {name}", "wall_ms": wall * 1e3, "cpu_ms": cpu * 1e3}
        row |= {"target": "< 10 ms a core", "met": min(wall, cpu) < 0.010 and not unscored}
        rows.append(row | {"unscored": unscored, "pages": pages})
    return rows


def bench_text_tests(pages: int = 40, checks: int = 6, repeats: int = 5) -> Row:
    """olmOCR-Bench's text tests over one folder: load the JSONL, read each page, give every verdict."""
    row: Row = {"name": "olmOCR-Bench text tests", "target": ">= 5 x olmocr", "tests": pages * checks}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench_inputs.write_benchmark(folder / "bench", pages, checks)
        verdicts: dict[str, bool] = {}
        wall, cpu = measure(lambda: verdicts.update(_our_verdicts(folder / "bench")), repeats)
        row |= {"wall_ms": wall * 1e3, "cpu_ms": cpu * 1e3}
        python = os.environ.get(OLMOCR_PYTHON)
        if not python:
            return row | {"note": f"set {OLMOCR_PYTHON} to the python of a venv with olmocr==0.4.27 to compare"}
        times, theirs = _their_verdicts(python, folder / "bench", repeats)
    their_wall, their_cpu = (statistics.median(t[i] for t in times) for i in (0, 1))
    differing = sorted(i for i in theirs if theirs[i] != verdicts.get(i))
    row |= {"reference_wall_ms": their_wall * 1e3, "reference_cpu_ms": their_cpu * 1e3}
    row |= {"speedup": their_cpu / cpu, "differing_verdicts": differing}
    return row | {"met": row["speedup"] >= 5 and not differing and len(theirs) == len(verdicts)}


def _our_verdicts(folder: Path) -> dict[str, bool]:
    from jocr.checks import PageText, load_checks

    pages: dict[str, PageText] = {}
    verdicts = {}
    for check in load_checks(folder / "tests.jsonl"):
        name = f"{check.pdf[:-4]}_pg{check.page}_repeat1.md"
        if name not in pages:
            pages[name] = PageText((folder / "pred" / name).read_text("utf-8"))
        verdicts[check.id] = check.run(pages[name]).passed
    return verdicts


def _their_verdicts(python: str, folder: Path, repeats: int) -> tuple[list[list[float]], dict[str, bool]]:
    command = [python, "-c", _THEIRS, str(folder), str(repeats)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise ConfigError(f"olmocr's scorer does not run in {python}: {done.stderr.strip().splitlines()[-1:]}")
    times, verdicts = json.loads(done.stdout)
    return times, verdicts


def bench_loops(repeats: int = 5) -> list[Row]:
    """Time of the loop detector on 0.25 to 2 MB, and how it grows."""
    from jocr.markup.repeats import find_loop

    text = bench_inputs.long_text(2_000_000)
    rows: list[Row] = []
    for chars in (250_000, 500_000, 1_000_000, 2_000_000):
        wall, cpu = measure(lambda n=chars: find_loop(text[:n]), repeats)  # type: ignore[misc]
        row: Row = {"name": f"loop detector {chars / 1e6:g} MB", "wall_ms": wall * 1e3, "cpu_ms": cpu * 1e3}
        if rows:
            row["growth"] = cpu * 1e3 / rows[-1]["cpu_ms"]  # for twice the text
        if chars == 1_000_000:
            row |= {"target": "< 200 ms", "met": min(wall, cpu) < 0.2}
        rows.append(row)
    return rows


def run(json_path: str | Path | None = None) -> int:
    """Measure, print a table, and write the rows with their provenance to ``json_path``. Returns 0."""
    from jocr.provenance import collect

    rows = [bench_teds(), *bench_reward(), bench_text_tests(), *bench_loops()]
    print(f"{'what':<28}{'wall ms':>10}{'cpu ms':>10}{'reference':>11}{'speed-up':>10}{'growth':>8}  target")
    for row in rows:
        numbers = [row.get(k) for k in ("wall_ms", "cpu_ms", "reference_wall_ms", "speedup", "growth")]
        widths = (10, 10, 11, 10, 8)
        shown = "".join("".rjust(w) if v is None else f"{v:>{w}.2f}" for v, w in zip(numbers, widths, strict=True))
        verdict = {True: "met", False: "MISSED", None: ""}[row.get("met")]
        print(f"{row['name']:<28}{shown}  {row.get('target', '')} {verdict} {row.get('note', '')}".rstrip())
    load = os.getloadavg()[0]
    print(f"load average {load:.1f} on {os.cpu_count()} cores")
    if json_path is not None:
        out = {"rows": rows, "load_average": load, "provenance": collect(olmocr=os.environ.get(OLMOCR_PYTHON))}
        Path(json_path).write_text(json.dumps(out, indent=1) + "\n", "utf-8")
    return 0
