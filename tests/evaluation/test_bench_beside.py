"""The row of vLLM in the bench of the published size: a reason where there is no figure, the figure where there is."""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from typing import Any

import pytest

from jocr.evaluation import bench_beside


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vllm is installed here")
def test_without_vllm_the_row_says_so() -> None:
    found = bench_beside.vllm_row()
    assert found["value"] is None
    assert "not installed" in found["note"]


def test_a_process_that_fails_gives_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_beside, "find_spec", lambda name: True)
    monkeypatch.setattr(bench_beside.sys, "executable", "/bin/false")
    found = bench_beside.vllm_row()
    assert found["value"] is None
    assert found["note"] == "not measured: it said nothing"


def test_the_figure_is_the_one_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        path = command[command.index("--json") + 1]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"table_8": [{"tokens_per_second": 12.5}]}, file)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(bench_beside, "find_spec", lambda name: True)
    monkeypatch.setattr(bench_beside.subprocess, "run", run)
    assert bench_beside.vllm_row()["value"] == 12.5
