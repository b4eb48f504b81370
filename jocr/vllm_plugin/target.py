"""The target architecture: DeepSeek-OCR with the towers' sizes taken from the checkpoint."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch import nn
from transformers import CLIPVisionConfig
from vllm.config import VllmConfig
from vllm.model_executor.layers.conv import Conv2dLayer
from vllm.model_executor.models.deepencoder import DeepCLIPVisionTransformer, ImageEncoderViT
from vllm.model_executor.models.deepseek_ocr import DeepseekOCRForCausalLM
from vllm.model_executor.models.deepseek_vl2 import MlpProjector
from vllm.model_executor.models.utils import init_vllm_registered_model, maybe_prefix
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.tokenizers import cached_tokenizer_from_config

from jocr.model.config import ClipConfig, OcrConfig, SamConfig
from jocr.vllm_plugin.processor import IMAGE, PageDummyInputsBuilder, PageProcessingInfo, PageProcessor

DRAFT_PREFIXES = ("mtp_module.", "mtp_embed_tokens.")


@MULTIMODAL_REGISTRY.register_processor(PageProcessor, info=PageProcessingInfo, dummy_inputs=PageDummyInputsBuilder)
class OcrForCausalLM(DeepseekOCRForCausalLM):
    """Stock's way from features to prompt rows and stock's decoder; towers of any size; no draft tensors."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        nn.Module.__init__(self)
        model = vllm_config.model_config
        self.config = config = model.hf_config
        self.model_config = model
        self.multimodal_config = model.multimodal_config
        self.vision_config, self.projector_config = config.vision_config, config.projector_config
        self.text_config = config.text_config
        self.image_token_id = cached_tokenizer_from_config(model).get_vocab()[IMAGE]
        config.image_token_index = self.image_token_id  # the drafter reads it there
        with self._mark_tower_model(vllm_config, "image"):
            self._build_vision(vllm_config, prefix)
        with self._mark_language_model(vllm_config):
            self.language_model = init_vllm_registered_model(
                vllm_config=vllm_config, hf_config=self.text_config, prefix=maybe_prefix(prefix, "language_model")
            )
        self.make_empty_intermediate_tensors = self.language_model.make_empty_intermediate_tensors

    def _build_vision(self, vllm_config: VllmConfig, prefix: str) -> None:
        cfg = towers(self.config)
        self.sam_model = build_sam(cfg.sam)
        self.vision_model = DeepCLIPVisionTransformer(
            config=clip_config(cfg.clip),
            quant_config=vllm_config.quant_config,
            prefix=maybe_prefix(prefix, "vision_model"),
        )
        self.projector = MlpProjector(self.projector_config)
        self.tile_tag, self.global_view_pos = self.config.tile_tag, self.config.global_view_pos
        width = self.projector_config.n_embed
        self.image_newline = nn.Parameter(torch.empty(width))
        self.view_seperator = nn.Parameter(torch.empty(width))  # the published name is spelt so

    def _pixel_values_to_embedding(
        self, pixel_values: torch.Tensor, images_crop: torch.Tensor, images_spatial_crop: torch.Tensor
    ) -> Any:
        """One (n, H) a page: tiles, global view, separator. Whether a page has tiles is what its grid says (stock
        looks whether the pixels sum to zero, which a page of even grey does too)."""
        counts = [int(w) * int(h) if int(w) * int(h) > 1 else 0 for w, h in images_spatial_crop]
        pages = []
        for i, tiles in enumerate(images_crop.split(counts)):
            local = [self._encode_local_features(tiles, images_spatial_crop[i])] if counts[i] else []
            whole = self._encode_global_features(pixel_values[[i]])
            pages.append(torch.cat([*local, whole, self.view_seperator[None]]))
        return pages

    def _encode_local_features(self, patches: torch.Tensor, crop_shape: torch.Tensor) -> torch.Tensor:
        raw = self.sam_model(patches)
        semantic = self.vision_model(patches, raw)[:, 1:]
        features = self.projector(torch.cat((semantic, raw.flatten(2).transpose(1, 2)), dim=-1))
        return self._assemble_patch_grid(features, crop_shape)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Everything but the draft head, which is loaded from its own directory."""
        return super().load_weights((n, w) for n, w in weights if not n.startswith(DRAFT_PREFIXES))

    @property
    def image_side(self) -> int:
        return self._side("base_size", 1024)

    @property
    def patch_side(self) -> int:
        return self._side("image_size", 640)

    def _side(self, key: str, published: int) -> int:
        """Tokens per side of a view (read by vLLM's graphs of the vision part)."""
        from vllm.transformers_utils.repo_utils import get_hf_file_to_dict

        raw = get_hf_file_to_dict("processor_config.json", self.model_config.model, self.model_config.revision) or {}
        return math.ceil((raw.get(key, published) // 16) / 4)


def towers(config: Any) -> OcrConfig:
    """Sizes of a config object's towers; DeepSeek-OCR's own where it names none."""
    width = getattr(config.vision_config, "width", None)
    return OcrConfig.from_dict({"vision_config": {"width": width if isinstance(width, dict) else {}}})


def clip_config(cfg: ClipConfig) -> CLIPVisionConfig:
    return CLIPVisionConfig(
        hidden_size=cfg.width,
        intermediate_size=int(cfg.width * cfg.mlp_ratio),
        num_attention_heads=cfg.heads,
        num_hidden_layers=cfg.layers,
        image_size=cfg.image_size,
        patch_size=cfg.patch_size,
        layer_norm_eps=1e-5,
        hidden_act="quick_gelu",
    )


def build_sam(cfg: SamConfig) -> ImageEncoderViT:
    """vLLM's SAM encoder with this checkpoint's sizes; stock's two last convolutions have theirs written in."""
    first, second = cfg.downsample_channels
    sam = ImageEncoderViT(
        depth=cfg.layers,
        embed_dim=cfg.width,
        img_size=cfg.image_size,
        mlp_ratio=cfg.mlp_ratio,
        norm_layer=partial(nn.LayerNorm, eps=1e-6),
        num_heads=cfg.heads,
        patch_size=cfg.patch_size,
        qkv_bias=True,
        use_rel_pos=True,
        global_attn_indexes=cfg.global_attn_indexes,
        window_size=cfg.window_size,
        out_chans=cfg.neck_channels,
        last_conv_output=second,
    )
    sam.net_2 = Conv2dLayer(cfg.neck_channels, first, kernel_size=3, stride=2, padding=1, bias=False)
    sam.net_3 = Conv2dLayer(first, second, kernel_size=3, stride=2, padding=1, bias=False)
    return sam
