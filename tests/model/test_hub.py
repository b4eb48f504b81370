"""What config.json means, where a checkpoint lies, and what its content is called."""

from __future__ import annotations

import os

import pytest
import torch

from jocr.errors import CheckpointError
from jocr.model.config import OcrConfig
from jocr.model.hub import resolve_checkpoint, revision
from jocr.model.shards import SINGLE, read_index
from jocr.model.weights import load_model, save_checkpoint

from .tiny_model import PROCESSOR, TINY


def test_revision_follows_content_only(saved, tmp_path, tiny, tokenizer) -> None:
    save_checkpoint(tiny, tokenizer, PROCESSOR, tmp_path / "again")
    assert revision(saved) == revision(tmp_path / "again")
    with torch.no_grad():
        tiny.model.norm.weight[0] += 1
    save_checkpoint(tiny, tokenizer, PROCESSOR, tmp_path / "again")
    assert revision(saved) != revision(tmp_path / "again")


def test_files_of_the_hub_cache_are_known_by_their_name(saved, tmp_path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    revisions = []
    for name in ("a" * 64, "b" * 64):  # a blob's name is its SHA-256: the content is not read again
        (blobs / name).write_bytes((saved / SINGLE).read_bytes())
        (snapshot / SINGLE).unlink(missing_ok=True)
        (snapshot / SINGLE).symlink_to(blobs / name)
        (snapshot / "config.json").write_bytes((saved / "config.json").read_bytes())
        os.utime(blobs / name, ns=(len(revisions), len(revisions)))
        revisions.append(revision(snapshot))
    assert revisions[0] != revisions[1]


def test_nano_is_package_data() -> None:
    path = resolve_checkpoint("nano")
    assert set(read_index(path)) == set(load_model(path).state_dict())


def test_rope_theta_and_precedence() -> None:
    raw = TINY.to_dict()
    raw["language_config"] = {**raw["language_config"], "rope_theta": 5.0, "hidden_size": 7}
    assert OcrConfig.from_dict(raw) == TINY  # what stands on top wins
    for place in (raw, raw["language_config"]):
        del place["rope_theta"]
    assert OcrConfig.from_dict(raw).text.rope_theta == 10_000
    assert OcrConfig.from_dict(raw | {"rope_parameters": {"rope_theta": 3.0}}).text.rope_theta == 3.0


@pytest.mark.parametrize("change", [{"use_mla": True}, {"scoring_func": "sigmoid"}, {"tie_word_embeddings": True}])
def test_other_architectures_are_refused(change) -> None:
    with pytest.raises(CheckpointError, match=next(iter(change))):
        OcrConfig.from_dict(TINY.to_dict() | change)


def test_resolve(tmp_path, monkeypatch, capsys) -> None:
    assert resolve_checkpoint(str(tmp_path)) == tmp_path
    (tmp_path / "f").write_text("")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for bad in (str(tmp_path / "f"), "./nowhere", "nowhere", ""):
        with pytest.raises(CheckpointError):
            resolve_checkpoint(bad)
    assert capsys.readouterr().err == ""


def test_hub_id_comes_from_the_local_cache_with_its_licence(tmp_path, saved, monkeypatch, capsys) -> None:
    calls = []

    def snapshot(name, **more):
        calls.append((name, more.get("local_files_only", False)))
        if more.get("local_files_only"):
            return str(saved)
        raise AssertionError("a complete cache needs no download")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert resolve_checkpoint("jinaai/jina-ocr-v1") == saved
    assert calls == [("jinaai/jina-ocr-v1", True)]
    assert "CC BY-NC 4.0" in capsys.readouterr().err
    (saved / SINGLE).unlink()
    with pytest.raises(CheckpointError, match="cannot be downloaded"):
        resolve_checkpoint("jinaai/jina-ocr-v1")
    assert len(calls) == 3
