"""Vision towers against transformers' implementations, on the same random weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from jocr.model.clip import ClipEncoder
from jocr.model.ocr import OcrModel, PageViews
from jocr.model.sam import SamEncoder, resize_grid
from jocr.model.vision import NEWLINE, SEPARATOR, join_towers, page_layout

from .tiny_model import CLIP, PROCESSOR, SAM, TINY, scatter

RENAMED = (
    ("blocks.", "layers."), ("norm1", "layer_norm1"), ("norm2", "layer_norm2"),
    ("patch_embed.proj", "patch_embed.projection"),
    ("neck.0", "neck.conv1"), ("neck.1", "neck.layer_norm1"), ("neck.2", "neck.conv2"), ("neck.3", "neck.layer_norm2"),
    ("net_2", "proj.conv1"), ("net_3", "proj.conv2"),
)  # fmt: skip


def renamed(state: dict[str, Tensor]) -> dict[str, Tensor]:
    out = {}
    for name, tensor in state.items():
        for old, new in RENAMED:
            name = name.replace(old, new)
        out[name] = tensor
    return out


def sizes(image_size: int = SAM.image_size) -> dict:
    return {
        "hidden_size": SAM.width, "output_channels": SAM.neck_channels, "num_hidden_layers": SAM.layers,
        "num_attention_heads": SAM.heads, "image_size": image_size, "patch_size": SAM.patch_size,
        "window_size": SAM.window_size, "global_attn_indexes": list(SAM.global_attn_indexes),
        "mlp_ratio": SAM.mlp_ratio,
    }  # fmt: skip


@pytest.fixture(scope="module")
def sam() -> SamEncoder:
    model = SamEncoder(SAM)
    scatter(model, 1)
    return model.eval()


def pixels(side: int, count: int = 2) -> Tensor:
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(side)) * 2 - 1


@torch.no_grad()
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_sam_up_to_the_neck(sam, attention) -> None:
    from transformers import SamVisionConfig
    from transformers.models.sam.modeling_sam import SamVisionEncoder

    theirs = SamVisionEncoder(SamVisionConfig(**sizes(), attn_implementation=attention)).eval()
    mine = {name: t for name, t in renamed(sam.state_dict()).items() if not name.startswith("proj.")}
    theirs.load_state_dict(mine)
    x = pixels(SAM.image_size)
    got = sam.neck(sam.patches(x).permute(0, 3, 1, 2))
    torch.testing.assert_close(got, theirs(x).last_hidden_state, atol=2e-5, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("side", [128, 80, 64])
def test_whole_sam_at_stored_and_smaller_sizes(sam, side) -> None:
    """The encoder with both stride-2 convolutions; 80 of 128 px is 640 of 1024: positions are interpolated."""
    from transformers.models.deepseek_ocr2.configuration_deepseek_ocr2 import DeepseekOcr2SamVisionConfig
    from transformers.models.deepseek_ocr2.modeling_deepseek_ocr2 import DeepseekOcr2SamVisionEncoder

    config = DeepseekOcr2SamVisionConfig(**sizes(), downsample_channels=list(SAM.downsample_channels))
    theirs = DeepseekOcr2SamVisionEncoder(config).eval()
    theirs.load_state_dict(renamed(sam.state_dict()))
    got = sam(pixels(side))
    assert got.shape[-1] == -(-side // 64)
    torch.testing.assert_close(got, theirs(pixels(side)).last_hidden_state, atol=2e-4, rtol=1e-4)


@torch.no_grad()
def test_relative_positions_matter(sam) -> None:
    other = SamEncoder(SAM)
    other.load_state_dict(sam.state_dict())
    other.blocks[2].attn.rel_pos_w.zero_()
    assert (other(pixels(80)) - sam(pixels(80))).abs().max() > 1e-3


def clip_and_theirs(side: int) -> tuple[ClipEncoder, nn.Module]:
    """Ours as stored, theirs with the position table already resampled to ``side`` x ``side``."""
    from transformers import CLIPVisionConfig, CLIPVisionModel

    ours = ClipEncoder(CLIP)
    scatter(ours, 2)
    config = CLIPVisionConfig(
        hidden_size=CLIP.width, intermediate_size=int(CLIP.width * CLIP.mlp_ratio), num_hidden_layers=CLIP.layers,
        num_attention_heads=CLIP.heads, image_size=side * CLIP.patch_size, patch_size=CLIP.patch_size,
    )  # fmt: skip
    theirs = CLIPVisionModel(config)
    state = {}
    for name, tensor in ours.state_dict().items():
        name = name.replace("transformer.layers", "encoder.layers").replace("self_attn.out_proj", "self_attn.out_proj")
        if "qkv_proj" in name:
            for letter, piece in zip("qkv", tensor.chunk(3), strict=True):
                state[name.replace("qkv_proj", f"{letter}_proj")] = piece
        else:
            state[name] = tensor
    table = state["embeddings.position_embedding.weight"]
    grid = resize_grid(table[1:].view(1, CLIP.side, CLIP.side, -1), (side, side)).reshape(side * side, -1)
    state["embeddings.position_embedding.weight"] = torch.cat([table[:1], grid])
    prefix = "vision_model." if any(k.startswith("vision_model.") for k in theirs.state_dict()) else ""
    missing, unexpected = theirs.load_state_dict({prefix + k: v for k, v in state.items()}, strict=False)
    assert not unexpected
    assert all("post_layernorm" in name or "position_ids" in name for name in missing)
    return ours.eval(), theirs.eval()


@torch.no_grad()
@pytest.mark.parametrize("side", [2, 3])
def test_clip(side) -> None:
    """Their patch embeddings are handed to ours as if they were SAM's features."""
    ours, theirs = clip_and_theirs(side)
    x = pixels(side * CLIP.patch_size)
    features = ours.embeddings.patch_embedding(x)
    torch.testing.assert_close(ours(features), theirs(x).last_hidden_state, atol=2e-5, rtol=1e-4)


