"""Checkpoints as others publish them: without this project's extra keys, without a draft head or only its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jocr.decoding.load import load_decoder
from jocr.decoding.vllm_agreement import agreement, ours, theirs
from jocr.model.shards import SINGLE, write_file
from tests.vllm_plugin.checkpoints import pages, tiny_checkpoint
from tests.vllm_plugin.inprocess import settle

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("vllm")

LATENT = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank", "q_lora_rank", "n_group", "topk_group")
OURS = ("image_token_id", "mtp_recursive", "mtp_moe", "attention_bias", "attention_dropout", "torch_dtype")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("JOCR_CACHE", str(tmp_path / "cache"))


def edit(checkpoint: Path, gone: tuple[str, ...], **changed: object) -> Path:
    """Leave keys out of a config, on top and in ``language_config``, and set others on top."""
    raw = json.loads((checkpoint / "config.json").read_text())
    language = {k: v for k, v in raw["language_config"].items() if k not in (*gone, "rope_theta")}
    top = {k: v for k, v in raw.items() if k not in gone}
    (checkpoint / "config.json").write_text(json.dumps({**top, "language_config": language, **changed}))
    return checkpoint


def without_head(checkpoint: Path) -> Path:
    from safetensors.torch import load_file

    kept = {k: v.clone() for k, v in load_file(checkpoint / SINGLE).items() if not k.startswith("mtp_")}
    write_file(kept, checkpoint / SINGLE)
    return checkpoint


def test_a_config_with_the_published_keys_alone_is_enough(tmp_path):
    settle()
    checkpoint = edit(tiny_checkpoint(tmp_path / "published", 4, 1.3), (*LATENT, *OURS))
    inputs = pages(12, max_tokens=24)
    found = agreement(ours(checkpoint, inputs, 2, backend="torch"), theirs(checkpoint, inputs, 2), 2, "float32")
    assert found.prompts_equal
    assert found.parted == {}
    assert found.worst_gap < 0.02


def test_a_checkpoint_that_never_had_a_head_reads_the_same_pages(tmp_path):
    """Nine tiles too: by itself the plugin would keep to six here, as vLLM does for such checkpoints."""
    settle()
    made = without_head(tiny_checkpoint(tmp_path / "plain", 4, 1.3))
    heads = ("mtp_num_heads", "num_nextn_predict_layers", "mtp_num_speculative_steps")
    checkpoint = edit(made, (*LATENT, *OURS, *heads))
    processor = json.loads((checkpoint / "processor_config.json").read_text())
    processor.pop("max_tiles")
    (checkpoint / "processor_config.json").write_text(json.dumps(processor))
    inputs = pages(12, max_tokens=24)
    found = agreement(ours(checkpoint, inputs, 0, backend="torch"), theirs(checkpoint, inputs, 0), 0, "float32")
    assert found.prompts_equal
    assert found.parted == {}


@pytest.mark.slow
def test_a_head_that_is_named_but_missing_is_decoded_without_and_said(tmp_path, monkeypatch, caplog):
    """A whole start with the self-test: the user asked for depth 2."""
    for name, value in {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1"}.items():
        monkeypatch.setenv(name, value)
    checkpoint = without_head(tiny_checkpoint(tmp_path / "missing", 4, 1.3))
    decoder = load_decoder(str(checkpoint), engine="vllm", depth=2, batch=4, dtype="float32")
    try:
        assert "decoding without a draft head (depth 0)" in caplog.text
        assert decoder.info.draft_depth == "0"
        inputs = pages(6, max_tokens=24)
        found = {t.page_id: t.tokens for t in decoder.decode(inputs)}
    finally:
        decoder.close()
    known = edit(checkpoint, ("mtp_num_heads", "num_nextn_predict_layers"))
    assert found == ours(known, inputs, 0, backend="torch").tokens
