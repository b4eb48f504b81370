"""Attention over a grid with decomposed relative positions: score(q, k) + by_row[q, row of k] + by_col[q, column of k].

At the published size a global block has 12 heads of 4096 x 4096 scores: the bias alone would be 0.4 GB in bf16. On a
CPU without gradients it is never held whole. In bf16 the two tables are folded into the product (queries carry their
row and column biases, keys a one-hot row and column), which fast bf16 GEMMs make 3 times cheaper than the fused
kernel; in fp32 large grids are taken head by head in strips of queries. With gradients the bias is folded as well.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from jocr.model.chunked import chunked_attention

STRIP = 512  # queries whose scores are held at once


def relative_positions(size: int, table: Tensor) -> Tensor:
    """Rows of ``table`` (2s-1, d) for every query/key pair of ``size`` positions: (size, size, d).

    A table stored for another size is resampled linearly.
    """
    length = 2 * size - 1
    if table.shape[0] != length:
        resized = F.interpolate(table.float().T[None], size=length, mode="linear")[0].T
        table = resized.to(table.dtype)
    index = torch.arange(size, device=table.device)
    return table[index[:, None] - index[None, :] + size - 1]


def attention(q: Tensor, k: Tensor, v: Tensor, by_row: Tensor, by_col: Tensor) -> Tensor:
    """q, k, v (B, heads, H*W, d); by_row (B, heads, H, W, H), by_col (B, heads, H, W, W) -> (B, heads, H*W, d)."""
    by_row, by_col = by_row.to(q.dtype), by_col.to(q.dtype)
    if q.device.type != "cpu":
        return biased(q, k, v, by_row, by_col)
    if torch.is_grad_enabled():
        return chunked_attention(*fold(q, k, by_row, by_col), v)
    if q.dtype == torch.bfloat16:
        return folded(q, k, v, by_row, by_col)
    return biased(q, k, v, by_row, by_col) if q.shape[2] <= STRIP else in_strips(q, k, v, by_row, by_col)


def biased(q: Tensor, k: Tensor, v: Tensor, by_row: Tensor, by_col: Tensor) -> Tensor:
    """The definition, with the whole bias as mask of the fused kernel."""
    bias = by_row[..., :, None] + by_col[..., None, :]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.reshape(*q.shape[:3], k.shape[2]))


def fold(q: Tensor, k: Tensor, by_row: Tensor, by_col: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys (B, heads, H*W, d + H + W) whose product is the score with its bias."""
    b, n, size, d = q.shape
    h, w = by_row.shape[2:4]
    queries = torch.cat([q * d**-0.5, by_row.flatten(2, 3), by_col.flatten(2, 3)], dim=-1)
    rows = torch.eye(h, dtype=k.dtype).repeat_interleave(w, dim=0)
    columns = torch.eye(w, dtype=k.dtype).repeat(h, 1)
    keys = torch.cat([k, torch.cat([rows, columns], dim=1).expand(b, n, size, h + w)], dim=-1)
    return queries, keys


def folded(q: Tensor, k: Tensor, v: Tensor, by_row: Tensor, by_col: Tensor) -> Tensor:
    """The bias as part of the product, strip by strip."""
    b, n, size, _ = q.shape
    queries, keys = fold(q, k, by_row, by_col)
    if size <= STRIP:
        return (queries @ keys.transpose(-1, -2)).softmax(dim=-1) @ v
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    for i in range(b * n):
        item, head = divmod(i, n)
        transposed = keys[item, head].T
        for start in range(0, size, STRIP):
            scores = queries[item, head, start : start + STRIP] @ transposed
            out[item, head, start : start + STRIP] = scores.softmax(dim=-1) @ v[item, head]
    return out


def in_strips(q: Tensor, k: Tensor, v: Tensor, by_row: Tensor, by_col: Tensor) -> Tensor:
    """Head by head, a few grid rows of queries at a time."""
    b, n, size, d = q.shape
    h, w = by_row.shape[2:4]
    step = max(1, STRIP // w)
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    for i in range(b * n):
        item, head = divmod(i, n)
        transposed = k[item, head].T * d**-0.5
        for row in range(0, h, step):
            bias = by_row[item, head, row : row + step, :, :, None] + by_col[item, head, row : row + step, :, None, :]
            part = slice(row * w, (row + step) * w)
            scores = bias.reshape(-1, size).addmm_(q[item, head, part], transposed)
            out[item, head, part] = scores.softmax(dim=-1) @ v[item, head]
    return out
