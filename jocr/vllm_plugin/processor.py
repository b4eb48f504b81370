"""Pages into pixels and placeholders, by this project's own tile code, so that both engines see the same pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers import BatchFeature
from vllm.config.multimodal import MultiModalDummyOptions
from vllm.model_executor.models.deepseek_ocr import (
    DeepseekOCRDummyInputsBuilder,
    DeepseekOCRMultiModalProcessor,
    DeepseekOCRProcessingInfo,
)
from vllm.multimodal.parse import ImageEmbeddingItems, ImageProcessorItems, ImageSize, MultiModalDataItems
from vllm.multimodal.processing import PromptReplacement, PromptUpdate
from vllm.transformers_utils.processors.deepseek_ocr import MAX_CROPS
from vllm.transformers_utils.repo_utils import get_hf_file_to_dict

from jocr.pages.tiles import ProcessorConfig, choose_grid, normalise, page_views

IMAGE = "<image>"


class PageProcessingInfo(DeepseekOCRProcessingInfo):
    """Sizes from the checkpoint's ``processor_config.json``. Tiles: what the engine was told (``hf_overrides`` with
    ``max_tiles``), else what that file says, else nine where the checkpoint has a draft head."""

    @cached_property
    def tiling(self) -> ProcessorConfig:
        model = self.ctx.model_config
        raw = get_hf_file_to_dict("processor_config.json", model.model, model.revision) or {}
        known: dict[str, Any] = {k: raw[k] for k in ProcessorConfig.__dataclass_fields__ if k in raw}
        if told := getattr(model.hf_config, "max_tiles", None):
            known["max_tiles"] = told
        elif not getattr(model.hf_config, "mtp_num_heads", 0):
            known.setdefault("max_tiles", MAX_CROPS)
        return ProcessorConfig(**known)

    @cached_property
    def image_token_id(self) -> int:
        return int(self.get_tokenizer().get_vocab()[IMAGE])

    def get_supported_mm_limits(self) -> Mapping[str, int | None]:
        return {"image": None}

    def get_num_image_tokens(self, *, image_width: int, image_height: int, cropping: bool = True) -> int:
        """Placeholders of one page."""
        grid = choose_grid(image_width, image_height, self.tiling) if cropping else None
        return self.tiling.token_count(grid)

    def get_image_size_with_most_features(self) -> ImageSize:
        """A strip that is cut into the most tiles one above the other: every row of tokens adds a line break."""
        n = self.tiling.image_size
        return ImageSize(width=n, height=n * (self.tiling.max_tiles if self.tiling.crop_mode else 1))


class PageDummyInputsBuilder(DeepseekOCRDummyInputsBuilder):
    def get_dummy_text(self, mm_counts: Mapping[str, int]) -> str:
        return IMAGE * mm_counts.get("image", 0)

    def get_dummy_mm_data(
        self, seq_len: int, mm_counts: Mapping[str, int], mm_options: MultiModalDummyOptions
    ) -> dict[str, Any]:
        size = self.info.get_image_size_with_most_features()
        images = self._get_dummy_images(width=size.width, height=size.height, num_images=mm_counts.get("image", 0))
        return {"image": images}


class PageProcessor(DeepseekOCRMultiModalProcessor):
    """Replaces each ``<image>`` of the prompt's ids by the page's placeholders. No text goes through here."""

    def _get_hf_mm_text(self, mm_counts: Mapping[str, int]) -> str | None:
        return None

    def _call_hf_processor(self, *args: Any, **kwargs: Any) -> BatchFeature:
        """vLLM 0.32 gives (data, settings); before, it gave prompt and tokenizer settings too and wanted ids back."""
        if len(args) + len(kwargs) == 2:
            data: Mapping[str, Any] = args[0] if args else kwargs["hf_data"]
            return self._pixels(data["images"])
        prompt, data, _, settings = (*args, *kwargs.values())
        ids = self.info.get_tokenizer().encode(prompt, **{"add_special_tokens": False, **settings})
        made = self._pixels(data["images"]) if data.get("images") else BatchFeature()
        made["input_ids"] = torch.tensor([ids])
        return made

    def _pixels(self, images: Sequence[Image.Image]) -> BatchFeature:
        return pixels(images, self.info.tiling, self.info.ctx.model_config.dtype)

    def _hf_processor_applies_updates(self, *args: Any, **kwargs: Any) -> bool:
        """Asked by releases before 0.32: the ids hold one ``<image>`` a page, not its placeholders."""
        return False

    def _get_prompt_updates(
        self, mm_items: MultiModalDataItems, hf_processor_mm_kwargs: Mapping[str, object], out_mm_kwargs: Any
    ) -> Sequence[PromptUpdate]:
        token = self.info.image_token_id

        def placeholders(index: int) -> list[int]:
            images = mm_items.get_items("image", (ImageEmbeddingItems, ImageProcessorItems))
            if isinstance(images, ImageEmbeddingItems):
                return [token] * images.get_feature_size(index)
            size = images.get_image_size(index)
            return [token] * self.info.get_num_image_tokens(image_width=size.width, image_height=size.height)

        return [PromptReplacement(modality="image", target=[token], replacement=placeholders)]


def pixels(images: Sequence[Image.Image], cfg: ProcessorConfig, dtype: torch.dtype) -> BatchFeature:
    """Pages -> ``pixel_values`` (n, 3, G, G), ``images_crop`` (all tiles, 3, L, L), ``images_spatial_crop`` (n, 2).

    A page without tiles has the grid (1, 1), which means none, as in DeepSeek-OCR. ``dtype`` is the model's.
    """
    views = [page_views(image, cfg) for image in images]
    whole = np.stack([v.global_view for v in views])
    tiles = np.concatenate([v.tiles for v in views])
    grids = [v.grid or (1, 1) for v in views]
    return BatchFeature(
        {
            "pixel_values": _tensor(whole).to(dtype),
            "images_crop": _tensor(tiles).to(dtype),
            "images_spatial_crop": torch.tensor(grids, dtype=torch.long),
        }
    )


def _tensor(raw: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(normalise(raw)))
