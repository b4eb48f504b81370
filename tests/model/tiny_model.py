"""A model of the published architecture small enough to build in milliseconds."""

from __future__ import annotations

import torch

from jocr.model.config import ClipConfig, OcrConfig, SamConfig, TextConfig
from jocr.pages.tiles import ProcessorConfig

TEXT = TextConfig(
    vocab_size=268, hidden_size=64, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=2,
    intermediate_size=96, moe_intermediate_size=32, n_routed_experts=8, n_shared_experts=2, num_experts_per_tok=2,
    max_position_embeddings=1024,
)  # fmt: skip
SAM = SamConfig(
    width=32, layers=3, heads=2, image_size=128, window_size=3, global_attn_indexes=(2,), neck_channels=16,
    downsample_channels=(24, 32),
)  # fmt: skip
CLIP = ClipConfig(width=32, layers=2, heads=2, image_size=28, patch_size=14)
TINY = OcrConfig(TEXT, SAM, CLIP, image_token_id=3)
PROCESSOR = ProcessorConfig(base_size=128, image_size=64)


def scatter(model: torch.nn.Module, seed: int = 0) -> None:
    """Fill every parameter with noise, so that no zero or one of the initialisation hides a mistake."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator) * 0.2
            parameter.copy_(noise + (1.0 if parameter.dim() == 1 else 0.0))
