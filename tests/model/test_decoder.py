"""RoPE, masks, caches and the whole decoder against transformers and against themselves."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from jocr.model.decoder import Rotary, causal
from jocr.model.layers import RMSNorm, rotary_table, rotate

from .tiny_model import TEXT, scatter


class Cache:
    """The simplest cache: what was seen is concatenated; a row sees everything up to itself."""

    def __init__(self) -> None:
        self.k: dict[int, Tensor] = {}
        self.v: dict[int, Tensor] = {}

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if layer in self.k:
            k, v = torch.cat([self.k[layer], k], 1), torch.cat([self.v[layer], v], 1)
        self.k[layer], self.v[layer] = k, v
        seen, rows = k.shape[1], q.shape[1]
        mask = torch.ones(rows, seen, dtype=torch.bool).tril(seen - rows)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)


@pytest.mark.parametrize("theta", [10_000.0, 1_000_000.0])
def test_rope_equals_llamas(theta: float) -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    config = LlamaConfig(
        hidden_size=64, num_attention_heads=2, rope_parameters={"rope_type": "default", "rope_theta": theta}
    )
    q, k = torch.randn(2, 7, 2, 32), torch.randn(2, 7, 2, 32)
    positions = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [900, 901, 902, 903, 904, 905, 906]])
    cos, sin = LlamaRotaryEmbedding(config)(q, positions)
    want_q, want_k = apply_rotary_pos_emb(q.transpose(1, 2), k.transpose(1, 2), cos, sin)
    rotary = Rotary(replace(TEXT, rope_theta=theta))
    mine = rotary(positions, 907, q)
    torch.testing.assert_close(rotate(q, *mine), want_q.transpose(1, 2), atol=2e-4, rtol=1e-4)
    torch.testing.assert_close(rotate(k, *mine), want_k.transpose(1, 2), atol=2e-4, rtol=1e-4)


def test_rotary_table_grows_and_keeps_its_values() -> None:
    rotary = Rotary(TEXT)
    short = rotary.grow(10, torch.empty(0))[0]
    long = rotary.grow(3000, torch.empty(0))[0]
    assert len(long) >= 3000
    assert torch.equal(long[: len(short)], short)
    assert torch.equal(long, rotary_table(len(long), TEXT.head_dim, TEXT.rope_theta)[0])
    assert rotary.grow(5, torch.empty(0, dtype=torch.bfloat16))[0].dtype == torch.bfloat16


def test_rms_norm_is_its_definition() -> None:
    norm = RMSNorm(64, 1e-6)
    scatter(norm)
    x = torch.randn(3, 64)
    torch.testing.assert_close(norm(x), x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * norm.weight)


@torch.no_grad()
def test_whole_decoder_equals_transformers(tiny) -> None:
    """Dense first layer, MoE after it, RoPE, masks, norms: their decoder of the same family."""
    from transformers.models.deepseek_ocr2.configuration_deepseek_ocr2 import DeepseekOcr2TextConfig
    from transformers.models.deepseek_ocr2.modeling_deepseek_ocr2 import DeepseekOcr2TextModel

    config = DeepseekOcr2TextConfig(
        vocab_size=TEXT.vocab_size, hidden_size=TEXT.hidden_size, intermediate_size=TEXT.intermediate_size,
        num_hidden_layers=TEXT.num_hidden_layers, num_attention_heads=TEXT.num_attention_heads,
        moe_intermediate_size=TEXT.moe_intermediate_size, n_routed_experts=TEXT.n_routed_experts,
        n_shared_experts=TEXT.n_shared_experts, num_experts_per_tok=TEXT.num_experts_per_tok,
        max_position_embeddings=TEXT.max_position_embeddings, rms_norm_eps=TEXT.rms_norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": TEXT.rope_theta},
        mlp_layer_types=["dense", "sparse", "sparse"],
    )  # fmt: skip
    theirs = DeepseekOcr2TextModel(config).eval()
    theirs.load_state_dict(stacked({k: v for k, v in tiny.state_dict().items() if k.startswith("model.")}))
    ids = torch.randint(0, TEXT.vocab_size, (2, 50), generator=torch.Generator().manual_seed(1))
    mine = tiny.hidden(tiny.model.embed_tokens(ids))
    torch.testing.assert_close(mine, theirs(input_ids=ids).last_hidden_state, atol=2e-3, rtol=1e-3)


def stacked(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Published names without the ``model.`` prefix and towers, experts stacked as transformers holds them."""
    out, experts = {}, {}
    for name, tensor in state.items():
        name = name.removeprefix("model.")
        if ".experts." in name:
            experts[name] = tensor
        elif name.startswith(("layers.", "norm.", "embed_tokens.")):
            out[name] = tensor
    for prefix in sorted({name.split(".experts.")[0] + ".experts." for name in experts}):
        each = [{k: experts[f"{prefix}{i}.{k}_proj.weight"] for k in ("gate", "up", "down")} for i in range(8)]
        out[f"{prefix}gate_up_proj"] = torch.stack([torch.cat([e["gate"], e["up"]]) for e in each])
        out[f"{prefix}down_proj"] = torch.stack([e["down"] for e in each])
    return out


