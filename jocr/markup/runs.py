"""Maximal periodic runs in a sequence of integers, for every period up to a bound, in time linear in the sequence.

A run of period ``p`` is a stretch where each item equals the one ``p`` before it. Instead of comparing the sequence with
itself at every shift in full, windows are hashed once and sampled: the longer the period, the longer the run must be and
the sparser the samples may lie, so all shifts together look at about ``n ln(max_period)`` samples. Hits are verified
item by item, so the answer is exact.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

_SAMPLES = 3  # consecutive samples that any run long enough must hit
_PRIME = np.uint64(0x9E3779B97F4A7C15)


def periodic_runs(codes: np.ndarray, *, max_period: int, min_count: int, min_length: int) -> list[tuple[int, int, int]]:
    """All maximal runs as (period, start, end), by primitive period, ordered by start.

    Args:
        codes: integers (n,).
        max_period: largest period looked for.
        min_count: a run holds at least this many whole periods (3 or more).
        min_length: and covers at least this many items.
    """
    n = len(codes)
    max_period = min(max_period, n // min_count)
    if max_period < 1 or n < min_length:
        return []
    needed = [max((min_count - 1) * p, min_length - p) for p in range(1, max_period + 1)]
    width = max(1, min(8, min(needed) // 4))
    hashes = _window_hashes(codes, width)
    if len(np.unique(hashes)) == len(hashes):
        return []
    found: list[tuple[int, int, int]] = []  # (start, end, period), sorted by start
    for p, need in enumerate(needed, start=1):
        stride = max(1, (need - width + 1) // _SAMPLES)
        if len(hashes) <= p:
            break
        equal = hashes[p::stride] == hashes[:-p:stride]
        if len(equal) >= _SAMPLES:
            hits = np.flatnonzero(equal[:-2] & equal[1:-1] & equal[2:])
            if len(hits):
                _verify(codes, p, need, p + hits * stride, found)
    return [(p, start, end) for start, end, p in found]


def _window_hashes(codes: np.ndarray, width: int) -> np.ndarray:
    values = codes.astype(np.uint64) + np.uint64(1)
    n = len(values) - width + 1
    out = values[:n].copy()
    for k in range(1, width):
        out *= _PRIME
        out += values[k : n + k]
    return out


def _verify(codes: np.ndarray, p: int, need: int, positions: np.ndarray, found: list[tuple[int, int, int]]) -> None:
    """Extend each sampled position to its maximal run of period ``p``; keep those long enough and primitive."""
    done = -1  # end of the stretch already examined for this period
    for at in positions.tolist():
        if at < done or _inside(found, at - p, at + 1, p):
            continue
        first, last = _extend(codes, at, p)
        done = last
        if last - first >= need and not _inside(found, first - p, last, p):
            run = (first - p, last, p)
            found.insert(bisect_right(found, run), run)


def _inside(found: list[tuple[int, int, int]], start: int, end: int, p: int) -> bool:
    """Whether [start, end) lies in a known run whose period divides ``p``."""
    i = bisect_right(found, (start, 1 << 62, 0))
    return any(end <= b and p % q == 0 for _, b, q in found[max(0, i - 4) : i])


def _extend(codes: np.ndarray, at: int, p: int) -> tuple[int, int]:
    """The maximal [first, last) around ``at`` with ``codes[i] == codes[i - p]`` throughout."""
    last, step = at, 64
    while last < len(codes):
        stop = min(last + step, len(codes))
        equal = codes[last:stop] == codes[last - p : stop - p]
        if not equal.all():
            last += int(equal.argmin())
            break
        last, step = stop, step * 2
    first, step = at, 64
    while first > p:
        stop = max(first - step, p)
        equal = codes[stop:first] == codes[stop - p : first - p]
        if not equal.all():
            first -= int(equal[::-1].argmin())
            break
        first, step = stop, step * 2
    return first, last
