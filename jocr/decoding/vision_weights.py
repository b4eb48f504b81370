"""A model's towers as the compiled ones read them, and the views of a page through them."""

from __future__ import annotations

from threading import local
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from jocr.decoding import bf16, panels
from jocr.decoding.compiled_vision import Buffers, Sizes, Starts, View, buffers, see
from jocr.decoding.helping import Help
from jocr.decoding.kernels import WIDTH
from jocr.decoding.vision_attention_bf16 import distances
from jocr.model.clip import ClipLayer
from jocr.model.ocr import OcrModel, PageViews
from jocr.model.relative import relative_positions
from jocr.model.sam import SamBlock, resize_grid

MOST_WIDTH = 256  # of SAM: wider towers are left to the library's matrix products


def fits(model: OcrModel) -> bool:
    """Whether the compiled towers handle this model: on a CPU, small, all widths in whole panels, in fp32, or in bf16
    where the CPU multiplies that."""
    weight, sam, clip = model.model.norm.weight, model.cfg.sam, model.cfg.clip
    widths = [sam.width, int(sam.width * sam.mlp_ratio), sam.width // sam.heads, sam.neck_channels,
              *sam.downsample_channels, clip.width, int(clip.width * clip.mlp_ratio), clip.width // clip.heads,
              model.cfg.text.hidden_size]  # fmt: skip
    return (
        weight.device.type == "cpu"
        and (weight.dtype == torch.float32 or (weight.dtype == torch.bfloat16 and bf16.supported()))
        and sam.width <= MOST_WIDTH
        and all(width % WIDTH == 0 for width in widths)
        and sam.downsample_channels[1] == clip.width
    )


