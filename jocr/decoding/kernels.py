"""One matrix kernel for a few rows, as LLVM vector code inside numba, and the vector math around it.

Every output element is one chain of fused multiply-adds in the order of the inner dimension. The chain is the same
whatever the number of rows computed beside it, so a row's result never depends on the batch: this is what makes
speculation bit-exact, and the reason why a library GEMM (which picks another kernel for 1, 2 or 4 rows) is not used.
Weights are read once for up to six rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16  # floats in a vector: one AVX-512 register, two of AVX2
WIDTH = 2 * LANES  # columns of a panel; widths are padded to multiples of it
MOST_ROWS = 6  # rows whose sums fit in registers

FLOAT = ir.FloatType()
VECTOR = ir.VectorType(FLOAT, LANES)


def _make_block(rows: int, panels: int) -> Any:
    """out[r, p, :] (+)= sum_k x[r, k] * w[p, k, :] for r < rows, p < panels, 32 columns each."""

    @intrinsic
    def block(typingctx, x, x_at, x_ld, w, w_at, w_ld, w_panel, depth, out, out_at, out_ld, add):
        sig = types.void(x, *[types.int64] * 2, w, *[types.int64] * 4, out, *[types.int64] * 2, types.boolean)
        return sig, _codegen(rows, panels)

    return block


def _codegen(rows: int, panels: int) -> Any:
    def emit(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        x, x_at, x_ld, w, w_at, w_ld, w_panel, depth, out, out_at, out_ld, add = args
        x = _data(context, builder, sig.args[0], x)
        w = _data(context, builder, sig.args[3], w)
        out = _data(context, builder, sig.args[8], out)
        vectors = 2 * panels
        zero = ir.Constant(VECTOR, [0.0] * LANES)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(vectors)] for _ in range(rows)]
        for row in sums:
            for place in row:
                builder.store(zero, place)
        fma = _fma(builder)
        starts = [builder.add(x_at, builder.mul(x_ld, ir.Constant(ir.IntType(64), r))) for r in range(rows)]
        panel_at = [builder.add(w_at, builder.mul(w_panel, ir.Constant(ir.IntType(64), p))) for p in range(panels)]
        with cgutils.for_range(builder, depth) as loop:
            line = builder.mul(loop.index, w_ld)
            weights = [_load(builder, w, builder.add(at, line), half) for at in panel_at for half in (0, 1)]
            for r in range(rows):
                value = builder.load(builder.gep(x, [builder.add(starts[r], loop.index)], inbounds=True))
                wide = _broadcast(builder, value)
                for place, weight in zip(sums[r], weights, strict=True):
                    builder.store(builder.call(fma, [wide, weight, builder.load(place)]), place)
        _finish(builder, out, out_at, out_ld, add, sums)
        return context.get_dummy_value()

    return emit


def _fma(builder: Any) -> Any:
    kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
    return cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32")


def _finish(builder: Any, out: Any, at: Any, ld: Any, add: Any, sums: Any) -> None:
    """Store the sums, added to what is there where ``add``."""
    for r, row in enumerate(sums):
        start = builder.add(at, builder.mul(ld, ir.Constant(ir.IntType(64), r)))
        for i, place in enumerate(row):
            pointer = _pointer(builder, out, builder.add(start, ir.Constant(ir.IntType(64), i * LANES)))
            with builder.if_then(add):
                old = builder.load(pointer, align=4)
                builder.store(builder.fadd(old, builder.load(place)), place)
            builder.store(builder.load(place), pointer, align=4)


def _data(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.make_array(kind)(context, builder, value).data


def _pointer(builder: Any, base: Any, at: Any) -> Any:
    return builder.bitcast(builder.gep(base, [at], inbounds=True), VECTOR.as_pointer())


def _load(builder: Any, base: Any, at: Any, half: int) -> Any:
    return builder.load(_pointer(builder, base, builder.add(at, ir.Constant(ir.IntType(64), half * LANES))), align=4)


def _broadcast(builder: Any, value: Any) -> Any:
    one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(VECTOR, ir.Undefined), zeros)


@intrinsic
def keep_apart(typingctx: Any) -> Any:
    """Mark the calling function as not to be inlined: one copy of the kernel is compiled, not one for each caller."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), emit


_one, _one_wide = _make_block(1, 1), _make_block(1, 2)
_two, _three, _four, _five, _six = (_make_block(n, 1) for n in (2, 3, 4, 5, 6))


@njit(cache=True)
def product(x, x_at, x_ld, rows, w, w_at, w_ld, w_panel, panels, depth, out, out_at, out_ld, add):
    """out[r, 32 p + c] (+)= sum_k x[r, k] w[p, k, c], all flat fp32 arrays.

    Args:
        x_at, x_ld, rows: first element, distance of rows, number of rows.
        w_at, w_ld, w_panel, panels: first element, distance of lines k, distance of panels, number of panels.
        depth: length of the inner dimension.
        add: add to what ``out`` holds.
    """
    keep_apart()
    if rows == 1:
        for p in range(0, panels - 1, 2):
            _one_wide(x, x_at, x_ld, w, w_at + p * w_panel, w_ld, w_panel, depth, out, out_at + p * WIDTH, out_ld, add)
        if panels % 2:
            p = panels - 1
            _one(x, x_at, x_ld, w, w_at + p * w_panel, w_ld, w_panel, depth, out, out_at + p * WIDTH, out_ld, add)
        return
    for p in range(panels):
        wp, op = w_at + p * w_panel, out_at + p * WIDTH
        r = 0
        while r < rows:
            n = min(rows - r, MOST_ROWS)
            xr, o = x_at + r * x_ld, op + r * out_ld
            if n == 6:
                _six(x, xr, x_ld, w, wp, w_ld, w_panel, depth, out, o, out_ld, add)
            elif n == 5:
                _five(x, xr, x_ld, w, wp, w_ld, w_panel, depth, out, o, out_ld, add)
            elif n == 4:
                _four(x, xr, x_ld, w, wp, w_ld, w_panel, depth, out, o, out_ld, add)
            elif n == 3:
                _three(x, xr, x_ld, w, wp, w_ld, w_panel, depth, out, o, out_ld, add)
            elif n == 2:
                _two(x, xr, x_ld, w, wp, w_ld, w_panel, depth, out, o, out_ld, add)
            else:
                _one(x, xr, x_ld, w, wp, w_ld, w_panel, depth, out, o, out_ld, add)
            r += n


def pack(weight: np.ndarray) -> np.ndarray:
    """(O, I) -> panels (ceil(O / 32), I, 32), zero-padded, flat."""
    outs, ins = weight.shape
    panels = -(-outs // WIDTH)
    padded = np.zeros((panels * WIDTH, ins), np.float32)
    padded[:outs] = weight
    return np.ascontiguousarray(padded.reshape(panels, WIDTH, ins).transpose(0, 2, 1)).reshape(-1)
