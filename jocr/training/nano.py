"""Nano: the published architecture scaled down until two CPU cores can teach it to read clean print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jocr.model.config import ClipConfig, OcrConfig, SamConfig, TextConfig
from jocr.pages.tiles import ProcessorConfig

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PROCESSOR = ProcessorConfig(base_size=384, image_size=320)


def nano_config(vocab_size: int, image_token_id: int) -> OcrConfig:
    """Positions for views of 256 px, resampled to the sizes of ``PROCESSOR``; widths are multiples of 32 and heads 64
    wide, as vLLM wants."""
    sam = SamConfig(width=96, layers=3, heads=3, image_size=256, window_size=8, global_attn_indexes=(2,),
                    neck_channels=96, downsample_channels=(160, 192))  # fmt: skip
    clip = ClipConfig(width=192, layers=3, heads=3, image_size=16, patch_size=4)
    text = TextConfig(
        vocab_size=vocab_size, hidden_size=192, num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=3,
        intermediate_size=576, moe_intermediate_size=128, n_routed_experts=8, n_shared_experts=2,
        num_experts_per_tok=2, max_position_embeddings=4096,
    )  # fmt: skip
    return OcrConfig(text, sam, clip, image_token_id=image_token_id)


def nano_tokenizer() -> Tokenizer:
    """256 bytes, specials, structure tokens of ``synth.vocab`` and each known instruction as one token."""
    from jocr.model.tokenizer import build_byte_tokenizer
    from jocr.synth.instructions import CHINESE, DEFAULT, ENGLISH
    from jocr.synth.vocab import STRUCTURE_TOKENS

    return build_byte_tokenizer(STRUCTURE_TOKENS, [DEFAULT, *ENGLISH, *CHINESE])


def nano_directory() -> Path:
    """Where the shipped checkpoint lies inside the package."""
    return Path(__file__).resolve().parents[1] / "data" / "nano"
