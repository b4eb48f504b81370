"""vLLM with the plugin against this project's own engine, in fp32: every token of every page, and what is drafted.

Breaking one thing at a time must show: the last tests do that and say what has to move.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from jocr.decoding.vllm_agreement import Agreement, Outcome, agreement, ours, theirs
from jocr.model.shards import SINGLE, write_file
from jocr.model.split_draft import HEAD, prepare_draft
from tests.vllm_plugin.checkpoints import PROCESSOR, pages, tiny_checkpoint
from tests.vllm_plugin.inprocess import settle

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("vllm")

PAGES = 40
TOKENS = 40
KINDS = {"clear": 0.3, "mixed": 1.3, "noisy": 1.5}  # how far the tokens are from a fixed succession
QUICK = {("clear", 3), ("mixed", 0), ("mixed", 2), ("noisy", 1)}  # the others go without saying, most of the time
CASES = [
    pytest.param(kind, depth, marks=() if (kind, depth) in QUICK else pytest.mark.slow)
    for kind in KINDS
    for depth in range(4)
]


@pytest.fixture(scope="module", autouse=True)
def in_process(tmp_path_factory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOCR_CACHE", str(tmp_path_factory.mktemp("cache")))
        settle()
        yield


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("checkpoints")
    return {kind: tiny_checkpoint(root / kind, seed, noise) for seed, (kind, noise) in enumerate(KINDS.items())}


@pytest.mark.parametrize(("kind", "depth"), CASES)
def test_both_engines_write_the_same_tokens(checkpoints, kind, depth):
    inputs = pages(PAGES, max_tokens=TOKENS)
    mine = ours(checkpoints[kind], inputs, depth, backend="torch")
    found = agreement(mine, theirs(checkpoints[kind], inputs, depth), depth, "float32")
    print(found)
    assert kind == "clear" or len(set(mine.tokens.values())) > PAGES // 2  # what the pages show matters
    assert found.prompts_equal
    assert found.parted == {}
    assert len(found.ours) == depth
    assert found.worst_gap < 0.02, (found.ours, found.theirs)


def compare(checkpoint: Path, mine: Outcome, depth: int, **broken: object) -> Agreement:
    return agreement(mine, theirs(checkpoint, pages(8, max_tokens=TOKENS), depth, **broken), depth, "float32")


@pytest.fixture(scope="module")
def plain(checkpoints) -> Outcome:
    """The clear checkpoint at depth 2 by our own engine: nearly every proposal is kept."""
    mine = ours(checkpoints["clear"], pages(8, max_tokens=TOKENS), 2, backend="torch")
    assert min(mine.acceptance) > 0.8
    return mine


def test_swapped_halves_of_eh_proj_end_acceptance_and_change_no_token(checkpoints, plain, tmp_path):
    draft = prepare_draft(checkpoints["clear"], tmp_path)
    tensors = _tensors(draft)
    left, right = tensors[f"{HEAD}eh_proj.weight"].chunk(2, dim=1)
    tensors[f"{HEAD}eh_proj.weight"] = torch.cat([right, left], dim=1)
    write_file(tensors, draft / SINGLE)
    found = compare(checkpoints["clear"], plain, 2, draft=draft)
    assert found.parted == {}
    assert found.theirs[0] < 0.1


def test_pairing_off_by_one_ends_acceptance_and_changes_no_token(checkpoints, plain, monkeypatch):
    from jocr.vllm_plugin.draft import EagleFastMTPForCausalLM

    straight = EagleFastMTPForCausalLM.forward

    def late(self, input_ids, positions, hidden_states, inputs_embeds=None):
        return straight(self, input_ids, positions, hidden_states, inputs_embeds.roll(1, dims=0))

    monkeypatch.setattr(EagleFastMTPForCausalLM, "forward", late)
    found = compare(checkpoints["clear"], plain, 2)
    assert found.parted == {}
    assert found.theirs[0] < 0.1


def test_pre_norm_feedback_leaves_the_first_proposal_and_moves_the_second(tmp_path, monkeypatch):
    """A final norm with spread weights: feeding the state from before it is not the same as feeding the one after."""
    from jocr.vllm_plugin.draft import FastMTPModel

    checkpoint = spread_checkpoint(tmp_path / "spread")
    inputs = pages(8, max_tokens=TOKENS)
    mine = ours(checkpoint, inputs, 2, backend="torch")
    right = agreement(mine, theirs(checkpoint, inputs, 2), 2, "float32")
    assert right.parted == {}
    assert right.worst_gap < 0.02

    def before_norm(self, input_ids, positions, hidden_states, inputs_embeds=None):
        pair = torch.cat([self.enorm(inputs_embeds), self.hnorm(hidden_states)], dim=-1)
        x, residual = self.block(positions, self.eh_proj(pair), None)
        raw = x + residual
        return self.norm(raw), raw

    monkeypatch.setattr(FastMTPModel, "forward", before_norm)
    broken = agreement(mine, theirs(checkpoint, inputs, 2), 2, "float32")
    print(right, broken)
    assert broken.parted == {}
    assert abs(broken.theirs[0] - right.theirs[0]) < 0.02
    assert broken.theirs[1] < right.theirs[1] - 0.1


def spread_checkpoint(directory: Path) -> Path:
    """A clear checkpoint whose final norm has very unequal weights and whose draft head listens to the state."""
    made = tiny_checkpoint(directory, 5, 0.3)
    tensors = _tensors(made)
    width = tensors["model.norm.weight"].shape[0]
    weight = torch.full((width,), 0.1)
    weight[::2] = 2.0
    tensors["model.norm.weight"] = weight
    projection = tensors[f"{HEAD}eh_proj.weight"]
    odd = torch.arange(width) % 2 == 1  # what the norm lets through small: harmless after it, loud before it
    generator = torch.Generator().manual_seed(0)
    projection[:, width:][:, odd] += torch.randn(width, int(odd.sum()), generator=generator) * 0.6
    write_file(tensors, made / SINGLE)
    return made


def test_a_bos_token_is_refused_by_the_golden_page(checkpoints):
    from jocr.decoding.vllm_golden import compare as check
    from jocr.decoding.vllm_golden import find_golden, golden_page
    from jocr.errors import EngineError
    from jocr.model.prompts import prompt_text

    golden = find_golden(checkpoints["mixed"])
    page = golden_page(PROCESSOR)
    for bos, message in (((), None), ((0,), "prompt ids part at 0")):
        seen = theirs(checkpoints["mixed"], [page], 0, bos=bos)
        ids = (*bos, *golden.prompt_ids)
        assert seen.prompt_tokens["golden"] == len(ids)
        if message is None:
            check(golden, prompt_text(page.instruction), ids, seen.tokens["golden"], "vllm")
        else:
            with pytest.raises(EngineError, match=message):
                check(golden, prompt_text(page.instruction), ids, seen.tokens["golden"], "vllm")


def test_six_tiles_change_the_prompt_and_the_tokens_of_pages_with_more(checkpoints, monkeypatch):
    from dataclasses import replace

    from jocr.vllm_plugin.processor import PageProcessingInfo

    monkeypatch.setattr(PageProcessingInfo, "tiling", replace(PROCESSOR, max_tiles=6))
    inputs = pages(12, max_tokens=TOKENS)
    mine = ours(checkpoints["noisy"], inputs, 0, backend="torch")
    found = agreement(mine, theirs(checkpoints["noisy"], inputs, 0), 0, "float32")
    assert not found.prompts_equal
    assert 0 < len(found.parted) <= 6


def _tensors(directory: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return {name: tensor.clone() for name, tensor in load_file(directory / SINGLE).items()}
