"""Fit the draft head to a frozen verifier, with the same states and keys it will see while drafting.

At depth k, slot j pairs the token at j with depth k-1's output of slot j-1 (depth 0: the verifier's state at j-1).
Its attention sees slots up to j-k as depth 0 left them (in use these are refilled from the verifier after every
committed span) and the k drafted slots between, each at its own depth: training rows are then exactly the rows that
decoding computes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jocr.losses.draft import draft_loss
from jocr.losses.sft import IGNORE
from jocr.model.decoder import positions_of
from jocr.training.batches import Batch
from jocr.training.teach import Teacher


class DraftedAttention:
    """The ``Attend`` of depth after depth: keeps keys and values of every depth."""

    def __init__(self) -> None:
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        self.keys.append(k)
        self.values.append(v)
        depth = len(self.keys) - 1
        t = q.shape[1]
        scores = [torch.einsum("bihd,bjhd->bhij", q, self.keys[0])]
        barred = torch.ones(t, t, dtype=torch.bool, device=q.device).triu(1 - depth)
        scores[0] = scores[0].masked_fill(barred, float("-inf"))
        if depth:  # slots with no depth-0 slot before them are never used; keep their softmax finite
            scores[0][:, :, :depth] = 0.0
        shifted = [(shift(self.keys[i], depth - i), shift(self.values[i], depth - i)) for i in range(1, depth + 1)]
        scores += [(q * key).sum(-1).transpose(1, 2)[..., None] for key, _ in shifted]
        p = (torch.cat(scores, dim=-1) * q.shape[-1] ** -0.5).float().softmax(dim=-1).to(v.dtype)
        out = torch.einsum("bhij,bjhd->bihd", p[..., :t], self.values[0])
        for i, (_, value) in enumerate(shifted):
            out = out + p[..., t + i].transpose(1, 2)[..., None] * value
        return out


def shift(x: Tensor, by: int) -> Tensor:
    """Row j takes row j - by along dimension 1; the first rows become zero."""
    if by == 0:
        return x
    return torch.cat([torch.zeros_like(x[:, :by]), x[:, :-by]], dim=1)


class DraftTeacher(nn.Module):
    """Holds a reader of which only the draft head learns."""

    def __init__(self, teacher: Teacher, depths: int) -> None:
        super().__init__()
        self.teacher = teacher.requires_grad_(False).eval()
        self.teacher.model.mtp_module.requires_grad_(True)
        self.depths = depths

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of one batch of pages whose response ids are what the verifier wrote (or should have)."""
        with torch.no_grad():
            visual = self.teacher.see(batch)[0]
            embedded, last = self.teacher.rows(batch, visual)
            hidden = self.teacher.model.hidden(embedded)
        valid = torch.ones(embedded.shape[:2], dtype=torch.bool)
        valid[:, last:] = batch.targets != IGNORE
        return self.draft(embedded, hidden, last + 1, valid)

    def draft(self, embedded: Tensor, hidden: Tensor, first: int, valid: Tensor) -> tuple[Tensor, dict[str, float]]:
        """Loss over rows.

        Args:
            embedded: (B, T, H) embedded rows, visual ones included.
            hidden: (B, T, H) the verifier's post-norm states.
            first: index of the first response token's slot.
            valid: (B, T) rows whose next token counts.
        """
        model = self.teacher.model
        attend = DraftedAttention()
        positions = positions_of(embedded)
        tokens = embedded.clone()
        tokens[:, 0] = 0
        state, states, logits, keeps = hidden, [], [], []
        for depth in range(self.depths):
            state = model.draft(tokens, shift(state, 1), positions, embedded.shape[1], attend)
            keep = valid & (positions - depth >= first)
            states.append(state)
            keeps.append(keep)
            logits.append(model.lm_head(state[keep]))
        with torch.no_grad():
            wanted = torch.zeros(*hidden.shape[:2], model.lm_head.out_features)
            wanted[keeps[0]] = model.lm_head(hidden[keeps[0]]).float()
        return draft_loss(states, logits, keeps, hidden, wanted)
