"""Random checkpoints of the published layout, small enough that an engine starts in seconds, and pages for them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from jocr.model.config import ClipConfig, OcrConfig, SamConfig, TextConfig
from jocr.model.tokenizer import Tokenizer, build_byte_tokenizer
from jocr.model.weights import save_checkpoint
from jocr.pages.tiles import ProcessorConfig
from jocr.records import PageInput
from tests.decoding.models import tiny_model

TEXT = TextConfig(
    vocab_size=272, hidden_size=128, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4,
    intermediate_size=192, moe_intermediate_size=64, n_routed_experts=8, n_shared_experts=2, num_experts_per_tok=2,
    max_position_embeddings=2048,
)  # fmt: skip
SAM = SamConfig(
    width=64, layers=3, heads=2, image_size=128, window_size=3, global_attn_indexes=(2,), neck_channels=32,
    downsample_channels=(48, 64),
)  # fmt: skip
CLIP = ClipConfig(width=64, layers=2, heads=2, image_size=28, patch_size=14)
TINY = OcrConfig(TEXT, SAM, CLIP, image_token_id=3)
PROCESSOR = ProcessorConfig(base_size=128, image_size=64)
SIZES = ((64, 64), (50, 61), (130, 65), (190, 190), (64, 200), (250, 120))  # one view, one view, 2, 9, 3, 8 tiles


def tiny_checkpoint(directory: Path, seed: int, noise: float, cfg: OcrConfig = TINY) -> Path:
    """``noise`` 0.3: nearly deterministic, 1.0 and above: noisy. See ``tests.decoding.models.tiny_model``."""
    model = tiny_model(seed, noise, cfg)
    tokenizer = Tokenizer(build_byte_tokenizer(["<td>", "</td>"], []))
    save_checkpoint(model, tokenizer, PROCESSOR, directory)
    return directory


def larger_noise(cfg: OcrConfig, layers: int) -> OcrConfig:
    return replace(cfg, text=replace(cfg.text, num_hidden_layers=layers))


def page(seed: int, size: tuple[int, int] | None = None, max_tokens: int = 24) -> PageInput:
    """A page of coloured noise over a gradient; its size, where not given, goes round ``SIZES``."""
    width, height = size or SIZES[seed % len(SIZES)]
    rng = np.random.default_rng(seed)
    ramp = np.linspace(0, 200, width)[None, :, None]
    pixels = (ramp + rng.integers(0, 56, (height, width, 3))).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png")
    instruction = f"Read page {seed}: {chr(97 + seed % 26) * (1 + seed % 7)}."
    return PageInput(f"page-{seed}", out.getvalue(), instruction, max_tokens)


def pages(count: int, start: int = 0, max_tokens: int = 24) -> list[PageInput]:
    return [page(start + i, max_tokens=max_tokens) for i in range(count)]
