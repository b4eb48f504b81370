"""FastMTP's loss (Tencent technical report, section on training) with jina-ocr-v1's two alignments.

Every depth predicts what the frozen verifier itself would write; depths weigh 0.51, 0.31, 0.18 (beta 0.6,
normalised). Beside the cross-entropy, the draft's distribution is drawn to the verifier's, its state to the
verifier's state; both targets are constants.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def depth_weights(depths: int, beta: float = 0.6) -> list[float]:
    """beta^k, normalised: 0.51, 0.31, 0.18 for three depths."""
    raw = [beta**k for k in range(depths)]
    return [w / sum(raw) for w in raw]


def draft_loss(
    states: list[Tensor],
    logits: list[Tensor],
    keep: list[Tensor],
    verifier_state: Tensor,
    verifier_logits: Tensor,
    *,
    distribution: float = 0.5,
    feature: float = 0.1,
) -> tuple[Tensor, dict[str, float]]:
    """Weighted sum over depths.

    Args:
        states: per depth, post-norm draft states (B, T, H).
        logits: per depth, draft logits of the kept rows (N_k, V).
        keep: per depth, boolean (B, T): rows that count.
        verifier_state: (B, T, H) post-norm.
        verifier_logits: (B, T, V).
    """
    total = verifier_state.new_zeros((), dtype=torch.float32)
    metrics = {}
    for depth, weight in enumerate(depth_weights(len(states))):
        rows = keep[depth]
        wanted = verifier_logits[rows].float()
        answer = wanted.argmax(dim=-1)
        log_p = logits[depth].float().log_softmax(dim=-1)
        hard = F.nll_loss(log_p, answer)
        soft = F.kl_div(log_p, wanted.log_softmax(dim=-1), reduction="batchmean", log_target=True)
        near = F.smooth_l1_loss(states[depth][rows].float(), verifier_state[rows].float())
        total = total + weight * (hard + distribution * soft + feature * near)
        metrics[f"agree_{depth + 1}"] = (log_p.argmax(dim=-1) == answer).float().mean().item()
    return total, metrics | {"loss": total.item()}
