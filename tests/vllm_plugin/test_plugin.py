"""What the plugin tells vLLM, without starting an engine."""

from __future__ import annotations

import io
from importlib.metadata import entry_points
from types import SimpleNamespace

import pytest
import torch
from PIL import Image

from jocr.model.config import OcrConfig
from jocr.model.split_draft import ARCHITECTURE
from jocr.pages.tiles import choose_grid
from jocr.vllm_plugin import MODEL_TYPE, TARGET, register
from tests.vllm_plugin.checkpoints import PROCESSOR, SIZES, TINY, page

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("vllm")


def test_the_entry_point_is_there_and_registering_twice_is_harmless():
    from vllm.model_executor.models import ModelRegistry
    from vllm.transformers_utils.config import _CONFIG_REGISTRY

    (found,) = [e for e in entry_points(group="vllm.general_plugins") if e.name == "jocr"]
    assert found.load() is register
    register()
    register()
    assert {TARGET, ARCHITECTURE} <= set(ModelRegistry.get_supported_archs())
    assert _CONFIG_REGISTRY[MODEL_TYPE].__name__ == "CompletedConfig"


def published() -> dict:
    """A config as published: part of the decoder's keys only on top, none that says it has plain attention."""
    raw = OcrConfig().to_dict()
    gone = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank", "n_group", "topk_group", "rope_theta")
    raw["language_config"] = {k: v for k, v in raw["language_config"].items() if k not in gone}
    return {k: v for k, v in raw.items() if k == "rope_theta" or k not in gone}


def test_missing_decoder_keys_are_stated():
    from vllm.transformers_utils.configs.deepseek_vl2 import DeepseekVLV2Config

    from jocr.vllm_plugin.config import CompletedConfig

    stock = DeepseekVLV2Config(**published()).text_config
    assert stock.kv_lora_rank is not None  # taken for latent attention: why this is needed
    made = CompletedConfig(**published())
    text = made.text_config
    assert (text.kv_lora_rank, text.qk_nope_head_dim, text.qk_rope_head_dim, text.v_head_dim) == (None, 0, 0, 0)
    assert (text.n_group, text.topk_group, text.n_routed_experts, text.num_experts_per_tok) == (1, 1, 64, 6)
    assert text.rope_parameters["rope_theta"] == 1_000_000.0
    assert made.image_token_index == 128815
    assert made.model_type == "deepseek_ocr"


def test_other_models_of_the_type_are_left_alone():
    from vllm.transformers_utils.configs.deepseek_vl2 import DeepseekVLV2Config

    from jocr.vllm_plugin.config import CompletedConfig

    raw = {"architectures": ["DeepseekVLV2ForCausalLM"], "language_config": {"hidden_size": 64, "kv_lora_rank": 16}}
    ours, stock = (kind(**dict(raw)).to_dict() for kind in (CompletedConfig, DeepseekVLV2Config))
    assert ours == stock


def test_tower_sizes_come_from_the_config():
    from jocr.vllm_plugin.config import CompletedConfig
    from jocr.vllm_plugin.target import towers

    made = towers(CompletedConfig(**TINY.to_dict()))
    assert (made.sam, made.clip) == (TINY.sam, TINY.clip)


def processor(dtype=torch.float32):
    from jocr.vllm_plugin.processor import PageProcessor

    made = PageProcessor.__new__(PageProcessor)
    tokenizer = SimpleNamespace(encode=lambda text, add_special_tokens: [len(text), int(add_special_tokens)])
    ctx = SimpleNamespace(model_config=SimpleNamespace(dtype=dtype))
    made.info = SimpleNamespace(tiling=PROCESSOR, get_tokenizer=lambda: tokenizer, ctx=ctx)
    return made


def test_pages_become_views_by_our_own_tile_code():
    images = [Image.open(io.BytesIO(page(i).png)) for i in range(len(SIZES))]
    made = processor()._call_hf_processor({"images": images}, {})
    grids = [choose_grid(*image.size, PROCESSOR) for image in images]
    assert made["images_spatial_crop"].tolist() == [list(grid or (1, 1)) for grid in grids]
    tiles = sum(w * h for w, h in (grid for grid in grids if grid))
    assert made["images_crop"].shape == (tiles, 3, PROCESSOR.image_size, PROCESSOR.image_size)
    assert made["pixel_values"].shape == (len(images), 3, PROCESSOR.base_size, PROCESSOR.base_size)
    assert made["pixel_values"].dtype == torch.float32
    assert max(w * h for w, h in (grid for grid in grids if grid)) == 9


def test_pixels_have_the_dtype_of_the_model():
    image = Image.open(io.BytesIO(page(3).png))
    made = processor(torch.bfloat16)._call_hf_processor({"images": [image]}, {})
    assert {made["pixel_values"].dtype, made["images_crop"].dtype} == {torch.bfloat16}


def test_the_way_earlier_releases_call_gives_ids_too():
    image = Image.open(io.BytesIO(page(0).png))
    made = processor()._call_hf_processor(prompt="abc", mm_data={"images": [image]}, mm_kwargs={}, tok_kwargs={})
    assert made["input_ids"].tolist() == [[3, 0]]
    assert made["pixel_values"].shape[0] == 1
