"""Mixture of experts: softmax gate, greedy top-k without renormalising, shared experts always on.

Weights of all routed experts are held stacked, (E, 2I, H) and (E, H, I), and saved under their published names
(``experts.7.gate_proj.weight`` ...) as views. Only chosen experts are computed: many rows are sorted by expert and
each expert takes its group; one to five rows (decoding, verifying) are taken one by one.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jocr.model.config import TextConfig
from jocr.model.layers import SwiGLU

LEAN_ROWS = 5  # up to this many rows the ungrouped path is taken


class Experts(nn.Module):
    def __init__(self, experts: int, width: int, hidden: int) -> None:
        super().__init__()
        self.gate_up = nn.Parameter(torch.empty(experts, 2 * hidden, width))
        self.down = nn.Parameter(torch.empty(experts, width, hidden))
        nn.init.normal_(self.gate_up, std=0.02)
        nn.init.normal_(self.down, std=0.02)

    def forward(self, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """Rows x (N, H), weights (N, k) and chosen expert ids (N, k) -> (N, H)."""
        if x.shape[0] <= LEAN_ROWS and not torch.is_grad_enabled():
            return self.lean(x, weights, chosen)
        return self.grouped(x, weights, chosen)

    def grouped(self, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        flat = chosen.reshape(-1)
        order = flat.argsort(stable=True)
        counts = torch.bincount(flat, minlength=self.gate_up.shape[0]).tolist()
        rows = order // chosen.shape[1]
        pieces = x[rows].split(counts)
        outs = [
            self._expert(piece, gate_up, down)
            for piece, gate_up, down in zip(pieces, self.gate_up.unbind(0), self.down.unbind(0), strict=True)
            if piece.shape[0]
        ]
        y = torch.cat(outs).to(x.dtype) * weights.reshape(-1)[order, None].to(x.dtype)
        return torch.zeros_like(x).index_add_(0, rows, y)

    def lean(self, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """Row by row, one matrix-vector product after the other, in order of expert.

        In fp32 on a CPU a row's result does not depend on the other rows, bit for bit.
        """
        out = torch.zeros_like(x)
        gate_up, down, rows, sums = self.gate_up.unbind(0), self.down.unbind(0), x.unbind(0), out.unbind(0)
        picks = enumerate(zip(chosen.tolist(), weights.tolist(), strict=True))
        order = sorted((expert, row, weight) for row, pair in picks for expert, weight in zip(*pair, strict=True))
        vector = x.dtype == torch.float32  # GEMV of narrower types is slow outside F.linear
        for expert, row, weight in order:
            both = gate_up[expert].mv(rows[row]) if vector else F.linear(rows[row], gate_up[expert])
            gate, up = both.chunk(2)
            inner = F.silu(gate).mul_(up)
            if vector:
                sums[row].addmv_(down[expert], inner, alpha=weight)
            else:
                sums[row].add_(F.linear(inner, down[expert]), alpha=weight)
        return out

    @staticmethod
    def _expert(x: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
        gate, up = F.linear(x, gate_up).chunk(2, dim=-1)
        return F.linear(F.silu(gate) * up, down)

    def views(self, prefix: str, gate_up: Tensor, down: Tensor) -> dict[str, Tensor]:
        views = {}
        for i in range(gate_up.shape[0]):
            gate, up = gate_up[i].chunk(2, dim=0)
            views[f"{prefix}{i}.gate_proj.weight"] = gate
            views[f"{prefix}{i}.up_proj.weight"] = up
            views[f"{prefix}{i}.down_proj.weight"] = down[i]
        return views

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        pair = (self.gate_up, self.down) if keep_vars else (self.gate_up.detach(), self.down.detach())
        destination.update(self.views(prefix, *pair))


class Gate(nn.Module):
    def __init__(self, cfg: TextConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(cfg.n_routed_experts, cfg.hidden_size))
        nn.init.normal_(self.weight, std=0.02)
        self.top_k, self.scale, self.renorm = cfg.num_experts_per_tok, cfg.routed_scaling_factor, cfg.norm_topk_prob

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rows (N, H) -> weights (N, k) fp32, expert ids (N, k), all scores (N, E) fp32."""
        scores = F.linear(x.float(), self.weight.float()).softmax(dim=-1)
        weights, chosen = scores.topk(self.top_k, dim=-1, sorted=False)
        if self.renorm:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights * self.scale, chosen, scores


class MoE(nn.Module):
    def __init__(self, cfg: TextConfig) -> None:
        super().__init__()
        self.gate = Gate(cfg)
        self.experts = Experts(cfg.n_routed_experts, cfg.hidden_size, cfg.moe_intermediate_size)
        self.shared_experts = SwiGLU(cfg.hidden_size, cfg.n_shared_experts * cfg.moe_intermediate_size)
        self.balance: Tensor | None = None  # load-balance loss of the last forward, kept while training only

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        weights, chosen, scores = self.gate(rows)
        if self.training and torch.is_grad_enabled():
            load = F.one_hot(chosen, scores.shape[1]).float().mean(dim=(0, 1))
            self.balance = scores.shape[1] * (load * scores.mean(dim=0)).sum()
        return (self.experts(rows, weights, chosen) + self.shared_experts(rows)).view_as(x)
