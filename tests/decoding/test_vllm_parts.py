"""What surrounds the vLLM engine: arguments, requests, counters, depth tables, golden page, split draft head."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from jocr.decoding import load, vllm_golden, vllm_load
from jocr.decoding.vllm_depth import CPU, EAGER, GRAPHS, default_table, load_table, pick_depth, save_table, table_path
from jocr.decoding.vllm_golden import Golden, compare, find_golden, golden_page
from jocr.decoding.vllm_load import pick_engine, vllm_device
from jocr.decoding.vllm_options import VllmSettings, engine_arguments, make_request
from jocr.decoding.vllm_stats import SpeculationCounts, read_metrics
from jocr.errors import CheckpointError, ConfigError, EngineError
from jocr.model.hub import revision
from jocr.model.prompts import prompt_ids
from jocr.model.shards import read_header, read_index, write_file
from jocr.model.split_draft import prepare_draft
from jocr.model.tokenizer import load_tokenizer
from jocr.records import PageInput
from jocr.vllm_plugin.__main__ import command
from tests.vllm_plugin.checkpoints import PROCESSOR, TINY, page, tiny_checkpoint


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny", 1, 0.3)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("JOCR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_draft_is_split_off_once_and_named_by_its_checkpoint(checkpoint, cache):
    made = prepare_draft(checkpoint)
    assert made == cache / "drafts" / revision(checkpoint)
    stamp = (made / "model.safetensors").stat().st_mtime_ns
    assert prepare_draft(checkpoint) == made
    assert (made / "model.safetensors").stat().st_mtime_ns == stamp
    stored = read_header(made / "model.safetensors")
    assert len(stored) == 13
    assert sum("mtp_module.heads.0." in name for name in stored) == 12
    whole = read_index(checkpoint)
    assert all(stored[name].shape == whole[name].shape for name in stored)
    config = json.loads((made / "config.json").read_text())
    assert config["architectures"][0].startswith("Eagle")
    assert (config["model_type"], config["num_hidden_layers"]) == ("llama", 1)
    assert config["rope_parameters"]["rope_theta"] == 1_000_000.0


def test_a_draft_with_its_own_head_is_refused_and_a_copy_is_not(checkpoint, tmp_path):
    copy = tiny_checkpoint(tmp_path / "copy", 1, 0.3)
    tensors = _tensors(copy)
    write_file({**tensors, "mtp_embed_tokens.weight": tensors["model.embed_tokens.weight"]}, copy / "model.safetensors")
    assert prepare_draft(copy).exists()
    tensors["mtp_embed_tokens.weight"] = tensors["model.embed_tokens.weight"] + 1
    write_file(tensors, copy / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"mtp_embed_tokens\.weight differs"):
        prepare_draft(copy)


def _tensors(checkpoint: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    mapped = load_file(checkpoint / "model.safetensors")
    return {name: tensor.clone() for name, tensor in mapped.items()}


def test_engine_arguments_name_the_draft_only_where_there_is_drafting(checkpoint):
    plain = engine_arguments(checkpoint, VllmSettings(depth=0, dtype="float32", max_positions=512))
    assert "speculative_config" not in plain
    assert (plain["max_model_len"], plain["dtype"]) == (512, "float32")
    drafting = engine_arguments(checkpoint, VllmSettings(depth=2))["speculative_config"]
    assert drafting == {"method": "eagle", "model": str(prepare_draft(checkpoint)), "num_speculative_tokens": 2}


def headless(directory: Path, named: bool) -> Path:
    """A checkpoint without a draft head's tensors, whose config names one all the same or does not."""
    made = tiny_checkpoint(directory, 1, 0.3)
    kept = {name: tensor for name, tensor in _tensors(made).items() if not name.startswith("mtp_")}
    write_file(kept, made / "model.safetensors")
    raw = json.loads((made / "config.json").read_text())
    (made / "config.json").write_text(json.dumps(raw if named else {k: v for k, v in raw.items() if "mtp" not in k}))
    return made


