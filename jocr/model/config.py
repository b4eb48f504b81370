"""The published configuration, as typed values.

``config.json`` nests the decoder's keys under ``language_config`` (and repeats them on top), the towers' sizes under
``vision_config.width``. Sizes the published file leaves to its code (window, neck, MLP ratio) are optional keys here
with the published values as defaults, so that a scaled-down checkpoint can state its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jocr.errors import CheckpointError


@dataclass(frozen=True)
class SamConfig:
    width: int = 768
    layers: int = 12
    heads: int = 12
    image_size: int = 1024  # pixels; the absolute positions are stored for this size
    patch_size: int = 16
    window_size: int = 14  # patches
    global_attn_indexes: tuple[int, ...] = (2, 5, 8, 11)
    neck_channels: int = 256
    downsample_channels: tuple[int, int] = (512, 1024)
    mlp_ratio: float = 4.0


@dataclass(frozen=True)
class ClipConfig:
    width: int = 1024
    layers: int = 24
    heads: int = 16
    image_size: int = 224
    patch_size: int = 14
    mlp_ratio: float = 4.0

    @property
    def side(self) -> int:
        """Stored positions per side (16 for the published size)."""
        return self.image_size // self.patch_size


@dataclass(frozen=True)
class TextConfig:
    vocab_size: int = 129280
    hidden_size: int = 1280
    num_hidden_layers: int = 12
    num_attention_heads: int = 10
    num_key_value_heads: int = 10
    intermediate_size: int = 6848
    moe_intermediate_size: int = 896
    n_routed_experts: int = 64
    n_shared_experts: int = 2
    num_experts_per_tok: int = 6
    first_k_dense_replace: int = 1
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1_000_000.0
    max_position_embeddings: int = 32768
    routed_scaling_factor: float = 1.0
    norm_topk_prob: bool = False
    bos_token_id: int = 0
    eos_token_id: int = 1
    pad_token_id: int = 2

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads


@dataclass(frozen=True)
class OcrConfig:
    text: TextConfig = field(default_factory=TextConfig)
    sam: SamConfig = field(default_factory=SamConfig)
    clip: ClipConfig = field(default_factory=ClipConfig)
    mtp_num_heads: int = 1
    mtp_num_speculative_steps: int = 3
    image_token_id: int = 128815

    @property
    def projector_in(self) -> int:
        return self.clip.width + self.sam.downsample_channels[1]

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> OcrConfig:
        """Read ``config.json``'s dict.

        Raises:
            CheckpointError: the file asks for something this model is not (MLA, tied head, another gate).
        """
        lang = _decoder_keys(raw)
        _refuse(lang)
        text = TextConfig(**{k: lang[k] for k in TextConfig.__dataclass_fields__ if lang.get(k) is not None})
        width = raw.get("vision_config", {}).get("width", {})
        sam = _pick(SamConfig, width.get("sam_vit_b", {}))
        clip = _pick(ClipConfig, width.get("clip-l-14-224", {}))
        image = raw.get("image_token_id", raw.get("image_token_index", 128815))
        heads = raw.get("mtp_num_heads", raw.get("num_nextn_predict_layers", 0))
        return cls(text, sam, clip, heads, raw.get("mtp_num_speculative_steps", 3), image)

    @classmethod
    def load(cls, directory: str | Path) -> OcrConfig:
        path = Path(directory) / "config.json"
        try:
            return cls.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, json.JSONDecodeError) as error:
            raise CheckpointError(f"cannot read {path}: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """The published file layout (decoder keys on top and under ``language_config``)."""
        text = {k: getattr(self.text, k) for k in TextConfig.__dataclass_fields__}
        text |= {"use_mla": False, "scoring_func": "softmax", "topk_method": "greedy", "hidden_act": "silu"}
        text |= {"n_group": 1, "topk_group": 1, "moe_layer_freq": 1, "tie_word_embeddings": False}
        text |= {"qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "kv_lora_rank": None}
        text |= {"q_lora_rank": None, "attention_bias": False, "attention_dropout": 0.0}
        text |= {"torch_dtype": "bfloat16"}
        towers = {
            "clip-l-14-224": _fields(self.clip),
            "sam_vit_b": _fields(self.sam),
        }
        return {
            "architectures": ["DeepseekOCRForCausalLM"],
            "model_type": "deepseek_vl_v2",
            **text,
            "language_config": {"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", **text},
            "vision_config": {"image_size": self.sam.image_size, "model_type": "vision", "width": towers,
                              "model_name": "deeplip_b_l", "mlp_ratio": 3.7362},
            "projector_config": {"input_dim": self.projector_in, "n_embed": self.text.hidden_size,
                                 "model_type": "mlp_projector", "projector_type": "linear"},
            "tile_tag": "2D", "global_view_pos": "head",
            "image_token_id": self.image_token_id, "image_token_index": self.image_token_id,
            "num_nextn_predict_layers": self.mtp_num_heads, "mtp_num_heads": self.mtp_num_heads,
            "mtp_num_speculative_steps": self.mtp_num_speculative_steps, "mtp_recursive": True,
            "mtp_share_embedding_weights": True, "mtp_share_lm_head": True, "mtp_share_norm": True, "mtp_moe": False,
        }  # fmt: skip


def _fields(cfg: Any) -> dict[str, Any]:
    values = {k: getattr(cfg, k) for k in cfg.__dataclass_fields__}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _pick(kind: Any, raw: dict[str, Any]) -> Any:
    known = {k: raw[k] for k in kind.__dataclass_fields__ if k in raw}
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in known.items()})


def _decoder_keys(raw: dict[str, Any]) -> dict[str, Any]:
    """The decoder's keys: those on top win over ``language_config``, as in the published code.

    ``rope_theta`` may also stand in ``rope_parameters``. A file without it means 10,000, the architecture's default
    (DeepSeek-OCR's own config); the published model states 1,000,000.
    """
    lang = {**raw.get("language_config", {}), **{k: v for k, v in raw.items() if v is not None}}
    rope = lang.get("rope_parameters") or {}
    return {"rope_theta": rope.get("rope_theta", 10_000.0), **lang}


def _refuse(lang: dict[str, Any]) -> None:
    wanted = {"use_mla": False, "scoring_func": "softmax", "topk_method": "greedy", "tie_word_embeddings": False}
    for key, value in wanted.items():
        if lang.get(key, value) != value:
            raise CheckpointError(f"config.json has {key}={lang[key]!r}; this model needs {value!r}")
    if lang.get("num_key_value_heads", lang.get("num_attention_heads")) != lang.get("num_attention_heads"):
        raise CheckpointError("grouped key/value heads are not part of this architecture")
    if lang.get("moe_layer_freq", 1) != 1 or lang.get("n_group", 1) not in (None, 1):
        raise CheckpointError("only one expert group and an MoE in every layer past the first dense ones is supported")
