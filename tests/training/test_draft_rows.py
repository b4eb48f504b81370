"""Rows trained at every depth are the rows that drafting computes: same states from a cache filled slot by slot."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from jocr.model.config import ClipConfig, OcrConfig, SamConfig, TextConfig
from jocr.model.decoder import positions_of
from jocr.model.ocr import OcrModel
from jocr.training.draft import DraftedAttention, shift


def tiny() -> OcrModel:
    text = TextConfig(
        vocab_size=40,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=64,
        moe_intermediate_size=16,
        n_routed_experts=4,
        num_experts_per_tok=2,
    )
    sam = SamConfig(16, 1, 1, 64, 16, 2, (0,), neck_channels=16, downsample_channels=(16, 16))
    model = OcrModel(OcrConfig(text, sam, ClipConfig(16, 1, 1, 4, 4), image_token_id=3)).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(8.0)  # far from the near-linear regime of small random weights
    return model


class SlotBySlot:
    """Keys and values of committed slots, then of drafted ones."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values = keys, values

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        self.keys, self.values = torch.cat([self.keys, k], 1), torch.cat([self.values, v], 1)
        heads = (t.transpose(1, 2) for t in (q, self.keys, self.values))
        return F.scaled_dot_product_attention(*heads).transpose(1, 2)


@pytest.mark.parametrize("base", [4, 7])
@torch.no_grad()
def test_training_rows_equal_drafting_rows(base: int) -> None:
    torch.manual_seed(0)
    model, t = tiny(), 12
    embedded = model.embed(torch.randint(4, 40, (t,)))[None]
    hidden = model.hidden(embedded)
    embedded[:, 0] = 0
    positions = positions_of(embedded)
    attend, state, states = DraftedAttention(), hidden, []
    for _ in range(3):
        state = model.draft(embedded, shift(state, 1), positions, t, attend)
        states.append(state)

    committed = DraftedAttention()  # depth 0 over the committed slots, as the decoder refills them
    model.draft(embedded[:, :base], shift(hidden, 1)[:, :base], positions[:, :base], t, committed)
    cache = SlotBySlot(committed.keys[0], committed.values[0])
    h = hidden[:, base - 1 : base]
    for depth in range(3):
        slot = slice(base + depth, base + depth + 1)
        h = model.draft(embedded[:, slot], h, positions[:, slot], t, cache)
        torch.testing.assert_close(h, states[depth][:, slot], atol=1e-3, rtol=1e-3)
