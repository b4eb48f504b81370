"""The published ``config.json`` as vLLM has to read it.

vLLM builds the decoder's settings from ``language_config`` alone and fills what is missing with DeepSeek-V2's values:
then it takes the model for one with latent attention and loading dies, or rotates with a theta of 10,000. The published
files state part of the decoder's keys on top; those win, as in ``jocr.model.config``.
"""

from __future__ import annotations

from typing import Any

from vllm.transformers_utils.configs.deepseek_vl2 import DeepseekVLV2Config

from jocr.model.config import OcrConfig, TextConfig

IMAGE_TOKEN_ID = 128815
ALWAYS: dict[str, Any] = {
    "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "kv_lora_rank": None, "q_lora_rank": None,
    "n_group": 1, "topk_group": 1, "moe_layer_freq": 1, "scoring_func": "softmax", "topk_method": "greedy",
    "hidden_act": "silu", "attention_bias": False, "tie_word_embeddings": False,
}  # fmt: skip
"""What plain multi-head attention and this model's gate mean in DeepSeek-V2's vocabulary."""


class CompletedConfig(DeepseekVLV2Config):
    """As stock for other models of this type; DeepSeek-OCR's layout gets every key of its decoder stated.

    Raises:
        CheckpointError: the file asks for something this model is not.
    """

    def __init__(self, **kwargs: Any) -> None:
        if is_ocr(kwargs):
            ocr = OcrConfig.from_dict(kwargs)
            kwargs["language_config"] = complete(kwargs)
            kwargs["image_token_index"] = ocr.image_token_id
        super().__init__(**kwargs)


def is_ocr(raw: dict[str, Any]) -> bool:
    """Whether a config.json is of the layout this package implements (and not another DeepSeek-VL2 model)."""
    return "DeepseekOCRForCausalLM" in (raw.get("architectures") or [])


def complete(raw: dict[str, Any]) -> dict[str, Any]:
    """``language_config`` with every key that vLLM's DeepSeek-V2 reads."""
    text = OcrConfig.from_dict(raw).text
    known = {name: getattr(text, name) for name in TextConfig.__dataclass_fields__}
    theta = known.pop("rope_theta")
    rope = {"rope_parameters": {"rope_type": "default", "rope_theta": theta}}
    kept = {k: v for k, v in raw.get("language_config", {}).items() if k not in {"rope_theta", "rope_scaling"}}
    return {**kept, **known, **ALWAYS, **rope}
