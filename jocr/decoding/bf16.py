"""Products of numbers rounded to bf16, summed in fp32: twice the multiplications of fp32 in a cycle.

For bf16 models on CPUs with AVX-512 BF16, whose ``vdpbf16ps`` adds the products of pairs. Weights are packed in pairs
of inputs: a panel's line is 32 integers of 32 bits, each the bf16 weights of inputs 2 i (its low half) and 2 i + 1 of
one output. Rows are rounded, to nearest even, as they are read. As in ``kernels`` every element is one chain in the
order of the inner dimension, whatever the number of rows beside it, so speculation stays exact.
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

from jocr.decoding.kernels import (
    AHEAD,
    INT,
    INTS,
    LANES,
    LONG,
    NEAR,
    NONE,
    PAIRED,
    VECTOR,
    WIDTH,
    accumulate,
    array,
    cpu_has,
    fetch,
    keep_apart,
    splat,
)

STRIP = 48  # rows rounded at once
MANY = 8  # rows of the widest block
HALF = ir.IntType(16)
HALVES = ir.VectorType(HALF, LANES)
ONE = np.float32(1.0)


def supported() -> bool:
    """Whether this CPU has the instruction."""
    return cpu_has("avx512bf16")


def span(ins: int) -> int:
    """Elements of a panel of ``ins`` inputs."""
    return (ins + 1) // 2 * WIDTH


def size(weight: Tensor) -> int:
    """Elements (uint32) of a packed (O, I) matrix; outputs are padded to whole panels, inputs to whole pairs."""
    return -(-weight.shape[0] // WIDTH) * span(weight.shape[1])


def pack(weight: Tensor, out: np.ndarray) -> None:
    """(O, I) -> panels (ceil(O / 32), ceil(I / 2), 32) in flat uint32 ``out``."""
    outs, ins = weight.shape
    whole = torch.nn.functional.pad(weight.bfloat16(), (0, ins % 2, 0, -outs % WIDTH))
    pairs = whole.contiguous().view(torch.int32).view(-1, WIDTH, (ins + 1) // 2)
    torch.from_numpy(out.view(np.int32)).view(pairs.shape[0], -1, WIDTH).copy_(pairs.transpose(1, 2))


def _make_block(rows: int, panels: int = 1) -> Any:
    """out[r, p, :] (+)= sum over pairs of x[r, k] * w[p, k, :] for r < rows, p < panels, 32 columns each."""

    @intrinsic
    def block(typingctx, x, x_at, x_ld, w, w_at, w_panel, pairs, out, out_at, out_ld, add):
        sig = types.void(x, *[types.int64] * 2, w, *[types.int64] * 3, out, *[types.int64] * 2, types.boolean)
        return sig, _codegen(rows, panels)

    return block


def _codegen(rows: int, panels: int) -> Any:
    def emit(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        x, x_at, x_ld, w, w_at, w_panel, pairs, out, out_at, out_ld, add = args
        x, w, out = (array(context, builder, sig.args[i], value) for i, value in ((0, x), (3, w), (7, out)))

        def states(row: int, k: Any) -> Any:
            at = builder.add(builder.add(x_at, builder.mul(x_ld, LONG(row))), k)
            return splat(builder, builder.load(builder.gep(x, [at], inbounds=True)))

        def weights(k: Any) -> list[Any]:
            line = builder.add(w_at, builder.mul(k, LONG(WIDTH)))
            starts = [builder.add(line, builder.mul(w_panel, LONG(p))) for p in range(panels)]
            places = [builder.add(start, LONG(half * LANES)) for start in starts for half in (0, 1)]
            if rows < MANY:
                for place in places:
                    fetch(builder, builder.gep(w, [builder.add(place, LONG(AHEAD * LANES))]))
            return [_ints(builder, w, place) for place in places]

        accumulate(builder, rows, 2 * panels, pairs, states, weights, _dot, out, out_at, out_ld, add)
        return context.get_dummy_value()

    return emit


def _ints(builder: Any, base: Any, at: Any) -> Any:
    return builder.load(builder.bitcast(builder.gep(base, [at], inbounds=True), INTS.as_pointer()), align=4)


def _dot(builder: Any, states: Any, weights: Any, sums: Any) -> Any:
    kind = ir.FunctionType(VECTOR, [VECTOR, INTS, INTS])
    instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512bf16.dpbf16ps.512")
    return builder.call(instruction, [sums, states, weights])


@intrinsic
def pair_up(typingctx, x, x_at, depth, gain, out, out_at):
    """A row of fp32, times ``gain`` -> pairs of bf16 in uint32 ``out``; the last is filled up with a zero."""

    def emit(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        x, x_at, depth, gain, out, out_at = args
        x, out = (array(context, builder, sig.args[i], value) for i, value in ((0, x), (4, out)))
        halves, out_at = builder.bitcast(out, HALF.as_pointer()), builder.mul(out_at, LONG(2))
        gain, whole = splat(builder, gain), builder.udiv(depth, LONG(LANES))

        def here(k: Any) -> Any:
            return builder.bitcast(builder.gep(x, [builder.add(x_at, k)], inbounds=True), VECTOR.as_pointer())

        def there(k: Any) -> Any:
            return builder.bitcast(builder.gep(halves, [builder.add(out_at, k)], inbounds=True), HALVES.as_pointer())

        with cgutils.for_range(builder, whole) as loop:
            k = builder.mul(loop.index, LONG(LANES))
            builder.store(_narrow(builder, builder.load(here(k), align=4), gain), there(k), align=2)
        k = builder.mul(whole, LONG(LANES))
        with builder.if_then(builder.icmp_unsigned("<", k, depth)):
            rest = builder.trunc(builder.sub(depth, k), INT)
            even = builder.and_(builder.add(rest, INT(1)), INT(~1))
            value = _masked(builder, "load", VECTOR, here(k), rest, ir.Constant(VECTOR, [0.0] * LANES))
            _masked(builder, "store", HALVES, there(k), even, _narrow(builder, value, gain))
        return context.get_dummy_value()

    return types.void(x, types.int64, types.int64, types.float32, out, types.int64), emit


def _narrow(builder: Any, value: Any, gain: Any) -> Any:
    kind = ir.FunctionType(HALVES, [VECTOR])
    instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512bf16.cvtneps2bf16.512")
    return builder.call(instruction, [builder.fmul(value, gain)])


def _masked(builder: Any, what: str, kind: Any, at: Any, lanes: Any, value: Any) -> Any:
    """Load the first ``lanes`` of a vector (the others are ``value``'s), or store those of ``value``."""
    mask = builder.icmp_unsigned("<", ir.Constant(INTS, list(range(LANES))), splat(builder, lanes))
    suffix = f"v{LANES}{'f32' if kind is VECTOR else 'i16'}"
    name, align = f"llvm.masked.{what}.{suffix}.p0{suffix}", INT(4 if kind is VECTOR else 2)
    arguments = [at, align, mask, value] if what == "load" else [value, at, align, mask]
    result = kind if what == "load" else ir.VoidType()
    signature = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), arguments)


