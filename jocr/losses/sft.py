"""Token cross-entropy and the helpers that only training from scratch needs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

IGNORE = -100


def token_loss(logits: Tensor, targets: Tensor) -> tuple[Tensor, dict[str, float]]:
    """Mean cross-entropy over rows (N, V) with targets (N,), none of them ignored; and top-1 accuracy."""
    loss = F.cross_entropy(logits.float(), targets)
    accuracy = (logits.argmax(dim=-1) == targets).float().mean().item()
    return loss, {"loss": loss.item(), "accuracy": accuracy}


def glyph_loss(logits: Tensor, labels: Tensor, blank_weight: float = 0.1) -> tuple[Tensor, dict[str, float]]:
    """Cross-entropy of glyph classes (N, C) against labels (N,): 0 is blank, IGNORE is left out.

    Blank places outnumber glyphs many times, so they count ``blank_weight`` each. Accuracy is over glyphs only.
    """
    keep = labels != IGNORE
    logits, labels = logits[keep].float(), labels[keep]
    each = F.cross_entropy(logits, labels, reduction="none")
    weight = torch.where(labels == 0, blank_weight, 1.0)
    loss = (each * weight).sum() / weight.sum().clamp_min(1.0)
    inked = labels > 0
    hits = (logits.argmax(dim=-1) == labels)[inked].float()
    return loss, {"loss": loss.item(), "accuracy": hits.mean().item() if hits.numel() else 0.0}


def guided_attention_loss(q: Tensor, k: Tensor, targets: Tensor) -> Tensor:
    """-log of the attention one head pays to the place it should look at.

    Args:
        q: (B, R, D) queries of the guided rows.
        k: (B, S, D) keys of the visual rows (all of them before every guided row).
        targets: (B, R) index of the wanted visual row, IGNORE where there is none.
    """
    scores = torch.einsum("brd,bsd->brs", q, k).float() * q.shape[-1] ** -0.5
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=IGNORE)
