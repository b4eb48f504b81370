"""``jocr score vectors``: every recorded answer of the official scorers, and what happens on a difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jocr.errors import ConfigError
from jocr.evaluation.vectors import run, same

TEST = {"type": "present", "text": "Hello", "pdf": "a.pdf", "page": 1, "id": "v1"}


def write(path: Path, *vectors: Any) -> Path:
    path.write_text("".join(json.dumps(v) + "\n" for v in vectors), "utf-8")
    return path


def test_all_golden_vectors(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted((shared_data / "documents/golden").glob("*.jsonl"))
    assert run(files) == 0
    printed = capsys.readouterr().out
    assert "olmocr_bench_vectors.jsonl: 85 of 85" in printed
    assert "omnidocbench_v15_vectors.jsonl: 51 of 51" in printed


def test_a_difference_is_printed_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = {"test": TEST, "md": "Hello", "expected": True, "note": "right"}
    file = write(tmp_path / "v.jsonl", good, {**good, "md": "Bye", "note": "wrong"})
    assert run([file]) == 1
    printed = capsys.readouterr().out
    assert "v.jsonl:2: present v1 (wrong): expected True, got False" in printed
    assert "v.jsonl: 1 of 2" in printed


def test_unscored_is_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = {**TEST, "type": "math", "math": "xx"}
    del test["text"]
    assert run([write(tmp_path / "v.jsonl", {"test": test, "md": f"$${'x' * 2000}$$", "expected": False})]) == 1
    assert "unscored" in capsys.readouterr().out


@pytest.mark.parametrize(
    "vector",
    [
        {"md": "a", "expected": True},
        {"fn": "no such function", "input": "a", "expected": "a"},
        {"test": TEST, "md": "Hello"},
        {"test": {**TEST, "type": "telepathy"}, "md": "", "expected": True},
        ["not", "an", "object"],
    ],
)
def test_a_line_of_no_known_form_is_refused(vector: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        run([write(tmp_path / "v.jsonl", vector)])


def test_unreadable_or_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="none"):
        run([tmp_path / "none.jsonl"])
    with pytest.raises(ConfigError, match="no vectors"):
        run([write(tmp_path / "empty.jsonl")])


def test_sameness() -> None:
    assert same(0.8333330001, 0.833333)
    assert not same(0.8334, 0.833333)
    assert not same(1, True)
    assert same({"a": [1.0, "x"]}, {"a": [1, "x"]})
    assert not same({"a": 1}, {"a": 1, "b": 2})
    assert not same([1], [1, 2])
