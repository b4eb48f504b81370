"""``jocr bench decode --engine vllm``: tables, JSON, and this machine's depth for each number of pages at once.

``python -m jocr.evaluation.bench_vllm`` takes depths, numbers of pages at once and output length as options.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jocr.decoding import vllm_load
from jocr.decoding.vllm_bench import Bench, SpeedRow, dummy_checkpoint, mode_name
from jocr.decoding.vllm_depth import save_table, table_path
from jocr.decoding.vllm_options import version
from jocr.evaluation.engines import drawn_pages
from jocr.model.hub import resolve_checkpoint, revision
from jocr.provenance import collect

MAX_TOKENS = 1024  # room for any output length that is asked for


def run(*, json_path: Path | None = None, published_size: bool = False, model: str = "nano", pages: int = 4,
        depths: Sequence[int] = (0, 1, 2, 3), concurrencies: Sequence[int] = (1, 8, 32, 64),
        tokens: int | None = None, modes: Sequence[bool] = (True, False)) -> int:  # fmt: skip
    """Measure, print both tables, write JSON where asked, and store the depth table. Returns an exit code.

    Args:
        published_size: random bf16 weights at the published size instead of ``model``.
        pages: different pages that are decoded, every kind by turns.
        tokens: output length of every page; None for 256 on CUDA and 48 on a CPU.
        modes: True for eager, False for graphs (CUDA) or compiled (CPU).

    Raises:
        EngineError: vLLM is not installed.
    """
    console, release, device = Console(), version(), vllm_load.vllm_device("auto")
    length = tokens or (256 if device == "cuda" else 48)
    failed: dict[str, str] = {}
    inputs = drawn_pages(pages, MAX_TOKENS)
    with tempfile.TemporaryDirectory() as scratch:
        if published_size:
            checkpoint, draft = dummy_checkpoint(Path(scratch) / "published")
            bench = Bench(checkpoint, inputs, dtype="bfloat16", load_format="dummy", draft=draft,
                          report=console.print)  # fmt: skip
        else:
            checkpoint = resolve_checkpoint(model)
            dtype = "bfloat16" if device == "cuda" else "float32"
            bench = Bench(checkpoint, inputs, dtype=dtype, report=console.print)
        for eager in modes:
            try:
                bench.measure(depths, concurrencies, eager=eager, tokens=length, rounds=2 if device == "cuda" else 1)
            except Exception as error:  # a mode this machine cannot run: the file says so, and what was measured stands
                failed[mode_name(eager)] = f"{type(error).__name__}: {error}"
                console.print(f"[bold]{mode_name(eager)} not measured[/]: {failed[mode_name(eager)]}")
    eight, seven = bench.alone, bench.together
    console.print(_table("table 8: one page at a time", eight), _table("table 7: pages at once", seven))
    tables = {} if published_size else store_depths(seven, revision(checkpoint), console)
    if json_path is not None:
        rows: dict[str, Any] = {"table_8": [asdict(r) for r in eight], "table_7": [asdict(r) for r in seven]}
        found = {"provenance": collect(model=model), "vllm": release, "published_size": published_size, **rows,
                 "starts": [asdict(r) for r in bench.starts], "depth_by_pages_at_once": tables,
                 "not_measured": failed}  # fmt: skip
        json_path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if eight else 1


def store_depths(rows: Sequence[SpeedRow], stamp: str, console: Console) -> dict[str, dict[int, int]]:
    """For each mode the fastest depth of every concurrency, stored where ``load_decoder`` looks; returned by mode."""
    tables, device = {}, vllm_load.device_name()
    for mode in dict.fromkeys(row.mode for row in rows):
        speeds = {(r.concurrency, r.depth): r.tokens_per_second for r in rows if r.mode == mode}
        tables[mode] = save_table(table_path(device, stamp, mode == "eager"), speeds)
        console.print(f"depth by pages at once on {device}, {mode}: {tables[mode]}")
    return tables


def _table(title: str, rows: Sequence[SpeedRow]) -> Table:
    table = Table(title=title, title_justify="left")
    names = "mode k at-once pages tokens/page tok/s tok/cpu-s pages/s tau conditional c cpu-c x cpu-x"
    for name in names.split():
        table.add_column(name, justify="right")
    for r in rows:
        kept = " ".join(f"{a:.2f}" for a in r.conditional) or "-"
        table.add_row(
            r.mode, str(r.depth), str(r.concurrency), str(r.pages), f"{r.tokens_per_page:.0f}",
            f"{r.tokens_per_second:.1f}", _number(r.tokens_per_cpu_second), f"{r.pages_per_second:.3f}",
            _number(r.tau), kept, _number(r.step_cost), _number(r.cpu_step_cost), _number(r.speedup),
            _number(r.cpu_speedup),
        )  # fmt: skip
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def main(argv: Sequence[str] | None = None) -> int:
    """The measurement with every setting open."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="nano")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--published-size", action="store_true", help="random bf16 weights instead of a model")
    parser.add_argument("--depths", default="0,1,2,3")
    parser.add_argument("--at-once", default="1,8,32,64")
    parser.add_argument("--pages", type=int, default=4)
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--modes", default="eager,graphs")
    args = parser.parse_args(argv)
    depths, at_once = ([int(n) for n in text.split(",")] for text in (args.depths, args.at_once))
    modes = [mode == "eager" for mode in args.modes.split(",")]
    return run(json_path=args.json, published_size=args.published_size, model=args.model, pages=args.pages,
               depths=depths, concurrencies=at_once, tokens=args.tokens, modes=modes)  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
