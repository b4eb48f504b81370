"""A model's decoder and draft weights as one flat fp32 array, in the panels the compiled kernel reads."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from torch import Tensor

from jocr.decoding.compiled import Dims, Offsets
from jocr.decoding.kernels import WIDTH, pack
from jocr.model.decoder import Block
from jocr.model.draft import DraftHead
from jocr.model.layers import SwiGLU
from jocr.model.ocr import OcrModel


class Packer:
    """Collects arrays and remembers where each starts; every piece starts at a whole panel line."""

    def __init__(self) -> None:
        self.pieces: list[np.ndarray] = []
        self.size = 0

    def add(self, piece: np.ndarray) -> int:
        at = self.size
        flat = np.ascontiguousarray(piece, np.float32).reshape(-1)
        self.pieces += [flat, np.zeros(-flat.size % WIDTH, np.float32)]
        self.size += flat.size + -flat.size % WIDTH
        return at

    def vector(self, weight: Tensor) -> int:
        return self.add(_array(weight))

    def matrix(self, *weights: Tensor) -> int:
        """Several (O, I) matrices of one input, each padded to whole panels, side by side."""
        return self.add(np.concatenate([pack(_array(w)) for w in weights]))


def fits(model: OcrModel) -> bool:
    """Whether the compiled step handles this model: fp32 on a CPU, head width in whole panels, not too large."""
    weight, cfg = model.model.norm.weight, model.cfg.text
    small = cfg.num_hidden_layers * cfg.hidden_size <= 16384
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and not cfg.head_dim % WIDTH and small


def pack_model(model: OcrModel) -> tuple[np.ndarray, Offsets, Dims]:
    """All weights that decoding reads, where they start, and the sizes. The model's own tensors stay as they are."""
    cfg, body, p = model.cfg.text, model.model, Packer()
    embed, norm, head = p.vector(body.embed_tokens.weight), p.vector(body.norm.weight), p.matrix(model.lm_head.weight)
    lines = [_block(p, cast(Block, block)) for block in body.layers]
    enorm = hnorm = eh = -1
    draft_embed, draft_norm, draft_head = embed, norm, head
    if model.cfg.mtp_num_heads:
        first = cast(DraftHead, model.mtp_module.heads[0])
        enorm, hnorm = p.vector(first.enorm.weight), p.vector(first.hnorm.weight)
        eh = p.matrix(first.eh_proj.weight)
        lines.append(_block(p, first.mtp_block))
        if model.mtp_embed_tokens is not None:
            draft_embed = p.vector(model.mtp_embed_tokens.weight)
        if model.mtp_norm is not None:
            draft_norm = p.vector(model.mtp_norm.weight)
        if model.mtp_lm_head is not None:
            draft_head = p.matrix(model.mtp_lm_head.weight)
    layer = np.array(lines, np.int64)
    offsets = Offsets(layer, embed, norm, head, draft_embed, enorm, hnorm, eh, draft_norm, draft_head)
    dims = Dims(
        cfg.hidden_size, cfg.num_hidden_layers, cfg.num_attention_heads, cfg.head_dim, cfg.vocab_size,
        cfg.intermediate_size, cfg.n_routed_experts, cfg.num_experts_per_tok, cfg.moe_intermediate_size,
        cfg.n_shared_experts * cfg.moe_intermediate_size, int(cfg.norm_topk_prob), float(cfg.routed_scaling_factor),
        float(cfg.rms_norm_eps),
    )  # fmt: skip
    return np.concatenate(p.pieces), offsets, dims


def _block(p: Packer, block: Block) -> list[int]:
    """Starts of one block's weights, in the order of ``compiled``'s constants."""
    qkv = p.matrix(block.self_attn.qkv.weight)
    line = [p.vector(block.input_layernorm.weight), qkv, p.matrix(block.self_attn.o_proj.weight)]
    line.append(p.vector(block.post_attention_layernorm.weight))
    if isinstance(block.mlp, SwiGLU):
        return [*line, *_pair(p, block.mlp.gate_up.weight, block.mlp.down_proj.weight), -1, -1]
    shared, routed = block.mlp.shared_experts, block.mlp.experts
    line += _pair(p, shared.gate_up.weight, shared.down_proj.weight, block.mlp.gate.weight)
    ups = np.concatenate([pack(_array(half)) for expert in routed.gate_up for half in expert.chunk(2)])
    downs = np.concatenate([pack(_array(expert)) for expert in routed.down])
    return [*line, p.add(ups), p.add(downs)]


def _pair(p: Packer, gate_up: Tensor, down: Tensor, *more: Tensor) -> list[int]:
    return [p.matrix(*gate_up.chunk(2), *more), p.matrix(down)]


def _array(weight: Tensor) -> np.ndarray:
    return weight.detach().float().numpy()
