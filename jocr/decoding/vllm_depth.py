"""How many tokens to draft under vLLM, by how many pages decode at once.

Speculation trades arithmetic for memory traffic, so it pays less the more pages share a step. The default table is
deliberately cautious: published figures for this model (L4, vLLM 0.20.1, batch 1) give 1.95x at depth 3 without CUDA
graphs and 1.17x at depth 1 with them; with many pages at once, no drafting. ``jocr bench decode --engine vllm``
measures this machine and stores its own table, which then wins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from jocr.model.split_draft import cache_root
from jocr.storage import atomic_write

Table = Mapping[int, int]
"""concurrency -> depth; a concurrency between two rows takes the row below it."""

GRAPHS: Table = {1: 1, 8: 1, 32: 0}
EAGER: Table = {1: 3, 8: 3, 32: 1, 64: 0}
CPU: Table = {1: 0}


def pick_depth(concurrency: int, table: Table) -> int:
    """The depth of the largest row not above ``concurrency``."""
    rows = [row for row in table if row <= concurrency]
    return table[max(rows)] if rows else table[min(table)]


def default_table(device: str, eager: bool) -> Table:
    if device == "cpu":
        return CPU
    return EAGER if eager else GRAPHS


def table_path(device_name: str, revision: str, eager: bool, cache: Path | None = None) -> Path:
    """Where the table measured for a device, a checkpoint and a mode lies."""
    device = re.sub(r"[^A-Za-z0-9]+", "-", device_name).strip("-").lower()
    return (cache or cache_root()) / "depths" / f"{device}-{revision}-{'eager' if eager else 'graphs'}.json"


def load_table(path: Path) -> Table | None:
    """A measured table, or None where there is none (or it cannot be read)."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return {int(row): int(depth) for row, depth in raw.items()} or None
    except (OSError, ValueError, AttributeError):
        return None


def save_table(path: Path, speeds: Mapping[tuple[int, int], float]) -> dict[int, int]:
    """Store the fastest depth of each concurrency.

    Args:
        speeds: (concurrency, depth) -> tokens per second, as measured.
    """
    rows = sorted({concurrency for concurrency, _ in speeds})
    table = {row: max((k for c, k in speeds if c == row), key=lambda k: speeds[row, k]) for row in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(str(path), json.dumps(table).encode())
    return table
