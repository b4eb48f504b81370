"""One matrix kernel for a few rows, as LLVM vector code inside numba, and the vector math around it.

Every output element is one chain of fused multiply-adds in the order of the inner dimension. The chain is the same
whatever the number of rows computed beside it, so a row's result never depends on the batch: this is what makes
speculation bit-exact, and the reason why a library GEMM (which picks another kernel for 1, 2 or 4 rows) is not used.
Weights are read once for up to six rows.

Weights are fp32, or bf16 held as uint16 (``bf16`` has another product, for CPUs that multiply such numbers). A bf16
panel's line of 32 columns is stored interleaved, columns c and c + 16 side by side: read as 16 integers of 32 bits, the
low halves shifted up and the high halves masked are two fp32 vectors, so widening costs one operation a vector. Its
lines are fetched ahead: out of cache this reads at the memory's speed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils, config
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

LANES = 16  # floats in a vector: one AVX-512 register, two of AVX2
WIDTH = 2 * LANES  # columns of a panel; widths are padded to multiples of it
MOST_ROWS = 6  # rows whose sums fit in registers
NONE, ROW, LINE = np.int64(0), np.int64(1), np.int64(WIDTH)  # a plain 0, 1 or 32 as an argument is a type of its own,
SET, ADD = np.bool_(False), np.bool_(True)  # and so is True: each would have a kernel compiled for itself
PAIRED, NEAR = 4, 1024  # rows and lines up to which two panels are read at once
AHEAD = 64  # lines of a bf16 panel, 64 bytes each, fetched before they are read

FLOAT = ir.FloatType()
VECTOR = ir.VectorType(FLOAT, LANES)
INT = ir.IntType(32)
LONG = ir.IntType(64)
INTS = ir.VectorType(INT, LANES)
BYTES = ir.IntType(8).as_pointer()


def cpu_has(feature: str) -> bool:
    """Whether kernels are compiled for a CPU with this feature: the host's, or what numba's settings ask for
    (``NUMBA_CPU_NAME=generic`` for a cache that machines share)."""
    features = get_host_cpu_features() if config.CPU_FEATURES is None else config.CPU_FEATURES
    return f"+{feature}" in features.split(",")


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
        x, w, out = (array(context, builder, sig.args[i], value) for i, value in ((0, x), (3, w), (8, out)))
        narrow = sig.args[3].dtype == types.uint16
        starts = [builder.add(x_at, builder.mul(x_ld, LONG(r))) for r in range(rows)]
        panel_at = [builder.add(w_at, builder.mul(w_panel, LONG(p))) for p in range(panels)]

        def states(row: int, k: Any) -> Any:
            return splat(builder, builder.load(builder.gep(x, [builder.add(starts[row], k)], inbounds=True)))

        def weights(k: Any) -> list[Any]:
            line = builder.mul(k, w_ld)
            return [v for at in panel_at for v in _weights(builder, w, builder.add(at, line), narrow)]

        accumulate(builder, rows, 2 * panels, depth, states, weights, _multiply_add, out, out_at, out_ld, add)
        return context.get_dummy_value()

    return emit


def accumulate(builder: Any, rows: int, vectors: int, depth: Any, states: Any, weights: Any, step: Any, out: Any,
               out_at: Any, out_ld: Any, add: Any) -> None:  # fmt: skip
    """Sums of ``rows`` by ``vectors`` vectors over ``depth`` steps, kept in registers and stored at the end.

    ``weights(k)`` loads a line's vectors, ``states(row, k)`` what a row has for them in every lane, and ``step(builder,
    state, weight, sum)`` is the new sum.
    """
    sums = [[_zero(builder) for _ in range(vectors)] for _ in range(rows)]
    with cgutils.for_range(builder, depth) as loop:
        line = weights(loop.index)
        for r, row in enumerate(sums):
            state = states(r, loop.index)
            for place, weight in zip(row, line, strict=True):
                builder.store(step(builder, state, weight, builder.load(place)), place)
    _finish(builder, out, out_at, out_ld, add, sums)


def _zero(builder: Any) -> Any:
    zero = ir.Constant(VECTOR, [0.0] * LANES)
    place = cgutils.alloca_once_value(builder, zero)
    builder.store(zero, place)
    return place


def _weights(builder: Any, w: Any, at: Any, narrow: bool) -> list[Any]:
    """The two fp32 vectors of a panel's line."""
    if not narrow:
        return [_load(builder, w, at, half) for half in (0, 1)]
    fetch(builder, builder.gep(w, [builder.add(at, LONG(AHEAD * WIDTH))]))
    pairs = builder.load(builder.bitcast(builder.gep(w, [at], inbounds=True), INTS.as_pointer()), align=2)
    low = builder.shl(pairs, ir.Constant(INTS, [16] * LANES))
    high = builder.and_(pairs, ir.Constant(INTS, [0xFFFF0000] * LANES))
    return [builder.bitcast(low, VECTOR), builder.bitcast(high, VECTOR)]


def fetch(builder: Any, at: Any) -> None:
    """Ask for a line of memory that will be read soon."""
    kind = ir.FunctionType(ir.VoidType(), [BYTES, INT, INT, INT])
    ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    builder.call(ask, [builder.bitcast(at, BYTES), INT(0), INT(3), INT(1)])


