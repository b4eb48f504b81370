"""Checkpoints: round trip, layout, precise complaints, duplicates, memory."""

from __future__ import annotations

import json
import logging
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from jocr.errors import CheckpointError
from jocr.model.config import OcrConfig
from jocr.model.hub import revision
from jocr.model.ocr import OcrModel
from jocr.model.shards import INDEX, SINGLE, read_header
from jocr.model.weights import load_model, save_checkpoint
from jocr.pages.tiles import ProcessorConfig

from .tiny_model import PROCESSOR, TINY


def change(directory, edit) -> None:
    tensors = load_file(directory / SINGLE)
    edit(tensors)
    save_file({name: t.contiguous() for name, t in tensors.items()}, directory / SINGLE)


def same(a: OcrModel, b: OcrModel) -> bool:
    mine, theirs = a.state_dict(), b.state_dict()
    return mine.keys() == theirs.keys() and all(torch.equal(mine[k], theirs[k]) for k in mine)


def test_published_names_and_shapes(shared_data) -> None:
    rows = (shared_data / "jina-ocr-v1.tensors.tsv").read_text().splitlines()
    want = dict(row.split("\t") for row in rows if not row.startswith("#"))
    with torch.device("meta"):
        state = OcrModel(OcrConfig()).state_dict()
    assert {name: "x".join(map(str, t.shape)) for name, t in state.items()} == want
    assert len(want) == 2722
    assert sum(t.numel() for t in state.values()) == 3_372_238_080


def test_round_trip(saved, tiny) -> None:
    others = {"generation_config.json", "processor_config.json", "tokenizer.json", "tokenizer_config.json"}
    assert {p.name for p in saved.iterdir()} == {"config.json", SINGLE, *others}
    assert same(load_model(saved), tiny)
    assert ProcessorConfig.load(saved) == PROCESSOR
    assert OcrConfig.load(saved) == TINY
    assert not any(p.name.startswith(".") for p in saved.parent.iterdir())


def test_the_file_is_what_the_library_reads(saved, tiny) -> None:
    state = tiny.state_dict()
    with safe_open(saved / SINGLE, "pt") as file:
        assert file.metadata() == {"format": "pt"}
        assert set(file.keys()) == set(state)
        assert all(torch.equal(file.get_tensor(name), state[name]) for name in state)


def test_sharded_with_index(tmp_path, tiny, tokenizer) -> None:
    save_checkpoint(tiny, tokenizer, PROCESSOR, tmp_path, shard_bytes=100_000)
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 2
    index = json.loads((tmp_path / INDEX).read_text())
    assert set(index["weight_map"]) == set(tiny.state_dict())
    assert same(load_model(tmp_path), tiny)
    shards[1].unlink()
    with pytest.raises(CheckpointError, match=shards[1].name):
        load_model(tmp_path)


def test_bf16_on_disk_fp32_in_memory_and_back(tmp_path, tiny, tokenizer) -> None:
    half = tiny.to(torch.bfloat16)
    save_checkpoint(half, tokenizer, PROCESSOR, tmp_path)
    assert read_header(tmp_path / SINGLE)["lm_head.weight"].dtype == torch.bfloat16
    assert json.loads((tmp_path / "config.json").read_text())["torch_dtype"] == "bfloat16"
    wide = load_model(tmp_path)
    assert wide.lm_head.weight.dtype == torch.float32
    assert same(wide.to(torch.bfloat16), half)


def test_all_problems_are_listed_at_once(saved) -> None:
    def edit(t) -> None:
        del t["model.norm.weight"], t["model.layers.1.mlp.experts.3.up_proj.weight"]
        t["model.extra"] = torch.zeros(2)
        t["lm_head.weight"] = torch.zeros(5, 6)

    change(saved, edit)
    with pytest.raises(CheckpointError) as error:
        load_model(saved)
    for line in (
        "missing: model.norm.weight (64,)",
        "missing: model.layers.1.mlp.experts.3.up_proj.weight (32, 64)",
        "unexpected: model.extra (2,)",
        "shape: lm_head.weight is (5, 6), expected (268, 64)",
    ):
        assert line in str(error.value)


@pytest.mark.parametrize("content", [b"", b"12345", struct.pack("<Q", 1 << 40) + b"{}", struct.pack("<Q", 4) + b"nope"])
def test_damaged_files(saved, content: bytes) -> None:
    (saved / SINGLE).write_bytes(content)
    with pytest.raises(CheckpointError, match=SINGLE):
        load_model(saved)


def test_truncated_file(saved) -> None:
    raw = (saved / SINGLE).read_bytes()
    (saved / SINGLE).write_bytes(raw[:-1])
    with pytest.raises(CheckpointError, match="truncated"):
        load_model(saved)


def test_no_weights_no_pickle_no_config(saved, tmp_path) -> None:
    (saved / SINGLE).rename(saved / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="only safetensors"):
        load_model(saved)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load_model(tmp_path)


