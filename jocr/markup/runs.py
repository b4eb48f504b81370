"""Maximal periodic runs in a sequence of integers, for every period up to a bound, in time linear in the sequence.

A run of period ``p`` is a stretch where each item equals the one ``p`` before it. Instead of comparing the sequence
with itself at every shift in full, windows are hashed once and sampled: the longer the period, the longer the run must
be and the sparser the samples may lie, so all shifts together look at about ``n ln(max_period)`` samples. Hits are
verified item by item, so the answer is exact.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

_SAMPLES = 3  # consecutive samples that any run long enough must hit
_PRIME = np.uint32(0x9E3779B1)
_MIX = np.uint32(0x85EBCA6B)
SMALL = 65_536  # items up to which a sort is cheaper than looking at every shift


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
    if n <= SMALL and not _repeats_any(codes, min(needed)):
        return []
    width = max(1, min(8, min(needed) // 4))
    hashes = (_window_hashes(codes, width) >> np.uint32(24)).astype(np.uint8)
    found: list[tuple[int, int, int]] = []  # (start, end, period), sorted by start
    known = np.empty((0, 3), np.int64)  # the same
    for p, need in enumerate(needed, start=1):
        stride = max(1, (need - width + 1) // _SAMPLES)
        if len(hashes) <= p:
            break
        equal = hashes[p::stride] == hashes[:-p:stride]
        if len(equal) >= _SAMPLES and equal.any():
            hits = np.flatnonzero(equal[:-2] & equal[1:-1] & equal[2:])
            if len(hits):
                hits = _outside(_probe(hashes, p, hits * stride, 2 * stride), p, known)
                new = _verify(codes, p, need, hits, found)
                if new:
                    known = np.array(found)
                for start, end, _ in new:
                    _blank(hashes, start + p + max_period, end - p - max_period - width)
    return [(p, start, end) for start, end, p in found]


def _blank(hashes: np.ndarray, start: int, end: int) -> None:
    """Replace the inside of a long run by noise, so that multiples of its period are not found there over and over.

    By Fine and Wilf's theorem a run of another period reaches less than the sum of both periods into this one.
    """
    if end > start:
        hashes[start:end] = np.random.default_rng(start).integers(0, 256, end - start, np.uint8)


def _probe(hashes: np.ndarray, p: int, hits: np.ndarray, length: int) -> np.ndarray:
    """Positions (``hits + p``) whose windows also agree at points between the samples: dotted leaders on line after
    line agree at the samples alone."""
    for offset in {length * k // 8 for k in range(1, 8)}:
        if not len(hits):
            break
        hits = hits[hashes[hits + p + offset] == hashes[hits + offset]]
    return hits + p


def _outside(positions: np.ndarray, p: int, known: np.ndarray) -> np.ndarray:
    """The positions that no known run (start, end, period) of a period dividing ``p`` explains."""
    if not len(known) or not len(positions):
        return positions
    last = np.searchsorted(known[:, 0], positions - p, side="right") - 1
    inside = (last >= 0) & (known[last, 1] > positions) & (p % known[last, 2] == 0)
    return positions[~inside]


def _repeats_any(codes: np.ndarray, width: int) -> bool:
    """Whether any window of ``width`` items occurs twice: without that there is no run at all."""
    hashes = np.sort(_window_hashes(codes, width))
    return bool((hashes[1:] == hashes[:-1]).any())


def _window_hashes(codes: np.ndarray, width: int) -> np.ndarray:
    """A uint32 hash of every window of ``width`` items, built by doubling."""
    base = codes.astype(np.uint32) * _PRIME
    base ^= base >> np.uint32(15)
    out, have = base, 1
    while have < width:
        step = min(have, width - have)
        size = len(base) - have - step + 1
        out = out[:size] * _MIX + out[step : step + size] if step == have else _grow(out, base, have, step, size)
        have += step
    out = out * _PRIME
    return out


def _grow(out: np.ndarray, base: np.ndarray, have: int, step: int, size: int) -> np.ndarray:
    for k in range(step):
        out = out[: len(base) - have - k] * _MIX + base[have + k :]
    return out[:size]


def _verify(
    codes: np.ndarray, p: int, need: int, positions: np.ndarray, found: list[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    """Extend each sampled position to its maximal run of period ``p``; add those long enough and primitive."""
    done = -1  # end of the stretch already examined for this period
    new = []
    for at in positions.tolist():
        if at < done:
            continue
        first, last = _extend(codes, at, p)
        done = last
        run = (first - p, last, p)
        if last - first >= need and not _inside(found, run):
            found.insert(bisect_right(found, run), run)
            new.append(run)
    return new


def _inside(found: list[tuple[int, int, int]], run: tuple[int, int, int]) -> bool:
    """Whether the run lies in a known one whose period divides its own."""
    start, end, p = run
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
