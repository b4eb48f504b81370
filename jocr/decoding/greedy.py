"""Plain greedy decoding, one row a step, written to be read: the oracle that every faster path is compared with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from jocr.decoding.stopping import Stopper
from jocr.model.ocr import OcrModel


class GrowingCache:
    """Keys and values of every layer, concatenated as they come."""

    def __init__(self) -> None:
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Rows (1, T, heads, head_dim) see everything kept so far and, causally, each other."""
        if layer in self.kept:
            k, v = (torch.cat([old, new], dim=1) for old, new in zip(self.kept[layer], (k, v), strict=True))
        self.kept[layer] = (k, v)
        rows, seen = q.shape[1], k.shape[1]
        mask = torch.ones(rows, seen, dtype=torch.bool, device=q.device).tril(seen - rows)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)


@torch.inference_mode()
def greedy(model: OcrModel, ids: Sequence[int], visual: Tensor | None, stopper: Stopper) -> list[int]:
    """Decode one page. ``ids`` is the prompt, ``visual`` (n, H) its visual tokens.

    Returns:
        the generated tokens that ``stopper`` kept; why they ended is in ``stopper.stop``.
    """
    cache = GrowingCache()
    prompt = torch.tensor(ids, device=model.lm_head.weight.device)
    state = model.hidden(model.embed(prompt, visual)[None], attend=cache.attend)[:, -1:]
    position = len(ids)
    tokens: list[int] = []
    while stopper.stop is None:
        token = int(model.lm_head(state)[0, -1].argmax())
        stopper.take(tokens, [token])
        row = model.embed(torch.tensor([token], device=prompt.device))[None]
        state = model.hidden(row, torch.tensor([[position]], device=prompt.device), position + 1, cache.attend)
        position += 1
    return stopper.trim(tokens)
