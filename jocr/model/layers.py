"""Small pieces shared by the decoder and the draft head: norm, fused linears, rotary positions, SwiGLU."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jocr.errors import CheckpointError


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


@torch.no_grad()
def load_views(module: nn.Module, state: dict[str, Tensor]) -> None:
    """Copy ``state`` into a module through the views its ``state_dict`` gives (fused parameters have no name there,
    so ``load_state_dict`` cannot).

    Raises:
        CheckpointError: names or shapes differ; all of them are listed.
    """
    own = module.state_dict()
    faults = [f"missing {n}" for n in own.keys() - state.keys()] + [f"unknown {n}" for n in state.keys() - own.keys()]
    faults += [f"{n}: shape {tuple(state[n].shape)}, expected {tuple(v.shape)}"
               for n, v in own.items() if n in state and state[n].shape != v.shape]  # fmt: skip
    if faults:
        raise CheckpointError("; ".join(sorted(faults)))
    for name, view in own.items():
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
    x = x.to(torch.promote_types(x.dtype, cos.dtype))  # products of two types are many times slower on a CPU
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin
