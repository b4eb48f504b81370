"""``jocr bench decode --engine vllm``: tables, JSON, and this machine's depth for each number of pages at once."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jocr.decoding import vllm_load
from jocr.decoding.vllm_bench import Bench, SpeedRow, dummy_checkpoint
from jocr.decoding.vllm_depth import save_table, table_path
from jocr.decoding.vllm_options import version
from jocr.evaluation.bench_decode import held_out
from jocr.model.hub import resolve_checkpoint, revision
from jocr.provenance import collect
from jocr.records import PageInput


def run(*, json_path: Path | None = None, published_size: bool = False, model: str = "nano", pages: int = 4,
        depths: Sequence[int] = (0, 1, 2, 3), concurrencies: Sequence[int] = (1, 8, 32, 64),
        tokens: int = 256) -> int:  # fmt: skip
    """Measure, print both tables, write JSON where asked, and store the depth table. Returns an exit code.

    Args:
        published_size: random bf16 weights at the published size instead of ``model``.
        tokens: output length of every page of table 7.

    Raises:
        EngineError: vLLM is not installed.
    """
    console, release = Console(), version()
    with tempfile.TemporaryDirectory() as scratch:
        if published_size:
            checkpoint, draft = dummy_checkpoint(Path(scratch) / "published")
            bench = Bench(checkpoint, _pages(pages), dtype="bfloat16", load_format="dummy", draft=draft,
                          report=console.print)  # fmt: skip
        else:
            checkpoint = resolve_checkpoint(model)
            dtype = "bfloat16" if vllm_load.vllm_device("auto") == "cuda" else "float32"
            bench = Bench(checkpoint, _pages(pages), dtype=dtype, report=console.print)
        modes = (True, False) if vllm_load.vllm_device("auto") == "cuda" else (True,)
        eight = [row for eager in modes for row in bench.depths(depths, eager)]
        seven = [row for k in depths for row in bench.concurrencies(concurrencies, k, modes[-1], tokens)]
    console.print(_table("table 8: one page at a time", eight), _table("table 7: pages at once", seven))
    if not published_size:
        device = vllm_load.device_name()
        speeds = {(row.concurrency, row.depth): row.tokens_per_second for row in seven}
        stored = save_table(table_path(device, revision(checkpoint), modes[-1]), speeds)
        console.print(f"depth by pages at once on {device}: {stored}")
    if json_path is not None:
        rows: dict[str, Any] = {"table_8": [asdict(r) for r in eight], "table_7": [asdict(r) for r in seven]}
        found = {"provenance": collect(model=model), "vllm": release, "published_size": published_size, **rows}
        json_path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def _pages(count: int) -> list[PageInput]:
    """Of every kind of held-out page ``count``."""
    return [page for pages in held_out(count).values() for page in pages][: max(count, 1)]


def _table(title: str, rows: Sequence[SpeedRow]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("mode", "k", "at once", "pages", "tokens/page", "tok/s", "pages/s", "tau", "conditional", "c", "x"):
        table.add_column(name, justify="right")
    for r in rows:
        kept = " ".join(f"{a:.2f}" for a in r.conditional) or "-"
        table.add_row(
            r.mode, str(r.depth), str(r.concurrency), str(r.pages), f"{r.tokens_per_page:.0f}",
            f"{r.tokens_per_second:.1f}", f"{r.pages_per_second:.3f}", _number(r.tau), kept, _number(r.step_cost),
            _number(r.speedup),
        )  # fmt: skip
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