@pytest.mark.parametrize("named", [True, False])
def test_without_a_draft_head_decoding_is_plain_and_says_so(tmp_path, named, caplog, capsys):
    made = headless(tmp_path / "headless", named)
    if not named:
        raw = json.loads((made / "config.json").read_text())
        (made / "config.json").write_text(json.dumps({**raw, "num_nextn_predict_layers": 0}))
    assert vllm_load._draftable(made, 2) == 0
    assert "decoding without a draft head (depth 0)" in caplog.text
    line = command(str(made), 2)
    assert "--speculative-config" not in line
    assert "serves without a draft head" in capsys.readouterr().err
    golden = find_golden(made)
    assert golden is not None
    assert golden.tokens


def test_an_engine_that_refuses_the_draft_starts_without_it(checkpoint, monkeypatch, caplog):
    tried = []

    class Refusing:
        def __init__(self, checkpoint, *, settings, info, **rest):
            tried.append(settings.depth)
            self.info = info
            if settings.depth:
                raise EngineError("vLLM did not start: NotImplementedError: no speculation for this model")

    monkeypatch.setattr(vllm_load, "VllmDecoder", Refusing)
    monkeypatch.setattr(vllm_load, "version", lambda: "0.32.0")
    monkeypatch.setattr(vllm_load, "self_test", lambda *args: None)
    made = vllm_load.load_vllm("tiny", checkpoint, depth=2)
    assert tried == [2, 0]
    assert made.info.draft_depth == "0"
    assert "starting without it" in caplog.text
    monkeypatch.setattr(Refusing, "__init__", lambda self, *args, **rest: (_ for _ in ()).throw(EngineError("memory")))
    with pytest.raises(EngineError, match="memory"):
        vllm_load.load_vllm("tiny", checkpoint, depth=2)


def test_a_request_holds_one_image_token_and_knows_the_whole_prompt(checkpoint):
    tokenizer = load_tokenizer(checkpoint)
    for seed in range(6):
        request = make_request(page(seed), tokenizer, PROCESSOR, 2048)
        ids = request.prompt["prompt_token_ids"]
        assert ids.count(tokenizer.image_id) == 1
        visual = request.prompt_tokens - len(ids) + 1
        assert request.prompt_tokens == len(prompt_ids(tokenizer, page(seed).instruction, visual))
        assert request.limit == 24
    with pytest.raises(ValueError, match="positions"):
        make_request(page(3), tokenizer, PROCESSOR, 40)
    with pytest.raises(ValueError, match="image_error"):
        make_request(PageInput("x", b"nothing", "x", 3), tokenizer, PROCESSOR, 2048)


def test_counters_add_up_to_tau_and_acceptance():
    counts = SpeculationCounts()
    assert counts.tau is None
    counts.add(2, [2, 2], [2, 1])
    counts.add(2, [2, 2], [1, 0])
    assert counts.tau == 2.0
    assert counts.acceptance == [0.75, 0.25]
    assert counts.conditional == [0.75, pytest.approx(1 / 3)]
    metrics = [
        SimpleNamespace(name="vllm:spec_decode_num_drafts", value=4),
        SimpleNamespace(name="vllm:spec_decode_num_accepted_tokens_per_pos", values=[3, 1]),
    ]
    assert read_metrics(metrics) == counts
    assert read_metrics([]).tau is None


def test_depth_follows_concurrency_and_a_measured_table_wins(tmp_path):
    assert [pick_depth(n, GRAPHS) for n in (1, 7, 8, 31, 32, 200)] == [1, 1, 1, 1, 0, 0]
    assert [default_table(*a) for a in (("cuda", False), ("cuda", True), ("cpu", True))] == [GRAPHS, EAGER, CPU]
    path = table_path("NVIDIA L4", "abc", False, tmp_path)
    assert path.name == "nvidia-l4-abc-graphs.json"
    assert load_table(path) is None
    assert save_table(path, {(1, 0): 10.0, (1, 1): 12.0, (8, 0): 50.0, (8, 1): 40.0}) == {1: 1, 8: 0}
    assert load_table(path) == {1: 1, 8: 0}


