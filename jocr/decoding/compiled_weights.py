"""A model's weights in the flat arrays that the compiled kernel reads.

fp32 models are copied, into half the memory where that loses nothing. A bf16 model may hand its matrices over instead,
piece by piece, so that they are never held twice; such a model can no longer be saved or run by its own modules, but
for its vision part and its embedding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from jocr.decoding import bf16, int8, panels
from jocr.decoding.compiled import Dims, Offsets, Weights
from jocr.decoding.kernels import WIDTH
from jocr.model.decoder import Block
from jocr.model.draft import DraftHead
from jocr.model.layers import SwiGLU
from jocr.model.ocr import OcrModel

VECTOR_UNITS = ("AVX2", "AVX512")  # where the bf16 kernel is fast


@dataclass(frozen=True)
class Packed:
    """Weights, where they start, and the sizes."""

    weights: Weights
    draft: Weights  # what the draft head reads: the same, or its matrices in int8
    offsets: Offsets
    dims: Dims


class Packer:
    """Collects matrices and remembers where each will start; ``take`` moves them there, ``paired`` as ``bf16`` packs
    them."""

    def __init__(self, paired: bool = False) -> None:
        self.paired, self.measure = paired, bf16.size if paired else panels.size
        self.pieces: list[tuple[int, Tensor]] = []
        self.norms: list[np.ndarray] = []
        self.size = self.vectors = 0

    def vector(self, weight: Tensor) -> int:
        at = self.vectors
        self.norms.append(weight.detach().float().numpy())
        self.vectors += weight.numel()
        return at

    def matrix(self, *weights: Tensor) -> int:
        """Several (O, I) matrices of one input, each padded to whole panels, side by side."""
        at = self.size
        for weight in weights:
            self.pieces.append((self.size, weight.detach()))
            self.size += self.measure(weight)
        return at

    def take(self, dtype: torch.dtype) -> np.ndarray:
        """All matrices in one array; every tensor is let go as soon as it is copied."""
        flat, pack = np.empty(self.size, np.uint32 if self.paired else panels.STORED[dtype]), panels.pack
        if self.paired:
            pack = bf16.pack
        for i, (at, weight) in enumerate(self.pieces):
            pack(weight.to(dtype), flat[at : at + self.measure(weight)])
            self.pieces[i] = (at, weight[:0].clone())
        return flat


class Int8Packer(Packer):
    """Collects matrices to be rounded; vectors go to another packer's."""

    def __init__(self, other: Packer) -> None:
        super().__init__()
        self.measure = int8.size
        self.vector = other.vector  # type: ignore[method-assign]

    def take_int8(self) -> np.ndarray:
        flat = np.empty(self.size, np.int8)
        for at, weight in self.pieces:
            int8.pack(weight, flat[at : at + int8.size(weight)])
        self.pieces.clear()
        return flat


def fits(model: OcrModel) -> bool:
    """Whether the compiled step handles this model: on a CPU, head width in whole panels, and fp32 and not too large,
    or bf16 where the CPU has the vector units for it."""
    weight, cfg = model.model.norm.weight, model.cfg.text
    if weight.device.type != "cpu" or cfg.head_dim % WIDTH or cfg.hidden_size % WIDTH:
        return False
    if weight.dtype == torch.bfloat16:
        return torch.backends.cpu.get_cpu_capability() in VECTOR_UNITS
    return weight.dtype == torch.float32 and cfg.num_hidden_layers * cfg.hidden_size <= 16384


