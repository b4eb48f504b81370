"""Content-defined groups of neighbouring pages: where a group ends depends on the pages' keys alone.

A group closes after a page whose key hashes below a threshold once it has a quarter of ``unit`` pages, or at ``unit``
pages (the chunking of the low-bandwidth file system, Muthitacharoen et al. 2001, with a key in place of a window's
fingerprint). A document that comes or goes therefore disturbs the groups beside it and no others.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
_SHARE = 4  # a quarter: the least size of a group, and the mean distance of two pages that may close one


def group_ends(keys: Keys, unit: int, *, last: bool = True) -> NDArray[np.int64]:
    """Where groups end in a run of pages that begins a group.

    Args:
        keys: (n,) int64, in listing order.
        unit: pages a group may hold at most.
        last: whether the run ends here, so that what is left makes a group; otherwise it is left open.

    Returns:
        (g,) ascending; group i is ``keys[ends[i - 1]:ends[i]]``.
    """
    least = max(1, unit // _SHARE)
    candidates = np.flatnonzero(_mixed(keys) < np.uint64(2**64 // least)) + 1 if least > 1 else np.arange(len(keys)) + 1
    ends: list[int] = []
    start, count = 0, len(keys)
    while start < count:
        at = int(np.searchsorted(candidates, start + least))
        end = min(int(candidates[at]) if at < len(candidates) else count + unit, start + unit)
        if end > count:
            break
        ends.append(end)
        start = end
    if last and start < count:
        ends.append(count)
    return np.array(ends, np.int64)


def unit_name(keys: Keys) -> str:
    """Name of a unit, 24 hex digits, from the keys of its pages in order."""
    return hashlib.sha256(np.ascontiguousarray(keys, "<i8").tobytes()).hexdigest()[:24]


def _mixed(keys: Keys) -> NDArray[np.uint64]:
    """splitmix64's finaliser: keys that differ little in their high bits still spread (Steele et al. 2014)."""
    x = keys.astype(np.int64).view(np.uint64).copy()
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x
