"""Matrices of the draft head in int8, and the product that reads them: half the bytes of bf16, a quarter of the work.

A draft only proposes; what is committed is the verifier's choice. So its head may be rounded: weights to int8 with one
scale for each output, states to 8 bits with one scale for each row (as in LLM.int8(), section 2.1, without its
outliers). Sums of products are exact integers, so a row's result does not depend on the rows beside it.

A panel of 32 outputs: 32 scales (fp32), 32 offsets (int32), then for every four inputs a line of 32 groups of 4 bytes.
The instruction (AVX-512 VNNI's ``vpdpbusd``) takes unsigned states; 128 is added to them, and its share, the offset,
taken off again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor

from jocr.decoding.kernels import INT, INTS, LANES, LONG, VECTOR, WIDTH, cpu_has, fetch, keep_apart, splat

HEAD = 2 * 4 * WIDTH  # bytes before a panel's lines
GROUP = 4  # inputs of one line
CHUNK = 4096  # outputs quantised at once
LEAST = np.float32(1e-30)  # a row of zeros has some scale too
BYTE = ir.IntType(8)


def supported() -> bool:
    """Whether this CPU has the instruction."""
    return cpu_has("avx512vnni")


def fits(*weights: Tensor) -> bool:
    """Whether (O, I) matrices have whole groups of inputs."""
    return all(weight.shape[1] % GROUP == 0 for weight in weights)


def span(ins: int) -> int:
    """Bytes of a panel of ``ins`` inputs."""
    return HEAD + ins * WIDTH


def size(weight: Tensor) -> int:
    """Bytes of a packed (O, I) matrix; outputs are padded to whole panels."""
    return -(-weight.shape[0] // WIDTH) * span(weight.shape[1])


def pack(weight: Tensor, out: np.ndarray) -> None:
    """(O, I) -> panels in flat int8 ``out``."""
    outs, ins = weight.shape
    panels = out.reshape(-1, span(ins))
    for start in range(0, outs, CHUNK):
        part = weight[start : start + CHUNK].float()
        part = torch.nn.functional.pad(part, (0, 0, 0, -part.shape[0] % WIDTH))
        scale = part.abs().amax(1).clamp_min(float(LEAST)) / 127
        whole = (part / scale[:, None]).round().to(torch.int8)
        first, count = start // WIDTH, part.shape[0] // WIDTH
        mine = panels[first : first + count]
        mine[:, : HEAD // 2] = scale.view(count, WIDTH).numpy().view(np.int8)
        offsets = (128 * whole.sum(1, dtype=torch.int32)).view(count, WIDTH)
        mine[:, HEAD // 2 : HEAD] = offsets.numpy().view(np.int8)
        groups = whole.view(count, WIDTH, ins // GROUP, GROUP).transpose(1, 2)
        mine[:, HEAD:] = groups.reshape(count, -1).numpy()


def _make_dot(panels: int) -> Any:
    """out[p, :] (+)= scale * sum_k q[k] w[p, k, :] for p < panels, 32 columns each."""

    @intrinsic
    def dot(typingctx, q, q_at, w, w_at, w_panel, groups, scale, out, out_at, add):
        sig = types.void(q, types.int64, w, *[types.int64] * 3, types.float32, out, types.int64, types.boolean)
        return sig, _codegen(panels)

    return dot


def _codegen(panels: int) -> Any:
    def emit(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        q, q_at, w, w_at, w_panel, groups, scale, out, out_at, add = args
        q, w, out = (
            context.make_array(sig.args[i])(context, builder, value).data for i, value in ((0, q), (2, w), (7, out))
        )
        zero = ir.Constant(INTS, [0] * LANES)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(2 * panels)]
        starts = [builder.add(w_at, builder.mul(w_panel, LONG(p))) for p in range(panels)]
        with cgutils.for_range(builder, groups) as loop:
            four = builder.gep(q, [builder.add(q_at, builder.mul(loop.index, LONG(GROUP)))], inbounds=True)
            states = splat(builder, builder.load(builder.bitcast(four, INT.as_pointer()), align=1))
            for p, start in enumerate(starts):
                line = builder.add(builder.add(start, LONG(HEAD)), builder.mul(loop.index, LONG(GROUP * WIDTH)))
                for half in (0, 1):
                    at = builder.gep(w, [builder.add(line, LONG(half * 64))], inbounds=True)
                    fetch(builder, builder.gep(at, [LONG(64 * GROUP * WIDTH)]))
                    place = sums[2 * p + half]
                    builder.store(_dot(builder, builder.load(place), states, _vector(builder, at, INTS)), place)
        gain = splat(builder, scale)
        for i, place in enumerate(sums):
            panel = builder.add(starts[i // 2], LONG(i % 2 * 64))
            scales = _vector(builder, builder.gep(w, [panel]), VECTOR)
            offsets = _vector(builder, builder.gep(w, [builder.add(panel, LONG(HEAD // 2))]), INTS)
            value = builder.sitofp(builder.sub(builder.load(place), offsets), VECTOR)
            value = builder.fmul(value, builder.fmul(scales, gain))
            target = builder.bitcast(builder.gep(out, [builder.add(out_at, LONG(i * LANES))]), VECTOR.as_pointer())
            kept = builder.select(add, builder.load(target, align=4), ir.Constant(VECTOR, [0.0] * LANES))
            builder.store(builder.fadd(kept, value), target, align=4)
        return context.get_dummy_value()

    return emit


def _vector(builder: Any, at: Any, kind: Any) -> Any:
    return builder.load(builder.bitcast(at, kind.as_pointer()), align=1)


def _dot(builder: Any, sums: Any, states: Any, weights: Any) -> Any:
    """Each lane's four unsigned bytes times its four signed ones, added to its sum."""
    kind = ir.FunctionType(INTS, [INTS] * 3)
    instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpdpbusd.512")
    return builder.call(instruction, [sums, states, weights])


_one, _two = _make_dot(1), _make_dot(2)


@njit(cache=True, fastmath={"reassoc", "contract", "nnan"}, error_model="numpy")
def quantise(x, x_at, depth, q, q_at):
    """A row to 1..255 around 128; what one step stands for."""
    keep_apart()
    most = LEAST
    for i in range(depth):
        most = max(most, abs(x[x_at + i]))
    gain = np.float32(127.0) / most
    for i in range(depth):
        q[q_at + i] = np.uint8(np.int32(x[x_at + i] * gain + np.float32(128.5)))
    return most / np.float32(127.0)


@njit(cache=True)
def product_int8(x, x_at, x_ld, rows, w, w_at, w_panel, panels, depth, out, out_at, out_ld, add):
    """``kernels.product`` for packed int8 ``w``; ``w_at``, ``w_panel`` in bytes. A panel is read once for all rows."""
    keep_apart()
    q, scales = np.empty(rows * depth, np.uint8), np.empty(rows, np.float32)
    for r in range(rows):
        scales[r] = quantise(x, x_at + r * x_ld, depth, q, r * depth)
    groups = depth // GROUP
    for p in range(0, panels - 1, 2):
        for r in range(rows):
            at = out_at + r * out_ld + p * WIDTH
            _two(q, r * depth, w, w_at + p * w_panel, w_panel, groups, scales[r], out, at, add)
    if panels % 2:
        p = panels - 1
        for r in range(rows):
            at = out_at + r * out_ld + p * WIDTH
            _one(q, r * depth, w, w_at + p * w_panel, w_panel, groups, scales[r], out, at, add)
