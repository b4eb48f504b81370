"""Writes ``data/loops.jsonl``: texts that loop and texts that repeat themselves for good reasons, labelled by hand.

Each line is ``{"text", "loop", "why", "set"}``. ``python tests/markup/make_loops.py`` writes the file anew: same seeds,
same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import held_out_cases
import honest_cases
import loop_cases

OUT = Path(__file__).parent / "data" / "loops.jsonl"


def rows() -> Iterator[dict[str, Any]]:
    sources = (
        (loop_cases.loops(), True, "first"),
        (honest_cases.honest(), False, "first"),
        (held_out_cases.loops(), True, "held-out"),
        (held_out_cases.honest(), False, "held-out"),
    )
    for cases, loop, name in sources:
        for text, why in cases:
            yield {"text": text, "loop": loop, "why": why, "set": name}


if __name__ == "__main__":
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows()), encoding="utf-8")
