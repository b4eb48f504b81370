"""Muon for matrices, AdamW for the rest.

Muon (Jordan et al. 2024) steps along the orthogonalised momentum of a matrix. Matrices of one shape are stacked and
orthogonalised together, stacked expert weights each on its own, and the work is shared among ranks.
"""

from __future__ import annotations

from collections import defaultdict

import torch
import torch.distributed as dist
from torch import Tensor, nn


@torch.no_grad()
def orthogonalise(g: Tensor, steps: int = 5) -> Tensor:
    """Newton-Schulz iteration towards U V^T of every matrix of (N, m, n), in bfloat16."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.bfloat16()
    flip = x.shape[-2] > x.shape[-1]
    if flip:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if flip else x).float()


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised; the step is scaled by sqrt(max(1, rows / columns)).

    Args:
        named: parameters with their names: matrices, stacks of matrices (three dimensions), or convolutions (four
            dimensions, taken as one matrix of output channel by everything else).
        lr: step length; set it from outside through ``param_groups``.
        momentum: Nesterov momentum.
        weight_decay: decoupled, times lr.
    """

    def __init__(self, named: list[tuple[str, nn.Parameter]], lr: float, momentum: float = 0.95,
                 weight_decay: float = 0.0) -> None:  # fmt: skip
        super().__init__([p for _, p in named], {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.pieces = {p: fused_pieces(name) for name, p in named}

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            shapes: dict[tuple[int, int], list[nn.Parameter]] = defaultdict(list)
            for p in group["params"]:
                if p.grad is not None:
                    rows, columns = matrix_shape(p)
                    shapes[(rows // self.pieces[p], columns)].append(p)
            for shape in sorted(shapes):
                self._step_shape(shapes[shape], shape, group)

    def _step_shape(self, params: list[nn.Parameter], shape: tuple[int, int], group: dict[str, float]) -> None:
        m, n = shape
        wanted = []
        for p in params:
            assert p.grad is not None
            buf = self.state[p].setdefault("momentum", torch.zeros_like(p))
            buf.lerp_(p.grad, 1 - group["momentum"])
            wanted.append(p.grad.lerp(buf, group["momentum"]).view(-1, m, n))
        update = shared_orthogonalise(torch.cat(wanted))
        scale = max(1.0, m / n) ** 0.5
        for p, u in zip(params, update.split([w.shape[0] for w in wanted]), strict=True):
            p.mul_(1 - group["lr"] * group["weight_decay"])
            p.add_(u.view_as(p), alpha=-group["lr"] * scale)


def shared_orthogonalise(stack: Tensor) -> Tensor:
    """``orthogonalise`` with the matrices dealt out among the ranks of the process group, if there is one."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return orthogonalise(stack)
    rank, world = dist.get_rank(), dist.get_world_size()
    out = torch.zeros_like(stack)
    if stack[rank::world].shape[0]:
        out[rank::world] = orthogonalise(stack[rank::world])
    dist.all_reduce(out)
    return out


def matrix_shape(p: Tensor) -> tuple[int, int]:
    """(rows, columns) of the matrices a parameter holds."""
    return (p.shape[0], p[0].numel()) if p.ndim == 4 else (p.shape[-2], p.shape[-1])


def fused_pieces(name: str) -> int:
    """How many matrices a fused parameter stacks along its rows: each is orthogonalised on its own."""
    return 3 if "qkv" in name else 2 if "gate_up" in name else 1


Named = list[tuple[str, nn.Parameter]]


def split_parameters(named: Named) -> tuple[Named, Named]:
    """Hidden layers' matrices and convolutions go to Muon; embeddings, heads, norms, biases and positions to AdamW."""
    plain = (
        "embed_tokens",
        "lm_head",
        "pos",
        "class_embedding",
        "patch_embed",
        "gate.weight",
        "aux",
        "patch_embedding",
    )
    muon: Named = []
    adam: Named = []
    for name, p in named:
        matrix = p.ndim >= 2 and min(matrix_shape(p)) > 1 and not any(word in name for word in plain)
        (muon if matrix else adam).append((name, p))
    return muon, adam
