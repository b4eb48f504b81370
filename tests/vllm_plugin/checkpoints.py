"""Random checkpoints of the published layout, small enough that an engine starts in seconds, and pages for them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from jocr.model.config import OcrConfig
from jocr.model.tokenizer import Tokenizer, build_byte_tokenizer
from jocr.model.weights import save_checkpoint
from jocr.records import PageInput
from tests.decoding.models import tiny_model
from tests.model.tiny_model import PROCESSOR
from tests.model.tiny_model import TINY as BASE

TINY = OcrConfig(
    replace(
        BASE.text, vocab_size=272, hidden_size=128, num_attention_heads=4, num_key_value_heads=4,
        intermediate_size=192, moe_intermediate_size=64, max_position_embeddings=2048,
    ),
    replace(BASE.sam, width=64, neck_channels=32, downsample_channels=(48, 64)),
    replace(BASE.clip, width=64), image_token_id=3,
)  # fmt: skip
"""Wider than the tests of the model need: vLLM wants heads of 32 and multiples of 32."""
SIZES = ((64, 64), (50, 61), (130, 65), (190, 190), (64, 200), (250, 120))  # one view, one view, 2, 9, 3, 8 tiles


def tiny_checkpoint(directory: Path, seed: int, noise: float, cfg: OcrConfig = TINY) -> Path:
    """``noise`` 0.3: nearly deterministic, 1.0 and above: noisy. See ``tests.decoding.models.tiny_model``."""
    model = tiny_model(seed, noise, cfg)
    tokenizer = Tokenizer(build_byte_tokenizer(["<td>", "</td>"], []))
    save_checkpoint(model, tokenizer, PROCESSOR, directory)
    return directory


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