def _multiply_add(builder: Any, state: Any, weight: Any, total: Any) -> Any:
    kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
    fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32")
    return builder.call(fma, [state, weight, total])


def _finish(builder: Any, out: Any, at: Any, ld: Any, add: Any, sums: Any) -> None:
    """Store the sums, added to what is there where ``add``."""
    for r, row in enumerate(sums):
        start = builder.add(at, builder.mul(ld, LONG(r)))
        for i, place in enumerate(row):
            pointer = _pointer(builder, out, builder.add(start, LONG(i * LANES)))
            with builder.if_then(add):
                old = builder.load(pointer, align=4)
                builder.store(builder.fadd(old, builder.load(place)), place)
            builder.store(builder.load(place), pointer, align=4)


def array(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The memory of an array that compiled code was given."""
    return context.make_array(kind)(context, builder, value).data


def _pointer(builder: Any, base: Any, at: Any) -> Any:
    return builder.bitcast(builder.gep(base, [at], inbounds=True), VECTOR.as_pointer())


def _load(builder: Any, base: Any, at: Any, half: int) -> Any:
    return builder.load(_pointer(builder, base, builder.add(at, LONG(half * LANES))), align=4)


def splat(builder: Any, value: Any) -> Any:
    """A fp32 number, or 32 bits, in every lane."""
    none = ir.Constant(VECTOR if value.type == FLOAT else INTS, ir.Undefined)
    one = builder.insert_element(none, value, INT(0))
    return builder.shuffle_vector(one, none, ir.Constant(INTS, [0] * LANES))


@intrinsic
def keep_apart(typingctx: Any) -> Any:
    """Mark the calling function as not to be inlined: one copy of the kernel is compiled, not one for each caller."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), emit


_one_wide, _two_wide, _three_wide, _four_wide = (_make_block(n, 2) for n in (1, 2, 3, 4))
_one, _two, _three, _four, _five, _six = (_make_block(n, 1) for n in (1, 2, 3, 4, 5, 6))


@njit(cache=True)
def product(x, x_at, x_ld, rows, w, w_at, w_ld, w_panel, panels, depth, out, out_at, out_ld, add):
    """out[r, 32 p + c] (+)= sum_k x[r, k] w[p, k, c], all flat arrays: fp32, ``w`` fp32 or interleaved bf16.

    Args:
        x_at, x_ld, rows: first element, distance of rows, number of rows.
        w_at, w_ld, w_panel, panels: first element, distance of lines k, distance of panels, number of panels.
        depth: length of the inner dimension.
        add: add to what ``out`` holds.
    """
    keep_apart()
    p = NONE
    if rows <= PAIRED and depth <= NEAR:  # too few sums to hide one another's latency; long panels come from memory,
        # where one stream is faster than two
        while p < panels - 1:
            wp, op = w_at + p * w_panel, out_at + p * WIDTH
            if rows == 1:
                _one_wide(x, x_at, x_ld, w, wp, w_ld, w_panel, depth, out, op, out_ld, add)
            elif rows == 2:
                _two_wide(x, x_at, x_ld, w, wp, w_ld, w_panel, depth, out, op, out_ld, add)
            elif rows == 3:
                _three_wide(x, x_at, x_ld, w, wp, w_ld, w_panel, depth, out, op, out_ld, add)
            else:
                _four_wide(x, x_at, x_ld, w, wp, w_ld, w_panel, depth, out, op, out_ld, add)
            p += 2
    while p < panels:
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
        p += 1


@intrinsic
def largest(typingctx: Any, x: Any, count: Any) -> Any:
    """The largest of the first ``count`` elements of a fp32 array, one at least. (The compiler leaves such a loop as it
    is.)"""

    def emit(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        data, whole = array(context, builder, sig.args[0], args[0]), builder.udiv(args[1], LONG(LANES))
        first = builder.load(data)
        wide, one = (cgutils.alloca_once_value(builder, start) for start in (splat(builder, first), first))
        with cgutils.for_range(builder, whole) as loop:
            _keep_larger(builder, wide, _load(builder, data, builder.mul(loop.index, LONG(LANES)), 0))
        top, apart = builder.load(wide), LANES
        while apart := apart // 2:  # halves against one another
            lanes = ir.Constant(INTS, [(i + apart) % LANES for i in range(LANES)])
            top = _larger(builder, builder.shuffle_vector(top, top, lanes), top)
        _keep_larger(builder, one, builder.extract_element(top, INT(0)))
        with cgutils.for_range_slice(builder, builder.mul(whole, LONG(LANES)), args[1], LONG(1)) as (i, _):
            _keep_larger(builder, one, builder.load(builder.gep(data, [i], inbounds=True)))
        return builder.load(one)

    return types.float32(x, types.int64), emit


def _keep_larger(builder: Any, place: Any, value: Any) -> None:
    builder.store(_larger(builder, value, builder.load(place)), place)


def _larger(builder: Any, value: Any, other: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", value, other), value, other)


@intrinsic
def widen(typingctx: Any, value: Any) -> Any:
    """A weight as fp32: a float as it is, a uint16 as the bf16 number with its bits."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if sig.args[0] == types.float32:
            return args[0]
        return builder.bitcast(builder.shl(builder.zext(args[0], INT), INT(16)), FLOAT)

    return types.float32(value), emit
