"""The language decoder: pre-norm blocks of multi-head attention and MLP or MoE, full causal attention.

A block does not know where its keys and values live: it hands q, k, v to an ``Attend``, which stores them (or not)
and answers with the attention output. Training uses ``causal``; decoding uses a cache.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jocr.model.chunked import chunked_attention
from jocr.model.config import TextConfig
from jocr.model.layers import FusedLinear, RMSNorm, SwiGLU, rotary_table, rotate
from jocr.model.moe import MoE

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, q, k, v), each (B, T, heads, head_dim), already rotated -> attention output (B, T, heads, head_dim)."""


def causal(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention without a cache: every row sees itself and the rows before it."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    if torch.is_grad_enabled() and q.device.type == "cpu":
        return chunked_attention(q * q.shape[-1] ** -0.5, k, v, causal=True).transpose(1, 2)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, cfg: TextConfig, layer: int) -> None:
        super().__init__()
        self.layer, self.heads, self.head_dim = layer, cfg.num_attention_heads, cfg.head_dim
        width = self.heads * self.head_dim
        self.qkv = FusedLinear(cfg.hidden_size, {"q_proj": width, "k_proj": width, "v_proj": width})
        self.o_proj = nn.Linear(width, cfg.hidden_size, bias=False)
        nn.init.normal_(self.o_proj.weight, std=0.02)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, self.head_dim).unbind(2)
        out = attend(self.layer, rotate(q, cos, sin), rotate(k, cos, sin), v)
        return self.o_proj(out.reshape(b, t, -1))


class Block(nn.Module):
    def __init__(self, cfg: TextConfig, layer: int, dense: bool) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(cfg.hidden_size, cfg.rms_norm_eps)
        self.self_attn = Attention(cfg, layer)
        self.post_attention_layernorm = RMSNorm(cfg.hidden_size, cfg.rms_norm_eps)
        self.mlp = SwiGLU(cfg.hidden_size, cfg.intermediate_size) if dense else MoE(cfg)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, attend)
        return x + self.mlp(self.post_attention_layernorm(x))


class Rotary(nn.Module):
    """cos/sin tables, made on first use (never part of the state dict) and grown when a longer position comes."""

    def __init__(self, cfg: TextConfig) -> None:
        super().__init__()
        self.head_dim, self.theta, self.limit = cfg.head_dim, cfg.rope_theta, cfg.max_position_embeddings
        self.table: tuple[Tensor, Tensor] | None = None

    def grow(self, length: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Tables of at least ``length`` positions in ``like``'s dtype and device."""
        table = self.table
        if table is None or len(table[0]) < length or (table[0].device, table[0].dtype) != (like.device, like.dtype):
            size = max(512, 1 << (length - 1).bit_length())
            cos, sin = rotary_table(size, self.head_dim, self.theta)
            self.table = table = (cos.to(like), sin.to(like))
        return table

    def forward(self, positions: Tensor, longest: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """positions (B, T), all below ``longest`` -> cos, sin of (B, T, 1, head_dim)."""
        cos, sin = self.grow(longest, like)
        return cos[positions][:, :, None], sin[positions][:, :, None]


def stack(blocks: nn.ModuleList, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend = causal) -> Tensor:
    """Run (B, T, H) through the blocks."""
    for block in blocks:
        x = block(x, cos, sin, attend)
    return x


def positions_of(x: Tensor) -> Tensor:
    """0..T-1 for every row of (B, T, ...)."""
    return torch.arange(x.shape[1], device=x.device).expand(x.shape[0], -1)
