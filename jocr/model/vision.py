"""Pixels to visual tokens, and where each goes in the prompt.

The layout of a page (DeepSeek-OCR "Gundam"): local tiles as one mosaic, row by row, ``image_newline`` after each
row; the global view's rows, ``image_newline`` after each; then ``view_seperator``. A global view of side g gives
g*(g+1)+1 tokens, a w x h grid of tiles of side l gives h*l*(w*l+1) more.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from jocr.model.clip import ClipEncoder
from jocr.model.config import OcrConfig
from jocr.model.sam import SamEncoder

NEWLINE, SEPARATOR = -2, -1


@lru_cache(maxsize=256)
def page_layout(grid: tuple[int, int] | None, global_side: int, local_side: int) -> np.ndarray:
    """Order of a page's visual tokens in the prompt, (n,) int64.

    Entries index the page's own features, tiles first (tile by tile, row-major inside each), then the global view;
    ``NEWLINE`` and ``SEPARATOR`` stand for the two learned vectors.

    Args:
        grid: (columns, rows) of local tiles, or None where there are none.
        global_side, local_side: tokens per side of the global view and of one tile.
    """
    parts = []
    tiles = 0
    if grid is not None:
        w, h = grid
        tiles = w * h * local_side**2
        mosaic = np.arange(tiles).reshape(h, w, local_side, local_side)
        parts.append(_rows(mosaic.transpose(0, 2, 1, 3).reshape(h * local_side, w * local_side)))
    parts.append(_rows(tiles + np.arange(global_side**2).reshape(global_side, global_side)))
    return np.concatenate([*parts, [SEPARATOR]]).astype(np.int64)


def _rows(index: np.ndarray) -> np.ndarray:
    return np.concatenate([index, np.full((index.shape[0], 1), NEWLINE)], axis=1).reshape(-1)


class Projector(nn.Module):
    def __init__(self, cfg: OcrConfig) -> None:
        super().__init__()
        self.layers = nn.Linear(cfg.projector_in, cfg.text.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def view_tokens(sam: SamEncoder, clip: ClipEncoder, projector: Projector, pixels: Tensor) -> Tensor:
    """Views of one size (B, 3, S, S) in [-1, 1] -> (B, (S/64)^2, hidden), row-major."""
    return join_towers(clip, projector, sam(pixels))


def join_towers(clip: ClipEncoder, projector: Projector, features: Tensor) -> Tensor:
    """SAM features (B, C, h, w) -> projected tokens; CLIP's come first in the concatenation, without class token."""
    semantic = clip(features)[:, 1:]
    return projector(torch.cat([semantic, features.flatten(2).transpose(1, 2)], dim=-1))
