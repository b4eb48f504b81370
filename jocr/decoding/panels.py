"""Matrices as the kernel reads them: panels of 32 outputs, one line of 32 weights for each input."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from jocr.decoding.kernels import LANES, WIDTH

STORED = {torch.float32: np.float32, torch.bfloat16: np.uint16}


def size(weight: Tensor) -> int:
    """Elements of a packed (O, I) matrix; outputs are padded to whole panels."""
    return -(-weight.shape[0] // WIDTH) * WIDTH * weight.shape[1]


def pack(weight: Tensor, out: np.ndarray) -> None:
    """(O, I) -> panels (ceil(O / 32), I, 32) in flat ``out``; in bf16 columns c and c + 16 stand side by side."""
    outs, ins = weight.shape
    whole = outs // WIDTH * WIDTH
    _panels(weight[:whole], out[: whole * ins])
    if whole < outs:
        rest = torch.zeros(WIDTH, ins, dtype=weight.dtype)
        rest[: outs - whole] = weight[whole:]
        _panels(rest, out[whole * ins :])


def stored(weight: Tensor) -> np.ndarray:
    """A tensor's memory as a flat array of the type the kernel reads; no copy where it is contiguous."""
    flat = weight.detach().contiguous().view(-1)
    return flat.view(torch.int16).numpy().view(np.uint16) if flat.dtype == torch.bfloat16 else flat.numpy()


def _panels(weight: Tensor, out: np.ndarray) -> None:
    outs, ins = weight.shape
    target = torch.from_numpy(out.view(np.int16) if out.dtype == np.uint16 else out)
    if weight.dtype == torch.bfloat16:
        lanes = weight.view(torch.int16).view(outs // WIDTH, 2, LANES, ins)
        target.view(outs // WIDTH, ins, LANES, 2).copy_(lanes.permute(0, 3, 2, 1))
    else:
        target.view(outs // WIDTH, ins, WIDTH).copy_(weight.view(outs // WIDTH, WIDTH, ins).transpose(1, 2))
