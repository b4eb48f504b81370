"""SAM's ViT image encoder with two further stride-2 convolutions (DeepSeek-OCR's compressor).

Patches of 16 px; windowed attention except in the global blocks; decomposed relative positions everywhere. The neck
gives ``neck_channels``, then two convolutions halve the grid twice: 1024 px -> 64x64 patches -> 16x16 features.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jocr.model.config import SamConfig
from jocr.model.relative import attention, relative_positions


def resize_grid(positions: Tensor, size: tuple[int, int]) -> Tensor:
    """Absolute positions (1, H, W, C) resampled (bicubic, antialiased) to (1, *size, C)."""
    if tuple(positions.shape[1:3]) == size:
        return positions
    x = positions.permute(0, 3, 1, 2).float()
    x = F.interpolate(x, size=size, mode="bicubic", antialias=True, align_corners=False)
    return x.to(positions.dtype).permute(0, 2, 3, 1)


class SamAttention(nn.Module):
    def __init__(self, width: int, heads: int, side: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.rel_pos_h = nn.Parameter(torch.zeros(2 * side - 1, width // heads))
        self.rel_pos_w = nn.Parameter(torch.zeros(2 * side - 1, width // heads))

    def forward(self, x: Tensor) -> Tensor:
        """(B, H, W, C) -> the same shape, full attention inside each item."""
        b, h, w, c = x.shape
        q, k, v = self.qkv(x).view(b, h * w, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        grid = q.reshape(b, self.heads, h, w, -1)
        by_row = torch.einsum("bnhwd,hkd->bnhwk", grid, relative_positions(h, self.rel_pos_h))
        by_col = torch.einsum("bnhwd,wkd->bnhwk", grid, relative_positions(w, self.rel_pos_w))
        out = attention(q, k, v, by_row, by_col)
        return self.proj(out.transpose(1, 2).reshape(b, h, w, c))


class SamMlp(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.lin1 = nn.Linear(width, hidden)
        self.lin2 = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.lin2(F.gelu(self.lin1(x)))


class SamBlock(nn.Module):
    def __init__(self, cfg: SamConfig, window: int) -> None:
        super().__init__()
        self.window = window  # 0: global
        side = window or cfg.image_size // cfg.patch_size
        self.norm1 = nn.LayerNorm(cfg.width, eps=1e-6)
        self.attn = SamAttention(cfg.width, cfg.heads, side)
        self.norm2 = nn.LayerNorm(cfg.width, eps=1e-6)
        self.mlp = SamMlp(cfg.width, int(cfg.width * cfg.mlp_ratio))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        y = self._windowed(y) if self.window else self.attn(y)
        x = x + y
        return x + self.mlp(self.norm2(x))

    def _windowed(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        s = self.window
        x = F.pad(x, (0, 0, 0, -w % s, 0, -h % s))
        hp, wp = x.shape[1:3]
        x = x.view(b, hp // s, s, wp // s, s, c).transpose(2, 3).reshape(-1, s, s, c)
        x = self.attn(x)
        x = x.view(b, hp // s, wp // s, s, s, c).transpose(2, 3).reshape(b, hp, wp, c)
        return x[:, :h, :w]


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of (B, C, H, W)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        x = F.layer_norm(x.permute(0, 2, 3, 1), self.weight.shape, self.weight, self.bias, 1e-6)
        return x.permute(0, 3, 1, 2)


class PatchEmbed(nn.Module):
    def __init__(self, width: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, stride=patch)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x).permute(0, 2, 3, 1)


class SamEncoder(nn.Module):
    """(B, 3, S, S) in [-1, 1] -> (B, downsample_channels[1], S/64, S/64)."""

    def __init__(self, cfg: SamConfig) -> None:
        super().__init__()
        side = cfg.image_size // cfg.patch_size
        self.patch_embed = PatchEmbed(cfg.width, cfg.patch_size)
        self.pos_embed = nn.Parameter(torch.zeros(1, side, side, cfg.width))
        windows = [0 if i in cfg.global_attn_indexes else cfg.window_size for i in range(cfg.layers)]
        self.blocks = nn.ModuleList(SamBlock(cfg, w) for w in windows)
        n = cfg.neck_channels
        self.neck = nn.Sequential(
            nn.Conv2d(cfg.width, n, 1, bias=False), ChannelNorm(n),
            nn.Conv2d(n, n, 3, padding=1, bias=False), ChannelNorm(n),
        )  # fmt: skip
        first, second = cfg.downsample_channels
        self.net_2 = nn.Conv2d(n, first, 3, stride=2, padding=1, bias=False)
        self.net_3 = nn.Conv2d(first, second, 3, stride=2, padding=1, bias=False)

    def patches(self, pixels: Tensor) -> Tensor:
        """Features of every patch after the last block: (B, S/16, S/16, width)."""
        x = self.patch_embed(pixels)
        x = x + resize_grid(self.pos_embed, (x.shape[1], x.shape[2]))
        for block in self.blocks:
            x = block(x)
        return x

    def compress(self, patches: Tensor) -> Tensor:
        """Neck and the two stride-2 convolutions, on (B, H, W, width)."""
        x = self.neck(patches.permute(0, 3, 1, 2))
        return self.net_3(self.net_2(x))

    def forward(self, pixels: Tensor) -> Tensor:
        return self.compress(self.patches(pixels))