def pack_model(model: OcrModel, hand_over: bool = False, quick: bool = False) -> Packed:
    """All weights that decoding reads. The model's own tensors stay as they are unless it is to ``hand_over`` them.

    With ``quick`` the draft head is rounded to int8 where the CPU is quick at that.
    """
    cfg, body = model.cfg.text, model.model
    p = Packer(body.norm.weight.dtype == torch.bfloat16 and bf16.supported())
    rounding = quick and model.cfg.mtp_num_heads > 0 and int8.supported() and int8.fits(*_draft_matrices(model))
    q = Int8Packer(p) if rounding else p
    norm, head = p.vector(body.norm.weight), p.matrix(model.lm_head.weight)
    lines = [_block(p, cast(Block, block)) for block in body.layers]
    enorm = hnorm = eh = -1
    embed = draft_embed = body.embed_tokens.weight.detach()
    draft_norm, draft_head = norm, head
    if model.cfg.mtp_num_heads:
        first = cast(DraftHead, model.mtp_module.heads[0])
        enorm, hnorm = p.vector(first.enorm.weight), p.vector(first.hnorm.weight)
        eh = q.matrix(first.eh_proj.weight)
        lines.append(_block(q, first.mtp_block))
        if model.mtp_embed_tokens is not None:
            draft_embed = model.mtp_embed_tokens.weight.detach()
        if model.mtp_norm is not None:
            draft_norm = p.vector(model.mtp_norm.weight)
        if model.mtp_lm_head is not None or q is not p:
            draft_head = q.matrix((model.mtp_lm_head or model.lm_head).weight)
    dtype = narrowest(embed, draft_embed, *(weight for _, weight in p.pieces))
    rounded = q.take_int8() if isinstance(q, Int8Packer) else None
    if hand_over:
        _empty(model)
    tables = [panels.stored(table.to(dtype)) for table in (embed, draft_embed)]
    weights = Weights(p.take(dtype), np.concatenate(p.norms), *tables)
    dims = Dims(
        cfg.hidden_size, cfg.num_hidden_layers, cfg.num_attention_heads, cfg.head_dim, cfg.vocab_size,
        cfg.intermediate_size, cfg.n_routed_experts, cfg.num_experts_per_tok, cfg.moe_intermediate_size,
        cfg.n_shared_experts * cfg.moe_intermediate_size, int(cfg.norm_topk_prob), float(cfg.routed_scaling_factor),
        float(cfg.rms_norm_eps),
    )  # fmt: skip
    offsets = Offsets(np.array(lines, np.int64), norm, head, enorm, hnorm, eh, draft_norm, draft_head)
    return Packed(weights, weights if rounded is None else weights._replace(matrices=rounded), offsets, dims)


def _draft_matrices(model: OcrModel) -> list[Tensor]:
    return [
        weight
        for weight in (*model.mtp_module.parameters(), (model.mtp_lm_head or model.lm_head).weight)
        if weight.dim() == 2
    ]


def narrowest(*weights: Tensor) -> torch.dtype:
    """bf16 where it holds every weight exactly (a checkpoint saved in bf16 and loaded in fp32), else their own type.
    The kernel computes in fp32 either way, so the results are the same to the last bit."""
    quick = torch.backends.cpu.get_cpu_capability() in VECTOR_UNITS
    exact = quick and all(torch.equal(weight, weight.bfloat16().to(weight.dtype)) for weight in weights)
    return torch.bfloat16 if exact else weights[0].dtype


def _block(p: Packer, block: Block) -> list[int]:
    """Starts of one block's weights, in the order of ``compiled``'s constants."""
    line = [p.vector(block.input_layernorm.weight), p.matrix(block.self_attn.qkv.weight)]
    line += [p.matrix(block.self_attn.o_proj.weight), p.vector(block.post_attention_layernorm.weight)]
    if isinstance(block.mlp, SwiGLU):
        return [*line, *_pair(p, block.mlp.gate_up.weight, block.mlp.down_proj.weight), -1, -1]
    shared, routed = block.mlp.shared_experts, block.mlp.experts
    line += _pair(p, shared.gate_up.weight, shared.down_proj.weight, block.mlp.gate.weight)
    return [*line, p.matrix(*(half for expert in routed.gate_up for half in expert.chunk(2))), p.matrix(*routed.down)]


def _pair(p: Packer, gate_up: Tensor, down: Tensor, *more: Tensor) -> list[int]:
    return [p.matrix(*gate_up.chunk(2), *more), p.matrix(down)]


def _empty(model: OcrModel) -> None:
    """Let the modules forget the matrices that were collected."""
    parts = [*model.model.layers, model.lm_head, *(model.mtp_module.heads if model.cfg.mtp_num_heads else ())]
    for part in [*parts, *([model.mtp_lm_head] if model.mtp_lm_head is not None else [])]:
        for weight in part.parameters():
            if weight.dim() > 1:
                weight.data = weight.data.new_empty(0)