def test_the_golden_page_is_made_once_and_stays(checkpoint, cache, monkeypatch):
    golden = find_golden(checkpoint)
    assert golden is not None
    assert golden.revision == revision(checkpoint)
    assert golden.prompt_ids.count(TINY.image_token_id) == PROCESSOR.token_count((3, 3))
    monkeypatch.setattr(vllm_golden, "_from", lambda *args: pytest.fail("made twice"))
    assert find_golden(checkpoint) == golden
    assert golden_page(PROCESSOR) == golden_page(PROCESSOR)


def test_a_golden_page_of_another_checkpoint_is_not_used(checkpoint, tmp_path):
    other = tiny_checkpoint(tmp_path / "other", 2, 0.3)
    Golden("0000", "p", (1,), (2,)).write(other / "golden.json")
    golden = find_golden(other)
    assert golden is not None
    assert golden.revision == revision(other)
    (other / "golden.json").write_text("[]")
    with pytest.raises(CheckpointError, match="no golden page"):
        find_golden(other)


@pytest.mark.parametrize(
    ("prompt", "ids", "tokens", "message"),
    [
        ("wrong", (1, 3, 3, 4), (7, 8), "the prompt is 'wrong'"),
        ("right", (0, 1, 3, 3, 4), (7, 8), r"prompt ids part at 0 \(5 and 4 in all\)"),
        ("right", (1, 3, 3, 4), (7, 9, 9), r"parts at token 1: \(9,\) not \(8,\)"),
        ("right", (1, 3, 3, 4), (7,), "parts at token 1"),
    ],
)
def test_a_mismatch_refuses_to_start_and_names_a_good_release(prompt, ids, tokens, message):
    golden = Golden("r", "right", (1, 3, 3, 4), (7, 8), "0.32.0")
    compare(golden, "right", [1, 3, 3, 4], [7, 8, 9], "vllm 0.30.0")
    with pytest.raises(EngineError, match=message) as caught:
        compare(golden, prompt, ids, tokens, "vllm 0.30.0")
    assert "vllm 0.30.0 is not fit for this checkpoint; vllm 0.32.0 is known good" in str(caught.value)


def test_auto_is_our_own_engine_without_a_cuda_device(monkeypatch):
    assert pick_engine("auto") == "torch" or torch.cuda.is_available()
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("jocr.decoding.vllm_load.installed", lambda: True)
    assert (pick_engine("auto"), pick_engine("auto", "cpu"), pick_engine("torch")) == ("vllm", "torch", "torch")
    with pytest.raises(ConfigError, match="engine 'x'"):
        pick_engine("x")
    assert (vllm_device("auto"), vllm_device("cuda")) == ("cuda", "cuda")
    with pytest.raises(ConfigError, match="CUDA_VISIBLE_DEVICES"):
        vllm_device("cuda:1")


def test_the_engine_asked_for_is_the_one_loaded(checkpoint, monkeypatch):
    asked = {}

    def load_vllm(name, directory, **settings):
        asked.update(settings, name=name)
        return "the engine"

    monkeypatch.setattr(load, "load_vllm", load_vllm)
    assert load.load_decoder(str(checkpoint), engine="vllm", depth=2, batch=5, max_tokens=9) == "the engine"
    assert (asked["name"], asked["depth"], asked["batch"]) == (str(checkpoint), 2, 5)
    assert asked["limits"].max_tokens == 9
    assert asked["dtype"] == ("bfloat16" if torch.cuda.is_available() else "float32")


def test_without_vllm_the_remedy_is_named(checkpoint, monkeypatch):
    monkeypatch.setattr("jocr.decoding.vllm_options.installed", lambda: False)
    with pytest.raises(EngineError, match=r"pip install 'jocr\[vllm\]'"):
        load.load_decoder(str(checkpoint), engine="vllm")