class CompiledVision:
    """One page's views -> its visual tokens in prompt order, (n, hidden). May be called by several threads; one that
    waits for another's page may take views of it (``help``).

    The weights are copied: make a new one after an update of the model. A bf16 model's products are of bf16 numbers,
    everything between them is fp32.
    """

    def __init__(self, model: OcrModel) -> None:
        self.model, self._views, self._own = model, dict[int, View](), local()
        self.help, self._narrow = Help(), model.model.norm.weight.dtype == torch.bfloat16
        self._pack = _pairs if self._narrow else _lines
        self._matrices: list[np.ndarray] = []
        self._vectors: list[np.ndarray] = []
        body, sam, clip = model.model, model.cfg.sam, model.cfg.clip
        towers = body.sam_model, body.vision_model
        neck = cast(nn.Sequential, towers[0].neck)
        convolutions = [cast(nn.Conv2d, c) for c in (neck[0], neck[2], towers[0].net_2, towers[0].net_3)]
        self.sizes = Sizes(
            sam.width, int(sam.width * sam.mlp_ratio), sam.heads, sam.patch_size, sam.neck_channels,
            *sam.downsample_channels, clip.width, int(clip.width * clip.mlp_ratio), clip.heads,
            model.cfg.text.hidden_size,
        )  # fmt: skip
        self.starts = Starts(
            np.array(self._patch_embeds(cast(nn.Conv2d, towers[0].patch_embed.proj))),
            np.array([self._sam_layer(cast(SamBlock, block)) for block in towers[0].blocks]),
            np.array([self._convolution(c) for c in convolutions]),
            np.array([self._norm(neck[i]) for i in (1, 3)]),
            np.array([self._clip_layer(cast(ClipLayer, layer)) for layer in towers[1].transformer.layers]),
            self._norm(towers[1].pre_layrnorm),
            self._linear(body.projector.layers),
        )
        self.matrices, self.vectors = np.concatenate(self._matrices), np.concatenate(self._vectors)
        self._matrices, self._vectors = [], []

    @torch.inference_mode()
    def __call__(self, page: PageViews) -> Tensor:
        whole, tiles = self.encode(page.global_view[None], page.tiles)
        return self.model.arrange(tiles, whole[0], page.grid)

    def encode(self, *batches: Tensor) -> list[Tensor]:
        """Batches of views of one size each, (B, 3, S, S) -> (B, cells, hidden). Of planes that are one in memory (a
        stride of 0) only one is read."""
        views = [self.view(pixels.shape[-1] // self.sizes.patch) for pixels in batches]
        outs = [np.empty((len(pixels), view.cells, self.sizes.out), np.float32)
                for pixels, view in zip(batches, views, strict=True)]  # fmt: skip
        items = [
            (item, view, tokens)
            for pixels, view, out in zip(batches, views, outs, strict=True)
            for item, tokens in zip(_planes(pixels).movedim(-3, -1).contiguous().numpy(), out, strict=True)
        ]  # no copy of the pixels that engines make

        def encode(i: int) -> None:
            item, view, tokens = items[i]
            see(item.reshape(-1), item.shape[-1], self.matrices, self.vectors, self.starts, self.sizes, view,
                self._buffers(view), tokens.reshape(-1))  # fmt: skip

        self.help.share(len(items), encode)
        return [torch.from_numpy(out) for out in outs]

    def _buffers(self, view: View) -> Buffers:
        """This thread's own for a size."""
        kept = self._own.__dict__.setdefault("buffers", {})
        if view.side not in kept:
            kept[view.side] = buffers(
                view.side, self.sizes, view.windows, view.window, view.cells + 1, self.matrices.dtype
            )
        return kept[view.side]

    @torch.no_grad()
    def view(self, side: int) -> View:
        """What a view of ``side`` by ``side`` patches needs."""
        if side not in self._views:
            self._views[side] = self._view(side)
        return self._views[side]

    def _view(self, side: int) -> View:
        sam, clip, z = self.model.model.sam_model, self.model.model.vision_model, self.sizes
        bias = cast(Tensor, cast(nn.Conv2d, sam.patch_embed.proj).bias).float()
        base = resize_grid(sam.pos_embed.float(), (side, side)).reshape(-1, z.width) + bias
        cells = ((side + 1) // 2 + 1) // 2
        table = clip.embeddings.position_embedding.weight.float()
        stored = table[1:].view(1, clip.embeddings.side, clip.embeddings.side, -1)
        grid = resize_grid(stored, (cells, cells)).reshape(-1, z.clip_width)
        clip_base = torch.cat([table[:1] + clip.embeddings.class_embedding, grid])
        blocks = [cast(SamBlock, block) for block in sam.blocks]
        window = max(block.window for block in blocks)
        across = -(-side // window) if window else 0
        i, j = np.divmod(np.arange(side * side), side)
        w = max(window, 1)
        order = ((i // w * across + j // w) * w + i % w) * w + j % w
        near: list[np.ndarray] = []
        starts: list[int] = []
        for block in blocks:
            tables = [
                relative_positions(block.window or side, table.float())
                for table in (block.attn.rel_pos_h, block.attn.rel_pos_w)
            ]
            for table in [distances(*tables)] * 2 if self._narrow else tables:  # one stands for both
                starts.append(sum(part.size for part in near))
                near += map(self._pack, [table] if self._narrow else table)
        return View(
            side, base.detach().reshape(-1).numpy().copy(), clip_base.detach().reshape(-1).numpy().copy(),
            np.concatenate(near), np.array(starts).reshape(-1, 2), order.astype(np.int64), across * across, window,
            cells**2,
        )  # fmt: skip

    def _sam_layer(self, block: SamBlock) -> list[int]:
        norms = self._norm(block.norm1), self._norm(block.norm2)
        parts = block.attn.qkv, block.attn.proj, block.mlp.lin1, block.mlp.lin2
        return [*norms, *map(self._linear, parts), int(block.window == 0)]

    def _clip_layer(self, layer: ClipLayer) -> list[int]:
        norms = self._norm(layer.layer_norm1), self._norm(layer.layer_norm2)
        parts = layer.self_attn.qkv_proj, layer.self_attn.out_proj, layer.mlp.fc1, layer.mlp.fc2
        return [*norms, *map(self._linear, parts), 1]

    def _linear(self, linear: nn.Module) -> int:
        """The bias is one more input's weights."""
        weight, bias = cast(nn.Linear, linear).weight, cast(nn.Linear, linear).bias
        return self._matrix(torch.cat([weight, bias[:, None]], dim=1))

    def _convolution(self, convolution: nn.Module) -> int:
        return self._matrix(cast(nn.Conv2d, convolution).weight.permute(0, 2, 3, 1).flatten(1))

    def _patch_embeds(self, convolution: nn.Conv2d) -> list[int]:
        """For one plane that stands for three, and for three."""
        weight = convolution.weight.float().permute(0, 2, 3, 1)
        return [self._matrix(weight.sum(-1).flatten(1)), self._matrix(weight.flatten(1))]

    def _matrix(self, weight: Tensor) -> int:
        at = sum(part.size for part in self._matrices)
        self._matrices.append(self._pack(weight))
        return at

    def _norm(self, module: nn.Module) -> int:
        at, norm = sum(part.size for part in self._vectors), cast(nn.LayerNorm, module)
        self._vectors += [part.detach().float().numpy() for part in (norm.weight, norm.bias)]
        return at


def _planes(pixels: Tensor) -> Tensor:
    """(B, 3, S, S), or (B, 1, S, S) where the planes are one in memory."""
    return pixels[:, :1] if pixels.stride(1) == 0 else pixels


def _lines(weight: Tensor) -> np.ndarray:
    """A matrix (O, I) as the fp32 kernel reads it."""
    flat = np.empty(panels.size(weight), np.float32)
    panels.pack(weight.detach(), flat)
    return flat


def _pairs(weight: Tensor) -> np.ndarray:
    """A matrix (O, I) as the bf16 kernel reads it."""
    flat = np.empty(bf16.size(weight), np.uint32)
    bf16.pack(weight.detach(), flat)
    return flat