@torch.no_grad()
@pytest.mark.parametrize("steps", [[1] * 12, [5, 1, 4, 2], [12], [3, 3, 3, 3]])
def test_cache_equals_no_cache(tiny, steps: list[int]) -> None:
    x = tiny.embed(torch.arange(20, 32))[None]
    whole = tiny.hidden(x)
    cache, parts, start = Cache(), [], 0
    for n in steps:
        positions = torch.arange(start, start + n)[None]
        parts.append(tiny.hidden(x[:, start : start + n], positions, start + n, cache))
        start += n
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_a_row_sees_nothing_after_itself(tiny) -> None:
    x = tiny.embed(torch.arange(20, 40))[None]
    before = tiny.hidden(x)
    x[:, 10:] = torch.randn(1, 10, TEXT.hidden_size)
    after = tiny.hidden(x)
    torch.testing.assert_close(after[:, :10], before[:, :10], atol=1e-4, rtol=1e-4)
    assert (after[:, 10:] - before[:, 10:]).abs().max() > 0.1


@torch.no_grad()
def test_positions_are_relative_only_through_rope(tiny) -> None:
    x = tiny.embed(torch.arange(20, 30))[None]
    shifted = tiny.hidden(x, torch.arange(100, 110)[None], 110)
    torch.testing.assert_close(shifted, tiny.hidden(x), atol=2e-3, rtol=1e-3)
    spread = tiny.hidden(x, torch.arange(0, 100, 10)[None], 110)
    assert (spread - tiny.hidden(x)).abs().max() > 1e-2


@torch.no_grad()
def test_draft_head_by_hand(tiny) -> None:
    """Embedding first, both normed, projected, one block, then the verifier's final norm."""
    head, norm = tiny.mtp_module.heads[0], tiny.model.norm
    embedded, hidden = torch.randn(1, 6, 64), torch.randn(1, 6, 64)
    positions = torch.arange(6)[None]
    joined = torch.cat([head.enorm(embedded), head.hnorm(hidden)], -1) @ head.eh_proj.weight.T
    cos, sin = tiny.rotary(positions, 6, joined)
    expected = norm(head.mtp_block(joined, cos, sin, causal))
    torch.testing.assert_close(tiny.draft(embedded, hidden, positions, 6, causal), expected)
    swapped = tiny.draft(hidden, embedded, positions, 6, causal)
    assert (swapped - expected).abs().max() > 0.1


@torch.no_grad()
def test_draft_cache_equals_no_cache(tiny) -> None:
    embedded, hidden = torch.randn(1, 9, 64), torch.randn(1, 9, 64)
    whole = tiny.draft(embedded, hidden, torch.arange(9)[None], 9, causal)
    cache = Cache()
    first = tiny.draft(embedded[:, :5], hidden[:, :5], torch.arange(5)[None], 5, cache)
    rest = tiny.draft(embedded[:, 5:], hidden[:, 5:], torch.arange(5, 9)[None], 9, cache)
    torch.testing.assert_close(torch.cat([first, rest], 1), whole, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_bf16_follows_fp32(tiny) -> None:
    ids = torch.arange(30, 60)
    wide = tiny.hidden(tiny.embed(ids)[None])
    half = copy.deepcopy(tiny).bfloat16()
    narrow = half.hidden(half.embed(ids)[None]).float()
    assert F.cosine_similarity(wide, narrow, dim=-1).median() > 0.99