_one_wide, _two_wide, _three_wide, _four_wide = (_make_block(n, 2) for n in (1, 2, 3, 4))
_one, _two, _three, _four, _five, _six, _eight = (_make_block(n) for n in (1, 2, 3, 4, 5, 6, MANY))


@njit(cache=True)
def product_bf16(x, x_at, x_ld, rows, w, w_at, w_panel, panels, depth, out, out_at, out_ld, add):
    """``kernels.product`` for ``w`` packed in pairs: fp32 rows in, rounded here, and fp32 rows out."""
    keep_apart()
    pairs = (depth + 1) // 2
    q = np.empty(min(rows, STRIP) * pairs, np.uint32)
    for first in range(0, rows, STRIP):
        n = min(STRIP, rows - first)
        for r in range(n):
            pair_up(x, x_at + (first + r) * x_ld, depth, ONE, q, r * pairs)
        product_pairs(q, NONE, pairs, n, w, w_at, w_panel, panels, pairs, out, out_at + first * out_ld, out_ld, add)


@njit(cache=True)
def product_pairs(x, x_at, x_ld, rows, w, w_at, w_panel, panels, pairs, out, out_at, out_ld, add):
    """The same for rows that are pairs already; ``x_at``, ``x_ld`` and ``pairs`` count those."""
    keep_apart()
    p = NONE
    if rows <= PAIRED and pairs <= NEAR // 2:
        while p < panels - 1:
            wp, op = w_at + p * w_panel, out_at + p * WIDTH
            if rows == 1:
                _one_wide(x, x_at, x_ld, w, wp, w_panel, pairs, out, op, out_ld, add)
            elif rows == 2:
                _two_wide(x, x_at, x_ld, w, wp, w_panel, pairs, out, op, out_ld, add)
            elif rows == 3:
                _three_wide(x, x_at, x_ld, w, wp, w_panel, pairs, out, op, out_ld, add)
            else:
                _four_wide(x, x_at, x_ld, w, wp, w_panel, pairs, out, op, out_ld, add)
            p += 2
    while p < panels:
        wp, op = w_at + p * w_panel, out_at + p * WIDTH
        r = NONE
        while r < rows:
            n = rows - r
            xr, o = x_at + r * x_ld, op + r * out_ld
            if n >= MANY:
                _eight(x, xr, x_ld, w, wp, w_panel, pairs, out, o, out_ld, add)
                n = MANY
            elif n >= 6:
                _six(x, xr, x_ld, w, wp, w_panel, pairs, out, o, out_ld, add)
                n = 6
            elif n == 5:
                _five(x, xr, x_ld, w, wp, w_panel, pairs, out, o, out_ld, add)
            elif n == 4:
                _four(x, xr, x_ld, w, wp, w_panel, pairs, out, o, out_ld, add)
            elif n == 3:
                _three(x, xr, x_ld, w, wp, w_panel, pairs, out, o, out_ld, add)
            elif n == 2:
                _two(x, xr, x_ld, w, wp, w_panel, pairs, out, o, out_ld, add)
            else:
                _one(x, xr, x_ld, w, wp, w_panel, pairs, out, o, out_ld, add)
            r += n
        p += 1