def test_resampled_positions_are_bicubic_with_antialiasing() -> None:
    table = torch.randn(1, 16, 16, 3)
    expected = nn.functional.interpolate(table.permute(0, 3, 1, 2), (10, 10), mode="bicubic", antialias=True)
    torch.testing.assert_close(resize_grid(table, (10, 10)), expected.permute(0, 2, 3, 1))
    assert resize_grid(table, (16, 16)) is table


@torch.no_grad()
def test_clip_features_come_first(tiny) -> None:
    body = tiny.model
    features = body.sam_model(pixels(128))
    semantic = body.vision_model(features)[:, 1:]  # without the class token
    weight, bias = body.projector.layers.weight, body.projector.layers.bias
    spatial = features.flatten(2).transpose(1, 2)
    expected = semantic @ weight[:, : CLIP.width].T + spatial @ weight[:, CLIP.width :].T + bias
    torch.testing.assert_close(join_towers(body.vision_model, body.projector, features), expected, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_pages_are_encoded_alone_and_together_alike(tiny) -> None:
    tiled = PageViews(pixels(128, 1)[0], pixels(64, 6), (3, 2))
    plain = PageViews(pixels(128, 2)[1], torch.empty(0, 3, 64, 64), None)
    both = tiny.encode_pages([tiled, plain])
    assert [len(tokens) for tokens in both] == [PROCESSOR.token_count((3, 2)), PROCESSOR.token_count(None)]
    for page, tokens in zip((tiled, plain), both, strict=True):
        torch.testing.assert_close(tokens, tiny.encode_page(page), atol=1e-4, rtol=1e-4)
    assert both[1].shape == (2 * 3 + 1, TINY.text.hidden_size)
    assert both[0].shape == (2 * 3 + 1 + 2 * (3 + 1), TINY.text.hidden_size)
    assert torch.equal(both[1], tiny.encode_pages([plain, plain])[1])


@torch.no_grad()
def test_tokens_stand_where_the_layout_says(tiny) -> None:
    tiles, whole = torch.randn(2, 1, 64), torch.randn(4, 64)
    rows = tiny.arrange(tiles, whole, (1, 2))
    order = page_layout((1, 2), 2, 1)
    newline, separator = tiny.model.image_newline, tiny.model.view_seperator
    bank = torch.cat([tiles.flatten(0, 1), whole])
    for row, index in zip(rows, order, strict=True):
        want = newline if index == NEWLINE else separator if index == SEPARATOR else bank[index]
        assert torch.equal(row, want)


@torch.no_grad()
def test_visual_tokens_replace_image_tokens_in_order(tiny) -> None:
    ids = torch.tensor([4, 3, 3, 9, 3])
    visual = torch.randn(3, 64)
    x = tiny.embed(ids, visual)
    assert torch.equal(x[[1, 2, 4]], visual)
    assert torch.equal(x[[0, 3]], tiny.model.embed_tokens(ids[[0, 3]]))


@torch.no_grad()
def test_published_sizes_give_256_and_100_tokens_a_view() -> None:
    from jocr.model.config import OcrConfig

    with torch.device("meta"):
        model = OcrModel(OcrConfig())
        assert model.encode(torch.empty(1, 3, 1024, 1024)).shape == (1, 256, 1280)
        assert model.encode(torch.empty(9, 3, 640, 640)).shape == (9, 100, 1280)
