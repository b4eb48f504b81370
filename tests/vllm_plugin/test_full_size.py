"""The published sizes with random weights: SAM-B, CLIP-L and projector of both implementations on the same pages."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from jocr.model.clip import ClipEncoder
from jocr.model.config import OcrConfig
from jocr.model.ocr import OcrBody, OcrModel, PageViews
from jocr.model.sam import SamEncoder
from jocr.model.vision import Projector
from jocr.pages.tiles import ProcessorConfig, choose_grid
from tests.vllm_plugin.inprocess import settle

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("vllm")

PAGES = {"one view": (600, 620), "2 tiles": (1280, 700), "9 tiles": (1900, 1900)}
GRIDS = {"one view": None, "2 tiles": (2, 1), "9 tiles": (3, 3)}


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """Ours and vLLM's with the same weights, fp32 (3.2 GB together)."""
    settle()
    cfg = OcrConfig()
    mine = our_vision(cfg)
    return mine, their_vision(cfg, mine, tmp_path_factory.mktemp("group"))


def our_vision(cfg: OcrConfig) -> OcrModel:
    """An ``OcrModel`` of which only the vision part exists."""
    torch.manual_seed(0)
    model = OcrModel.__new__(OcrModel)
    nn.Module.__init__(model)
    model.cfg = cfg
    model.model = body = OcrBody.__new__(OcrBody)
    nn.Module.__init__(body)
    body.sam_model, body.vision_model, body.projector = SamEncoder(cfg.sam), ClipEncoder(cfg.clip), Projector(cfg)
    body.image_newline = nn.Parameter(torch.randn(cfg.text.hidden_size))
    body.view_seperator = nn.Parameter(torch.randn(cfg.text.hidden_size))
    with torch.no_grad():
        for parameter in body.parameters():
            if not parameter.any() or bool((parameter == 1).all()):  # zeros and ones would hide a mistake
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def their_vision(cfg: OcrConfig, mine: OcrModel, folder):
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.distributed import init_distributed_environment, initialize_model_parallel

    from jocr.vllm_plugin.config import CompletedConfig
    from jocr.vllm_plugin.target import OcrForCausalLM

    config = VllmConfig()
    with set_current_vllm_config(config):
        init_distributed_environment(1, 0, f"file://{folder}/group", 0, "gloo")
        initialize_model_parallel(1, 1)
        model = OcrForCausalLM.__new__(OcrForCausalLM)
        nn.Module.__init__(model)
        model.config = CompletedConfig(**cfg.to_dict())
        model.projector_config = model.config.projector_config
        model._build_vision(config, "")
        loaded = model.load_weights((name, tensor) for name, tensor in mine.state_dict().items())
        assert len(loaded) >= len(dict(model.named_parameters()))
        for module in model.modules():  # the loader of a whole engine does this last step
            if getattr(module, "quant_method", None) is not None:
                module.quant_method.process_weights_after_loading(module)
    return model.eval()


@pytest.mark.parametrize("kind", PAGES)
@torch.inference_mode()
def test_visual_tokens_are_equal(encoders, kind):
    mine, other = encoders
    sizes = ProcessorConfig()
    grid = choose_grid(*PAGES[kind], sizes)
    assert grid == GRIDS[kind]
    tiles = grid[0] * grid[1] if grid else 0
    generator = torch.Generator().manual_seed(len(kind))
    whole = torch.rand(3, sizes.base_size, sizes.base_size, generator=generator) * 2 - 1
    local = torch.rand(tiles, 3, sizes.image_size, sizes.image_size, generator=generator) * 2 - 1
    want = mine.encode_page(PageViews(whole, local, grid))
    (found,) = other._pixel_values_to_embedding(whole[None], local, torch.tensor([grid or (1, 1)]))
    assert found.shape == want.shape == (sizes.token_count(grid), 1280)
    assert float((found - want).norm() / want.norm()) < 1e-3
    assert float((found - want).abs().max() / want.abs().max()) < 1e-3
