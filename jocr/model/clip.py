"""CLIP's ViT, reading SAM's compressed features in place of its own patch embeddings."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jocr.model.chunked import chunked_attention
from jocr.model.config import ClipConfig
from jocr.model.sam import resize_grid


class ClipEmbeddings(nn.Module):
    """Class token and positions. ``patch_embedding`` exists in the published file and is never used here."""

    def __init__(self, cfg: ClipConfig) -> None:
        super().__init__()
        self.side = cfg.side
        self.class_embedding = nn.Parameter(torch.zeros(cfg.width))
        self.patch_embedding = nn.Conv2d(3, cfg.width, cfg.patch_size, stride=cfg.patch_size, bias=False)
        self.position_embedding = nn.Embedding(cfg.side**2 + 1, cfg.width)

    def forward(self, features: Tensor) -> Tensor:
        """(B, width, h, w) -> (B, 1 + h*w, width)."""
        b, c, h, w = features.shape
        table = self.position_embedding.weight
        grid = resize_grid(table[1:].view(1, self.side, self.side, c), (h, w)).reshape(1, h * w, c)
        positions = torch.cat([table[None, :1], grid], dim=1)
        cls = self.class_embedding.expand(b, 1, c)
        return torch.cat([cls, features.flatten(2).transpose(1, 2)], dim=1) + positions


class ClipAttention(nn.Module):
    def __init__(self, cfg: ClipConfig) -> None:
        super().__init__()
        self.heads = cfg.heads
        self.qkv_proj = nn.Linear(cfg.width, 3 * cfg.width)
        self.out_proj = nn.Linear(cfg.width, cfg.width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv_proj(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if torch.is_grad_enabled() and x.device.type == "cpu":
            out = chunked_attention(q * q.shape[-1] ** -0.5, k, v)
        else:
            out = F.scaled_dot_product_attention(q, k, v)
        return self.out_proj(out.transpose(1, 2).reshape(b, t, c))


class ClipMlp(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc1(x)
        return self.fc2(x * torch.sigmoid(1.702 * x))  # quick-GELU


class ClipLayer(nn.Module):
    def __init__(self, cfg: ClipConfig) -> None:
        super().__init__()
        self.layer_norm1 = nn.LayerNorm(cfg.width, eps=1e-5)
        self.self_attn = ClipAttention(cfg)
        self.layer_norm2 = nn.LayerNorm(cfg.width, eps=1e-5)
        self.mlp = ClipMlp(cfg.width, int(cfg.width * cfg.mlp_ratio))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.layer_norm1(x))
        return x + self.mlp(self.layer_norm2(x))


class ClipTransformer(nn.Module):
    def __init__(self, cfg: ClipConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ClipLayer(cfg) for _ in range(cfg.layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class ClipEncoder(nn.Module):
    """SAM features (B, width, h, w) -> (B, 1 + h*w, width), class token first."""

    def __init__(self, cfg: ClipConfig) -> None:
        super().__init__()
        self.embeddings = ClipEmbeddings(cfg)
        self.pre_layrnorm = nn.LayerNorm(cfg.width, eps=1e-5)  # the published name is spelt so
        self.transformer = ClipTransformer(cfg)

    def forward(self, features: Tensor) -> Tensor:
        return self.transformer(self.pre_layrnorm(self.embeddings(features)))