def test_index_cannot_leave_its_directory(saved) -> None:
    (saved / INDEX).write_text(json.dumps({"weight_map": {"a": "../other.safetensors"}}))
    with pytest.raises(CheckpointError, match="outside"):
        load_model(saved)


DUPLICATES = {
    "mtp_embed_tokens.weight": "model.embed_tokens.weight",
    "mtp_module.heads.0.shared_head.norm.weight": "model.norm.weight",
    "mtp_module.heads.0.shared_head.head.weight": "lm_head.weight",
    "mtp_module.shared_head.weight": "lm_head.weight",
}


def test_identical_duplicates_are_dropped(saved, tiny) -> None:
    change(saved, lambda t: t.update({name: t[original].clone() for name, original in DUPLICATES.items()}))
    assert same(load_model(saved), tiny)


def test_differing_duplicates_are_used_by_the_draft_head(saved, tiny, tokenizer, caplog) -> None:
    names = list(DUPLICATES)[:3]
    change(saved, lambda t: t.update({name: t[DUPLICATES[name]] * 2 for name in names}))
    with caplog.at_level(logging.WARNING):
        model = load_model(saved)
    assert all(any(name in message for message in caplog.messages) for name in names)
    ids = torch.arange(5)
    state = torch.randn(1, 5, 64)
    embedded = tiny.embed(ids)[None]
    positions = ids[None]
    from jocr.model.decoder import causal

    assert torch.equal(model.embed(ids), tiny.embed(ids))
    assert torch.equal(model.draft_embed(ids), 2 * tiny.draft_embed(ids))
    mine = model.draft(embedded, state, positions, 5, causal)
    theirs = tiny.draft(embedded, state, positions, 5, causal)
    torch.testing.assert_close(mine, 2 * theirs)
    torch.testing.assert_close(model.draft_logits(state), 2 * tiny.draft_logits(state))
    save_checkpoint(model, tokenizer, PROCESSOR, saved)
    assert same(load_model(saved), model)


def test_misshapen_duplicate_is_an_error(saved) -> None:
    change(saved, lambda t: t.update({"mtp_embed_tokens.weight": torch.zeros(3, 3)}))
    with pytest.raises(CheckpointError, match=r"mtp_embed_tokens\.weight is \(3, 3\)"):
        load_model(saved)


@pytest.mark.parametrize("heads", [0, None])
def test_checkpoint_without_a_draft_head(saved, caplog, heads) -> None:
    change(saved, lambda t: [t.pop(name) for name in list(t) if name.startswith("mtp_")])
    with pytest.raises(CheckpointError, match=r"missing: mtp_module\.heads\.0\.enorm"):
        load_model(saved)
    config = json.loads((saved / "config.json").read_text())
    config = {k: v for k, v in config.items() if k not in ("mtp_num_heads", "num_nextn_predict_layers")}
    (saved / "config.json").write_text(json.dumps(config if heads is None else config | {"mtp_num_heads": 0}))
    with caplog.at_level(logging.WARNING):
        model = load_model(saved)
    assert not hasattr(model, "mtp_module")
    assert "no draft head" in caplog.text


def test_saving_replaces_a_checkpoint_and_nothing_else(tmp_path, tiny, tokenizer) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.tex").write_text("x")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        save_checkpoint(tiny, tokenizer, PROCESSOR, tmp_path / "a")
    assert (tmp_path / "a" / "thesis.tex").exists()
    save_checkpoint(tiny, tokenizer, PROCESSOR, tmp_path / "b", shard_bytes=100_000)
    save_checkpoint(tiny, tokenizer, PROCESSOR, tmp_path / "b")
    assert not (tmp_path / "b" / INDEX).exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_failed_save_leaves_the_old_checkpoint(saved, tiny, monkeypatch, tokenizer) -> None:
    before = revision(saved)

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr("jocr.model.weights.write_shards", broken)
    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(tiny, tokenizer, PROCESSOR, saved)
    assert revision(saved) == before
    assert [p.name for p in saved.parent.iterdir()] == ["ck"]


MEASURE = """
import gc, resource, sys, torch
from jocr.model.weights import load_model
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
start = peak()
for dtype in (torch.bfloat16, torch.float32):
    model = load_model(sys.argv[1], dtype=dtype)
    print(sum(p.nbytes for p in model.parameters()), peak() - start)
    del model
    gc.collect()
"""


def test_loading_holds_the_weights_once(tmp_path, tokenizer) -> None:
    cfg = replace(TINY, text=replace(TINY.text, vocab_size=60_000, hidden_size=256))
    with torch.device("meta"):
        model = OcrModel(cfg)
    model = model.to(torch.float32).to_empty(device="cpu")
    save_checkpoint(model, tokenizer, PROCESSOR, tmp_path)
    command = [sys.executable, "-c", MEASURE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=True)
    (narrow, narrow_peak), (wide, wide_peak) = (map(int, row.split()) for row in done.stdout.splitlines())
    assert wide == 2 * narrow > 120e6
    assert narrow_peak < narrow + 45e6  # converting costs one chunk, not one model
    assert wide_peak < wide + 45e6
