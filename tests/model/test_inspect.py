"""``jocr model inspect``: the lines of the published table."""

from __future__ import annotations

import pytest

from jocr.errors import CheckpointError
from jocr.model.inspect import run
from jocr.model.weights import save_checkpoint

from .tiny_model import PROCESSOR


def test_published_prints_the_table(shared_data, capsys) -> None:
    assert run("published") == 0
    table = (shared_data / "jina-ocr-v1.tensors.tsv").read_text()
    assert capsys.readouterr().out == "".join(row for row in table.splitlines(keepends=True) if not row.startswith("#"))


def test_directory_is_read_from_its_headers(tmp_path, tiny, tokenizer, capsys) -> None:
    save_checkpoint(tiny, tokenizer, PROCESSOR, tmp_path, shard_bytes=100_000)
    run(str(tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert lines == sorted(lines)
    assert len(lines) == len(tiny.state_dict())
    assert "model.layers.1.mlp.experts.0.gate_proj.weight\t32x64" in lines
    assert "model.image_newline\t64" in lines


def test_bad_paths(tmp_path) -> None:
    with pytest.raises(CheckpointError, match="neither"):
        run(str(tmp_path / "nowhere"))
    with pytest.raises(CheckpointError, match="neither"):
        run(str(tmp_path))
