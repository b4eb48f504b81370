"""Every way of taking the grid attention against its definition."""

from __future__ import annotations

import pytest
import torch

from jocr.model import chunked, relative
from jocr.model.chunked import chunked_attention
from jocr.model.relative import attention, biased, folded, in_strips, relative_positions


def operands(b: int, n: int, h: int, w: int, d: int, dtype: torch.dtype = torch.float32):
    generator = torch.Generator().manual_seed(h * w)
    shapes = [(b, n, h * w, d)] * 3 + [(b, n, h, w, h), (b, n, h, w, w)]
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def definition(q, k, v, by_row, by_col):
    q, k, v, by_row, by_col = (t.double() for t in (q, k, v, by_row, by_col))
    w = by_row.shape[3]
    size = q.shape[2]
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    for i in range(size):
        for j in range(size):
            scores[:, :, i, j] += by_row[:, :, i // w, i % w, j // w] + by_col[:, :, i // w, i % w, j % w]
    return scores.softmax(-1) @ v


@pytest.mark.parametrize("way", [biased, folded, in_strips])
@pytest.mark.parametrize("grid", [(3, 3), (5, 4), (1, 7)])
def test_each_way_is_the_definition(way, grid, monkeypatch) -> None:
    monkeypatch.setattr(relative, "STRIP", 6)  # several strips, the last one short
    operand = operands(2, 3, *grid, 8)
    torch.testing.assert_close(way(*operand), definition(*operand).float(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("grid", [(5, 5), (24, 24)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_inference_equals_training(grid, dtype) -> None:
    operand = operands(1, 2, *grid, 16, dtype)
    with torch.no_grad():
        fast = attention(*operand).double()
    exact = biased(*(t.double() for t in operand))
    assert (fast - exact).norm() / exact.norm() < (1e-6 if dtype == torch.float32 else 0.02)
    whole = attention(*operand).double()  # gradients enabled
    assert (whole - exact).norm() / exact.norm() < (1e-6 if dtype == torch.float32 else 0.02)


def test_positions_by_distance_and_resampled() -> None:
    table = torch.arange(5.0)[:, None]  # distances -2..2
    assert relative_positions(3, table)[..., 0].tolist() == [[2, 1, 0], [3, 2, 1], [4, 3, 2]]
    assert relative_positions(2, table).shape == (2, 2, 1)
    resampled = relative_positions(2, table)[..., 0]
    torch.testing.assert_close(resampled, torch.tensor([[2.0, 1 / 3], [11 / 3, 2.0]]))


def gradients(operands, out):
    generator = torch.Generator().manual_seed(5)
    return torch.autograd.grad(out, operands, torch.randn(out.shape, generator=generator).to(out.dtype))


@pytest.mark.parametrize("heads_at_once", [1, 4])
@pytest.mark.parametrize("grid", [(3, 3), (5, 4)])
def test_gradients_are_those_of_the_definition(grid, heads_at_once, monkeypatch) -> None:
    monkeypatch.setattr(chunked, "CHUNK", heads_at_once * (grid[0] * grid[1]) ** 2)  # 6 heads: the last chunk is short
    operand = [t.requires_grad_() for t in operands(2, 3, *grid, 8)]
    wanted = definition(*operand)
    out = attention(*operand)
    torch.testing.assert_close(out, wanted.float(), atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(gradients(operand, out), gradients(operand, wanted), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_chunked_attention_is_the_librarys(causal) -> None:
    generator = torch.Generator().manual_seed(2)
    q, k, v = (torch.randn(2, 3, 7, 8, generator=generator).requires_grad_() for _ in range(3))
    ours = chunked_attention(q * 8**-0.5, k, v, causal=causal)
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    torch.testing.assert_close(ours, theirs)
    for a, b in zip(gradients([q, k, v], ours), gradients([q, k, v], theirs), strict=True):
        torch.testing.assert_close(a, b)


def test_autocast_takes_chunked_attention_in_its_type() -> None:
    operand = [t.requires_grad_() for t in operands(1, 2, 4, 4, 8)]
    exact = definition(*operand)
    with torch.autocast("cpu", torch.bfloat16):
        out = attention(*operand)
    assert out.dtype == torch.bfloat16
    assert (out.double() - exact).norm() / exact.norm() < 0.02
    for ours, theirs in zip(gradients(operand, out.float()), gradients(operand, exact.float()), strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).norm() / theirs.norm() < 0.03
