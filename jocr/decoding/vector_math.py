"""Row-wise pieces of the compiled step: norm, exponential, softmax, SwiGLU, rotary positions, argmax.

Each works on one row at a time, so that a row's result is the same whatever stands beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from jocr.decoding.kernels import keep_apart, largest

LOG2E = np.float32(1.4426950408889634)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
ROUND = np.float32(12582912.0)  # 1.5 * 2^23: adding it rounds to an integer
C2, C3, C4, C5, C6 = (np.float32(1.0 / n) for n in (2, 6, 24, 120, 720))
LOW, HIGH = np.float32(-87.0), np.float32(88.0)
ONE, ZERO = np.float32(1.0), np.float32(0.0)


@intrinsic
def _power_of_two(typingctx: Any, n: Any) -> Any:
    """2^n for an int32 n in -126..127, by writing the exponent bits."""

    def emit(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        bits = builder.shl(builder.add(args[0], ir.Constant(ir.IntType(32), 127)), ir.Constant(ir.IntType(32), 23))
        return builder.bitcast(bits, ir.FloatType())

    return types.float32(types.int32), emit


@njit(cache=True, inline="always")
def exp_one(x):
    """e^x in fp32, to about 2e-7 relative; the argument is clamped to -87..88."""
    x = min(max(x, LOW), HIGH)
    n = (x * LOG2E + ROUND) - ROUND
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = ONE + r * (ONE + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * C6)))))
    return p * _power_of_two(np.int32(n))


@njit(cache=True, fastmath={"reassoc", "contract"})
def rms_norm(x, weight, eps, out):
    """out = x / rms(x) * weight, one row."""
    keep_apart()
    total = ZERO
    for i in range(x.shape[0]):
        total += x[i] * x[i]
    scale = ONE / np.sqrt(total / np.float32(x.shape[0]) + eps)
    for i in range(x.shape[0]):
        out[i] = x[i] * scale * weight[i]


@njit(cache=True, fastmath={"reassoc", "contract", "nnan"})
def softmax(x):
    """In place, one row."""
    keep_apart()
    top = largest(x, x.shape[0])
    total = ZERO
    for i in range(x.shape[0]):
        x[i] = exp_one(x[i] - top)
        total += x[i]
    scale = ONE / total
    for i in range(x.shape[0]):
        x[i] *= scale


@njit(cache=True, fastmath={"reassoc", "contract", "nnan"})
def probability(x, index):
    """Softmax of one row at ``index``, which must be its largest; the row stays as it is."""
    keep_apart()
    total = ZERO
    for i in range(x.shape[0]):
        total += exp_one(x[i] - x[index])
    return ONE / total


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def swiglu(gate, up):
    """gate = silu(gate) * up, one row, in place."""
    keep_apart()
    for i in range(gate.shape[0]):
        gate[i] = gate[i] / (ONE + exp_one(-gate[i])) * up[i]


@njit(cache=True, fastmath={"contract"})
def rotate_half(x, cos, sin, scale):
    """Rotate one head in place by tables of (head_dim,) with repeated halves, and scale it."""
    keep_apart()
    half = x.shape[0] // 2
    for i in range(half):
        a, b = x[i] * scale, x[half + i] * scale
        x[i] = a * cos[i] - b * sin[i]
        x[half + i] = b * cos[i] + a * sin[i]


@njit(cache=True, inline="always")
def spread(x, out, apart):
    """x to every ``apart``-th place of ``out``. (On slices: an index that might be negative is looked at each time.)"""
    for i in range(x.shape[0]):
        out[i * apart] = x[i]


@njit(cache=True)
def argmax(x):
    """Index of the largest element, the first among equals."""
    keep_apart()
    top, best = largest(x, x.shape[0]), 0
    while x[best] < top:
        best += 1
    return best
