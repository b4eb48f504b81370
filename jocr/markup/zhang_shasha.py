"""Zhang-Shasha tree edit distance (SIAM J. Comput. 18(6), 1989) with unit insert/delete, compiled by numba.

Compiled code is cached on disk: beside this file where that is writable, in the user's cache folder otherwise, and in
the temporary folder when neither is.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from jocr.errors import ConfigError, UnscoredError

STEPS_A_CALL = 2e7  # table entries between two looks at the clock: some 50 ms

_lock = threading.Lock()
_compiled: list[Callable[..., None]] = []


def _keyroot_rows(
    keyroots_a, keyroots_b, left_a, left_b, label_a, label_b, text_a, text_b, twin_a, twin_b, costs, tree, forest
):
    """All tree distances of the subtrees rooted at ``keyroots_a`` against every keyroot of B.

    ``tree`` is float64 (n, m), filled in keyroot order; ``forest`` is float64 scratch of shape (n + 1, m + 1).
    ``twin_a[i]`` is the root of an earlier subtree equal to that at ``i`` (its distances are copied), or -1.
    """
    for i in keyroots_a:
        li = left_a[i]
        if twin_a[i] >= 0:
            back = i - twin_a[i]
            for x in range(li, i + 1):
                for y in range(left_b.shape[0]):
                    tree[x, y] = tree[x - back, y]
            continue
        for j in keyroots_b:
            lj = left_b[j]
            if li == i and lj == j:  # a leaf against a leaf: most pairs of a table
                tree[i, j] = costs[text_a[i], text_b[j]] if label_a[i] == label_b[j] else 1.0
                continue
            if twin_b[j] >= 0:
                back = j - twin_b[j]
                for x in range(li, i + 1):
                    for y in range(lj, j + 1):
                        tree[x, y] = tree[x, y - back]
                continue
            forest[0, 0] = 0.0
            for x in range(li, i + 1):
                forest[x - li + 1, 0] = forest[x - li, 0] + 1.0
            for y in range(lj, j + 1):
                forest[0, y - lj + 1] = forest[0, y - lj] + 1.0
            for x in range(li, i + 1):
                fx = x - li + 1
                whole_x = left_a[x] == li
                back_x = left_a[x] - li
                for y in range(lj, j + 1):
                    fy = y - lj + 1
                    best = min(forest[fx - 1, fy], forest[fx, fy - 1]) + 1.0
                    if whole_x and left_b[y] == lj:
                        rename = costs[text_a[x], text_b[y]] if label_a[x] == label_b[y] else 1.0
                        best = min(best, forest[fx - 1, fy - 1] + rename)
                        tree[x, y] = best
                    else:
                        best = min(best, forest[back_x, left_b[y] - lj] + tree[x, y])
                    forest[fx, fy] = best


def kernel() -> Callable[..., None]:
    """The compiled inner function; the first call compiles it or loads it from the cache.

    Raises:
        ConfigError: numba is not installed.
    """
    with _lock:
        if not _compiled:
            _compiled.append(_compile())
        return _compiled[0]


def _compile() -> Callable[..., None]:
    try:
        import numba
    except ImportError as error:
        raise ConfigError("TEDS needs numba: pip install 'jocr[eval]'") from error
    ints, floats = "int32[::1]", "float64[:,::1]"
    signature = f"void({','.join([ints] * 10)},{','.join([floats] * 3)})"

    def build() -> Any:
        return numba.njit(signature, cache=True, nogil=True, fastmath=False)(_keyroot_rows)

    try:
        return build()
    except RuntimeError as error:  # numba: "cannot cache function ...: no locator available"
        if "locator" not in str(error):
            raise
        numba.config.CACHE_DIR = os.path.join(tempfile.gettempdir(), f"jocr-numba-{os.getuid()}")
        return build()


def _keyroots(left: np.ndarray) -> np.ndarray:
    """Post-order indices that are the highest node of their leftmost leaf, ascending."""
    last: dict[int, int] = {}
    for index, leaf in enumerate(left.tolist()):
        last[leaf] = index
    return np.array(sorted(last.values()), np.int32)


def _twins(keyroots: np.ndarray, left: np.ndarray, label: np.ndarray, text: np.ndarray) -> np.ndarray:
    """int32 (n,): for a keyroot whose subtree occurred before, that subtree's root; -1 for all other nodes."""
    first: dict[object, int] = {}
    twins = np.full(len(left), -1, np.int32)
    relative = left - np.arange(len(left), dtype=left.dtype)  # alike in equal subtrees, wherever they stand
    lefts, labels, texts = left.tolist(), label.tolist(), text.tolist()
    for i in keyroots.tolist():
        low = lefts[i]
        key: object = (labels[i], texts[i])
        if low < i:
            key = b"".join(part[low : i + 1].tobytes() for part in (relative, label, text))
        twin = first.setdefault(key, i)
        if twin != i:
            twins[i] = twin
    return twins


def distance(
    left_a: np.ndarray,
    left_b: np.ndarray,
    label_a: np.ndarray,
    label_b: np.ndarray,
    text_a: np.ndarray,
    text_b: np.ndarray,
    costs: np.ndarray,
    deadline: float,
) -> float:
    """Edit distance of two ordered trees given in post-order.

    Args:
        left_a, left_b: int32 (n,), (m,): each node's leftmost leaf.
        label_a, label_b: int32: nodes with different labels cost 1 to rename.
        text_a, text_b: int32: indices into ``costs`` for nodes with equal labels.
        costs: float64 (distinct texts of A, distinct texts of B), each in [0, 1].
        deadline: ``time.monotonic()`` value to stop at.

    Raises:
        UnscoredError: the deadline passed.
    """
    rows = kernel()
    n, m = len(left_a), len(left_b)
    tree, forest = np.zeros((n, m)), np.empty((n + 1, m + 1))
    keyroots_a, keyroots_b = _keyroots(left_a), _keyroots(left_b)
    twin_a = _twins(keyroots_a, left_a, label_a, text_a)
    twin_b = _twins(keyroots_b, left_b, label_b, text_b)
    work = np.cumsum(keyroots_a - left_a[keyroots_a] + 1) * float((keyroots_b - left_b[keyroots_b] + 1).sum())
    cuts = np.searchsorted(work, np.arange(STEPS_A_CALL, work[-1], STEPS_A_CALL))
    for part in np.split(keyroots_a, np.unique(cuts)):
        if time.monotonic() > deadline:
            raise UnscoredError("TEDS passed its time limit")
        rows(part, keyroots_b, left_a, left_b, label_a, label_b, text_a, text_b, twin_a, twin_b, costs, tree, forest)
    return float(tree[n - 1, m - 1])
