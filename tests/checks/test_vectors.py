"""The recorded verdicts of the benchmark's own scorer, reproduced to the last one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jocr.checks import load_checks, parse_check, run_checks
from jocr.checks.boxes import find_browser

BACKENDS = ["mathml", pytest.param("boxes", marks=pytest.mark.slow)]


def _need(backend: str) -> None:
    if backend == "boxes":
        pytest.importorskip("playwright")
        if find_browser() is None:
            pytest.skip("no Chromium")


@pytest.mark.parametrize("math", BACKENDS)
def test_every_vector(shared_data: Path, math: str) -> None:
    _need(math)
    lines = (shared_data / "documents/golden/olmocr_bench_vectors.jsonl").read_text("utf-8").splitlines()
    vectors = [json.loads(line) for line in lines]
    wrong = [v for v in vectors if run_checks([parse_check(v["test"])], v["md"], math=math)[0].passed != v["expected"]]
    assert len(vectors) == 85
    assert wrong == []


@pytest.mark.parametrize("math", BACKENDS)
def test_every_real_verdict(shared_data: Path, math: str) -> None:
    _need(math)
    root = shared_data / "documents/olmocr_bench"
    lines = (root / "expected_verdicts.jsonl").read_text("utf-8").splitlines()
    expected = {record["id"]: record["passed"] for record in map(json.loads, lines)}
    checks = load_checks(root / "tests.jsonl")
    assert len(checks) == len(expected) == 69
    for check in checks:
        stem = f"{check.pdf.removesuffix('.pdf')}_pg{check.page}_repeat1.md"
        text = (root / "pred_olmocr_pipeline" / stem).read_text("utf-8")
        assert run_checks([check], text, math=math)[0].passed is expected[check.id], check
