"""Small pieces shared by the decoder and the draft head: norm, fused linears, rotary positions, SwiGLU."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """x / rms(x) * weight, over the last dimension."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class FusedLinear(nn.Module):
    """Several bias-free linears of one input, held as one matrix and saved under their own names.

    ``FusedLinear(64, {"q_proj": 64, "k_proj": 64})`` computes both with one product; in the parent's state dict it
    appears as ``q_proj.weight`` and ``k_proj.weight``, which are views of the one matrix (no copy).
    """

    def __init__(self, width: int, outs: dict[str, int]) -> None:
        super().__init__()
        self.outs = outs
        self.weight = nn.Parameter(torch.empty(sum(outs.values()), width))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)

    def views(self, prefix: str, weight: Tensor) -> dict[str, Tensor]:
        parent = prefix.rstrip(".").rpartition(".")[0]
        dot = "." if parent else ""
        pieces = weight.split(list(self.outs.values()), dim=0)
        return {f"{parent}{dot}{name}.weight": piece for name, piece in zip(self.outs, pieces, strict=True)}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        destination.update(self.views(prefix, self.weight if keep_vars else self.weight.detach()))

    def _load_from_state_dict(self, state: Any, prefix: str, meta: Any, strict: bool, missing: list[str],
                              unexpected: list[str], errors: list[str]) -> None:  # fmt: skip
        copy_views(self.views(prefix, self.weight.detach()), state, missing, errors)


def copy_views(views: dict[str, Tensor], state: dict[str, Tensor], missing: list[str], errors: list[str]) -> None:
    """Copy ``state``'s tensors into the views of a fused parameter; report what is missing or misshapen."""
    for name, view in views.items():
        if name not in state:
            missing.append(name)
        elif state[name].shape != view.shape:
            errors.append(f"{name}: shape {tuple(state[name].shape)}, expected {tuple(view.shape)}")
        else:
            view.copy_(state[name])


class SwiGLU(nn.Module):
    """down(silu(gate(x)) * up(x)), without biases."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate_up = FusedLinear(width, {"gate_proj": hidden, "up_proj": hidden})
        self.down_proj = nn.Linear(hidden, width, bias=False)
        nn.init.normal_(self.down_proj.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down_proj(F.silu(gate) * up)


def rotary_table(length: int, head_dim: int, theta: float) -> tuple[Tensor, Tensor]:
    """cos and sin of shape (length, head_dim), halves repeated (the rotate-half convention), in fp32."""
    freqs = 1.0 / theta ** (torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), freqs)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos().float(), angles.sin().float()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate (..., T, heads, head_dim) by tables of shape (..., T, 1, head_dim)."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin
