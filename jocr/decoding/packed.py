"""Matrices in oneDNN's own layout, on a CPU: all of a bf16 model where the compiled step does not apply, and the vision
towers of an fp32 one.

The plain copy is given up layer by layer. Out of cache a bf16 product of ``F.linear`` reads its weights at about two
thirds of this layout's speed. In fp32 a tower's products take about half the time of ``F.linear``'s. The model's
modules stay; only their matrices are replaced.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jocr.model.layers import FusedLinear
from jocr.model.moe import Experts
from jocr.model.ocr import OcrModel

HINT_ROWS = 4  # the layout is chosen for about this many rows; other numbers run from it too
VISION_ROWS = 256  # the same for the towers: patches of one view


def fits(model: OcrModel) -> bool:
    """Whether packing applies: bf16 on a CPU whose oneDNN has bf16 kernels."""
    weight = model.model.norm.weight
    return (
        weight.device.type == "cpu" and weight.dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )


def fits_vision(model: OcrModel) -> bool:
    """Whether packing the towers applies: fp32 on a CPU whose torch has oneDNN."""
    weight = model.model.norm.weight
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and torch.backends.mkldnn.is_available()


class PackedLinear(nn.Module):
    """x @ W^T + b from a reordered W; the tensor given is not kept."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, rows: int = HINT_ROWS) -> None:
        super().__init__()
        self.packed, self.bias = reorder(weight, rows), bias

    def forward(self, x: Tensor) -> Tensor:
        return product(x, self.packed, self.bias)


class PackedConv(nn.Module):
    """A convolution with reordered weights: over a view's few cells, reordering them at each call took as long again.

    The layout is chosen for an input of ``side`` by ``side``; other sizes run from it too.
    """

    def __init__(self, conv: nn.Conv2d, side: int) -> None:
        super().__init__()
        self.space = [list(size) for size in (conv.padding, conv.stride, conv.dilation)]
        self.groups, self.bias = conv.groups, None if conv.bias is None else conv.bias.detach()
        weight, hint = conv.weight.detach().contiguous(), [1, conv.in_channels, side, side]
        self.packed = torch.ops.mkldnn._reorder_convolution_weight(weight, *self.space, conv.groups, hint)

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.mkldnn._convolution_pointwise(
            x, self.packed, self.bias, *self.space, self.groups, "none", [], ""
        )


class PackedExperts(nn.Module):
    """The routed experts of one layer, each matrix reordered for itself. Takes over ``experts``' memory."""

    def __init__(self, experts: Experts) -> None:
        super().__init__()
        gate_up, down = experts.gate_up, experts.down
        self.pairs = [(reorder(u), reorder(d)) for u, d in zip(gate_up.data, down.data, strict=True)]

    def forward(self, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """Rows x (N, H), weights (N, k) and chosen expert ids (N, k) -> (N, H)."""
        if x.shape[0] == 1:
            return self._one(x, weights.to(x.dtype)[0], chosen[0].tolist())
        flat = chosen.reshape(-1)
        order = flat.argsort(stable=True)
        counts = torch.bincount(flat, minlength=len(self.pairs)).tolist()
        rows = order // chosen.shape[1]
        pieces = x[rows].split(counts)
        outs = [_expert(piece, *pair) for piece, pair in zip(pieces, self.pairs, strict=True) if piece.shape[0]]
        y = torch.cat(outs) * weights.reshape(-1)[order, None].to(x.dtype)
        return torch.zeros_like(x).index_add_(0, rows, y)

    def _one(self, x: Tensor, weights: Tensor, chosen: list[int]) -> Tensor:
        outs = torch.cat([_expert(x, *self.pairs[e]) for e in chosen])
        return weights[None] @ outs


def _expert(x: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
    gate, up = product(x, gate_up).chunk(2, dim=-1)
    return product(F.silu(gate).mul_(up), down)


def reorder(weight: Tensor, rows: int = HINT_ROWS) -> Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), rows)


def product(x: Tensor, packed: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


@torch.no_grad()
def pack_vision(model: OcrModel) -> None:
    """Replace the linear layers and convolutions of towers and projector in place. The model cannot be saved or trained
    after."""
    for part in (model.model.sam_model, model.model.vision_model, model.model.projector):
        for module in list(part.modules()):
            for name, child in module.named_children():
                if isinstance(child, nn.Linear):
                    bias = None if child.bias is None else child.bias.detach()
                    setattr(module, name, PackedLinear(child.weight, bias, VISION_ROWS))
    sam, side = model.model.sam_model, int(VISION_ROWS**0.5)
    patch = cast(nn.Conv2d, sam.patch_embed.proj)
    for owner, name, size in ((sam.patch_embed, "proj", side * patch.kernel_size[0]), (sam.neck, "2", side),
                             (sam, "net_2", side), (sam, "net_3", side // 2)):  # fmt: skip
        setattr(owner, name, PackedConv(cast(nn.Conv2d, getattr(owner, name)), size))


@torch.no_grad()
def pack(model: OcrModel) -> None:
    """Replace the decoder's, the draft head's and the output matrices in place. The model cannot be saved after."""
    parts = [*model.model.layers, *(model.mtp_module.heads if model.cfg.mtp_num_heads else ())]
    for part in parts:
        _pack_inside(part)
    for name in ("lm_head", "mtp_lm_head"):
        if isinstance(head := getattr(model, name), nn.Linear):
            setattr(model, name, _packed(head))


def _pack_inside(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, Experts):
            setattr(module, name, PackedExperts(child))
        elif isinstance(child, nn.Linear | FusedLinear):
            setattr(module, name, _packed(child))
        else:
            _pack_inside(child)


def _packed(linear: nn.Linear | FusedLinear) -> PackedLinear:
    return PackedLinear(linear.weight)
