"""Connected components of a binary image, in numpy alone: runs of set pixels, joined where they touch between rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Components:
    """One entry per 8-connected component; all arrays (N,) int64, boxes half-open in pixels."""

    top: np.ndarray
    left: np.ndarray
    bottom: np.ndarray
    right: np.ndarray
    area: np.ndarray  # set pixels
    runs: np.ndarray  # horizontal runs: area / runs is the mean stroke width across

    @property
    def height(self) -> np.ndarray:
        return self.bottom - self.top

    @property
    def width(self) -> np.ndarray:
        return self.right - self.left

    def __len__(self) -> int:
        return len(self.area)

    def take(self, which: np.ndarray) -> Components:
        """The components chosen by a boolean or index array."""
        return Components(
            self.top[which], self.left[which], self.bottom[which], self.right[which], self.area[which], self.runs[which]
        )


def find_components(mask: np.ndarray) -> Components:
    """The 8-connected components of ``mask`` (H, W) bool."""
    row, start, end = runs_of(mask)
    label = _label(row, start, end, mask.shape)
    count = int(label.max()) + 1 if len(label) else 0
    top = np.full(count, mask.shape[0], np.int64)
    left = np.full(count, mask.shape[1], np.int64)
    bottom, right = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.minimum.at(top, label, row)
    np.minimum.at(left, label, start)
    np.maximum.at(bottom, label, row + 1)
    np.maximum.at(right, label, end)
    area = np.bincount(label, weights=end - start, minlength=count).astype(np.int64)
    return Components(top, left, bottom, right, area, np.bincount(label, minlength=count))


def runs_of(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Horizontal runs of ``mask`` (H, W) bool: (row, first column, column after the last), each (R,) int64."""
    height, width = mask.shape
    padded = np.zeros((height, width + 1), np.int8)
    padded[:, :width] = mask
    flat = padded.ravel()
    steps = np.diff(flat, prepend=np.int8(0))
    start, end = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    row = start // (width + 1)
    return row, start - row * (width + 1), end - row * (width + 1)


def _label(row: np.ndarray, start: np.ndarray, end: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Component number of each run: hook the larger root under the smaller, halve paths, until nothing moves."""
    upper, lower = _touching(row, start, end, shape[1] + 2)
    root = np.arange(len(row))
    while len(upper):
        a, b = root[upper], root[lower]
        apart = a != b
        if not apart.any():
            break
        upper, lower, a, b = upper[apart], lower[apart], a[apart], b[apart]
        np.minimum.at(root, np.maximum(a, b), np.minimum(a, b))
        while True:
            parent = root[root]
            if np.array_equal(parent, root):
                break
            root = parent
    return np.unique(root, return_inverse=True)[1] if len(root) else root


def _touching(row: np.ndarray, start: np.ndarray, end: np.ndarray, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (run, run in the next row) that share a side or a corner."""
    begins, ends = row * stride + start, row * stride + end  # both ascend: runs of a row do not touch
    below = stride
    first = np.searchsorted(ends, begins + below, side="left")  # end >= start: a corner is enough
    last = np.searchsorted(begins, ends + below, side="right")  # start <= end
    count = np.maximum(last - first, 0)
    upper = np.repeat(np.arange(len(row)), count)
    offset = np.arange(len(upper)) - np.repeat(np.cumsum(count) - count, count)
    return upper, np.repeat(first, count) + offset
