"""Losses against hand-worked values and against what they must react to."""

from __future__ import annotations

import math

import pytest
import torch

from jocr.losses.draft import depth_weights, draft_loss
from jocr.losses.sft import IGNORE, glyph_loss, guided_attention_loss, token_loss


def test_depth_weights_are_the_published_ones() -> None:
    assert [round(w, 2) for w in depth_weights(3)] == [0.51, 0.31, 0.18]


def test_token_loss_of_flat_logits_is_log_vocabulary() -> None:
    loss, metrics = token_loss(torch.zeros(5, 7), torch.tensor([0, 1, 2, 3, 4]))
    assert loss.item() == pytest.approx(math.log(7))
    assert metrics["accuracy"] == pytest.approx(0.2)  # argmax of a tie is class 0


def test_glyph_loss_ignores_unknown_places_and_weighs_blank_ones() -> None:
    logits = torch.zeros(4, 3)
    logits[0, 1] = 50.0  # right glyph
    logits[1, 2] = 50.0  # a blank place read as a glyph: costs 50, weighs 0.1
    loss, metrics = glyph_loss(logits, torch.tensor([1, 0, IGNORE, 0]), blank_weight=0.1)
    assert loss.item() == pytest.approx((0.0 + 0.1 * 50 + 0.1 * math.log(3)) / 1.2, rel=1e-4)
    assert metrics["accuracy"] == 1.0


def test_guided_attention_is_lowest_where_the_head_looks() -> None:
    k = torch.eye(4)[None] * 8  # four visual rows, head width 4
    q = k.clone()
    right = guided_attention_loss(q, k, torch.tensor([[0, 1, 2, IGNORE]]))
    wrong = guided_attention_loss(q, k, torch.tensor([[1, 2, 3, IGNORE]]))
    assert right < 1e-6 < 10 < wrong


def test_draft_loss_follows_the_verifier_not_the_reference() -> None:
    torch.manual_seed(0)
    verifier_state, verifier_logits = torch.randn(1, 6, 8), torch.randn(1, 6, 5)
    keep = [torch.ones(1, 6, dtype=torch.bool)] * 3
    same = [verifier_logits[0].clone().requires_grad_() for _ in range(3)]
    perfect, metrics = draft_loss([verifier_state] * 3, same, keep, verifier_state, verifier_logits)
    assert [metrics[f"agree_{d}"] for d in (1, 2, 3)] == [1.0, 1.0, 1.0]
    flipped = [-logits for logits in same]
    worse, metrics = draft_loss([verifier_state] * 3, flipped, keep, verifier_state, verifier_logits)
    assert worse > perfect
    perfect.backward()
    assert verifier_state.grad is None  # the verifier's side is constant
