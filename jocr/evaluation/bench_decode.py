"""``jocr bench decode``: greedy against speculative decoding on held-out synthetic pages, or at the published size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jocr.decoding.bench import BenchRow, Depth, measure, use_threads
from jocr.decoding.engine import TorchDecoder
from jocr.decoding.load import Parts, load_parts
from jocr.provenance import collect
from jocr.records import PageInput

FIRST_SEED = 950_000_000  # apart from the pages that reading is scored on
MAX_TOKENS = 1024


def run(*, json_path: str | Path | None = None, published_size: bool = False, model: str = "nano", pages: int = 12,
        repeats: int = 3, batches: Sequence[int] = (1, 8), threads: int | None = 1,
        dtype: str | None = None) -> int:  # fmt: skip
    """Measure, print a table, write JSON where asked. Returns an exit code: 1 where speculation changed a token.

    Args:
        json_path: where the rows go, with commit, versions and hardware.
        published_size: random bf16 weights at the published size instead of ``model``.
        pages: held-out pages of each kind.
        repeats: alternating runs whose medians are kept.
        threads: threads within an operation for ``model``; the published size uses every core.
        dtype: of ``model``; None for what suits this machine.
    """
    console = Console(stderr=False)
    if published_size:
        from jocr.decoding.bench_published import measure_published
        from jocr.evaluation.bench_beside import vllm_row

        beside = vllm_row()  # first: the two do not fit into small machines together
        rows = [*measure_published(report=console.print), beside]
        console.print(_published_table(rows))
        _write(json_path, {"provenance": collect(), "rows": rows})
        return 0
    if threads is not None:
        use_threads(threads)
    parts = load_parts(model, dtype=dtype)
    kind = str(parts.model.model.norm.weight.dtype).removeprefix("torch.")
    console.print(f"{model} in {kind}")
    table_rows = nano_rows(parts, pages, repeats, batches, console)
    console.print(_table(table_rows))
    _write(json_path, {"provenance": collect(model=model), "dtype": kind, "rows": [asdict(row) for row in table_rows]})
    return 0 if all(row.identical for row in table_rows) else 1


def nano_rows(parts: Parts, pages: int, repeats: int, batches: Sequence[int], console: Console) -> list[BenchRow]:
    """Every depth, batch size and kind of page for one checkpoint."""

    def make(depth: Depth, batch: int) -> TorchDecoder:
        return parts.decoder(depth=depth, batch=batch)

    return measure(make, held_out(pages), name=parts.name, batches=batches, repeats=repeats, report=console.print)


def held_out(pages: int) -> dict[str, list[PageInput]]:
    """The same pages in every run: ``pages`` of each kind."""
    from jocr.evaluation.reading import SETS, inputs_of, pages_of  # the published size does without its packages

    return {s.name: list(inputs_of(pages_of(s, pages, FIRST_SEED), MAX_TOKENS)) for s in SETS}


def _table(rows: Sequence[BenchRow]) -> Table:
    table = Table(title="decode: medians of alternating runs", title_justify="left")
    columns = "batch depth pages-of tok/s rounds-tok/s tau acceptance c identical speedup cpu-speedup rounds-speedup"
    for name in columns.split():
        table.add_column(name, justify="left" if name == "pages-of" else "right")
    for r in rows:
        table.add_row(
            str(r.batch), r.depth, r.kind, f"{r.tokens_per_second:.0f}", f"{r.decode_tokens_per_second:.0f}",
            _number(r.tau), " ".join(f"{a:.2f}" for a in r.acceptance) or "-", _number(r.step_cost),
            "yes" if r.identical else "NO", f"{r.speedup:.2f}", f"{r.cpu_speedup:.2f}", f"{r.decode_speedup:.2f}",
        )  # fmt: skip
    return table


def _published_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="published size, random bf16 weights", title_justify="left")
    for name in ("what", "value", "unit", "note"):
        table.add_column(name)
    for row in rows:
        value = row["value"]
        table.add_row(row["what"], f"{value:.4g}" if value is not None else "-", row["unit"], row["note"])
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _write(path: str | Path | None, data: dict[str, Any]) -> None:
    if path is not None:
        Path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
