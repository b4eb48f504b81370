"""``python -m jocr.synth`` and the instructions."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from PIL import Image

from jocr.synth.__main__ import main
from jocr.synth.instructions import CHINESE, DEFAULT, ENGLISH, instruction


def test_samples_are_written(tmp_path: Path) -> None:
    assert main([str(tmp_path / "out"), "--n", "3", "--kind", "table", "--size", "256x192", "--seed", "5"]) == 0
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert names == ["checks.jsonl", *(f"table_train_{s}.{e}" for s in (5, 6, 7) for e in ("md", "png"))]
    with Image.open(tmp_path / "out" / "table_train_5.png") as image:
        assert image.size == (256, 192)
    tests = [json.loads(line) for line in (tmp_path / "out" / "checks.jsonl").read_text("utf-8").splitlines()]
    assert {test["pdf"] for test in tests} <= {f"table_train_{s}.pdf" for s in (5, 6, 7)}


@pytest.mark.parametrize("size", ["big", "1x2x3", "512x"])
def test_a_bad_size_is_bad_usage(size: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([str(tmp_path), "--size", size])
    assert stop.value.code == 2
    assert "--size" in capsys.readouterr().err


def test_a_tiny_page_is_bad_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--size", "20"]) == 2
    assert "too small" in capsys.readouterr().err


def test_instructions() -> None:
    rng = random.Random(0)
    drawn = [instruction(rng) for _ in range(400)]
    assert 0.6 < drawn.count(DEFAULT) / 400 < 0.8
    assert set(drawn) == {DEFAULT, *ENGLISH, *CHINESE}
