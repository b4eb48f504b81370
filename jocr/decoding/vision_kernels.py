"""Pieces of the compiled towers: layer norm, GELU, linear layer, convolution.

Rows are those of one view. Matrices are read by ``products.multiply``, whose rows do not depend on one another, so a
view gives the same tokens whatever is encoded beside it. A row that meets a matrix with a bias ends in a 1: the bias is
the matrix's last line.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from jocr.decoding.kernels import LANES, NONE, WIDTH, keep_apart
from jocr.decoding.products import multiply, span
from jocr.decoding.vector_math import ONE, ZERO, exp_one, spread

STRIP = 48  # rows that go through a pair of products at once: their intermediate results stay in cache
HALF, ROOT_HALF = np.float32(0.5), np.float32(0.5**0.5)
QUICK = np.float32(1.702)
P = np.float32(0.3275911)  # erf by Abramowitz and Stegun, 7.1.26: to 1.5e-7
A1, A2, A3, A4, A5 = (np.float32(a) for a in (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429))


@njit(cache=True, inline="always")
def whole(width):
    """``width`` rounded up to whole panels."""
    return (width + WIDTH - 1) // WIDTH * WIDTH


@njit(cache=True, inline="always")
def roomy(width):
    """Distance of rows of ``width`` numbers and a 1, a multiple of vectors."""
    return width + LANES


@njit(cache=True, fastmath={"reassoc", "contract"})
def layer_norm(x, weight, bias, eps, out):
    """out = (x - mean) / deviation * weight + bias, one row."""
    keep_apart()
    n = np.float32(x.shape[0])
    total = ZERO
    for i in range(x.shape[0]):
        total += x[i]
    mean, spread = total / n, ZERO
    for i in range(x.shape[0]):
        spread += (x[i] - mean) * (x[i] - mean)
    scale = ONE / np.sqrt(spread / n + eps)
    for i in range(x.shape[0]):
        out[i] = (x[i] - mean) * scale * weight[i] + bias[i]


@njit(cache=True, fastmath={"contract", "nnan"}, error_model="numpy")
def gelu(x):
    """In place: x times the normal distribution function of x."""
    keep_apart()
    for i in range(x.shape[0]):
        z = abs(x[i]) * ROOT_HALF
        t = ONE / (ONE + P * z)
        tail = HALF * t * (A1 + t * (A2 + t * (A3 + t * (A4 + t * A5)))) * exp_one(-z * z)
        x[i] = x[i] * (tail if x[i] < ZERO else ONE - tail)


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def quick_gelu(x):
    """In place: x times the logistic function of 1.702 x."""
    keep_apart()
    for i in range(x.shape[0]):
        x[i] = x[i] / (ONE + exp_one(-QUICK * x[i]))


@njit(cache=True, inline="always")
def add_to(out, x):
    for i in range(x.shape[0]):
        out[i] += x[i]


@njit(cache=True)
def times(x, ld, rows, w, at, ins, outs, out, out_ld, add):
    """out (+)= x @ W^T for a packed (outs, ins) matrix that starts at ``at``."""
    keep_apart()
    multiply(x, NONE, ld, rows, w, at, span(w, ins), outs // WIDTH, ins, out, NONE, out_ld, add)


@njit(cache=True)
def convolve(x, across, channels, kernel, stride, high, wide, w, at, outs, patch, out, add):
    """A convolution without padding of its own: rows of ``x`` are ``across`` cells of ``channels``.

    The result is (high * wide, outs). ``w`` is packed from (outs, kernel * kernel * channels); ``patch`` holds a
    strip's inputs.
    """
    keep_apart()
    line = kernel * channels
    depth, strip = kernel * line, max(1, STRIP // wide)
    for first in range(0, high, strip):
        n = NONE
        for i in range(first, min(first + strip, high)):
            for j in range(wide):
                for k in range(kernel):
                    start, to = ((i * stride + k) * across + j * stride) * channels, n * depth + k * line
                    spread(x[start : start + line], patch[to : to + line], 1)
                n += 1
        to = first * wide * outs
        multiply(patch, NONE, depth, n, w, at, span(w, depth), outs // WIDTH, depth, out, to, outs, add)
