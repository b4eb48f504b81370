"""One name for the products of every kind of packed matrix, chosen when a caller is compiled."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import overload

from jocr.decoding.bf16 import product_bf16
from jocr.decoding.int8 import HEAD, product_int8
from jocr.decoding.kernels import LINE, WIDTH, product


def multiply(x, x_at, x_ld, rows, w, w_at, w_panel, panels, depth, out, out_at, out_ld, add):
    """out (+)= x @ W^T over whole panels that start at ``w_at``, ``w_panel`` apart; see ``kernels.product``."""
    raise NotImplementedError("to be called from compiled code")


def span(w: Any, ins: int) -> int:
    """Distance of the panels of a matrix of ``ins`` inputs that lies in ``w``."""
    raise NotImplementedError("to be called from compiled code")


@overload(multiply, inline="always")
def _multiply(x, x_at, x_ld, rows, w, w_at, w_panel, panels, depth, out, out_at, out_ld, add):
    if w.dtype == types.int8:

        def narrow(x, x_at, x_ld, rows, w, w_at, w_panel, panels, depth, out, out_at, out_ld, add):
            product_int8(x, x_at, x_ld, rows, w, w_at, w_panel, panels, depth, out, out_at, out_ld, add)

        return narrow

    if w.dtype == types.uint32:

        def paired(x, x_at, x_ld, rows, w, w_at, w_panel, panels, depth, out, out_at, out_ld, add):
            product_bf16(x, x_at, x_ld, rows, w, w_at, w_panel, panels, depth, out, out_at, out_ld, add)

        return paired

    def wide(x, x_at, x_ld, rows, w, w_at, w_panel, panels, depth, out, out_at, out_ld, add):
        product(x, x_at, x_ld, rows, w, w_at, LINE, w_panel, panels, depth, out, out_at, out_ld, add)

    return wide


@overload(span, inline="always")
def _span(w, ins):
    if w.dtype == types.int8:
        return lambda w, ins: HEAD + ins * WIDTH
    if w.dtype == types.uint32:
        return lambda w, ins: (ins + 1) // 2 * WIDTH
    return lambda w, ins: ins * WIDTH
