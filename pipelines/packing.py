"""Records as bytes and back. Page images, most of a record, are copied once each way, into memory asked for once.

``pickle.dumps`` grows its buffer as it goes: for 56 MB of images it took 22 ms and 14 thousand page faults, this 6 ms
and one thousand (one core, 128 images of 440 kB, an ad hoc script).
"""

from __future__ import annotations

import io
import pickle
import struct
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

LARGE = 1 << 16  # bytes from which a value is kept outside of the pickle
_COUNT = struct.Struct("=q")


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.large: list[bytes] = []

    def persistent_id(self, obj: Any) -> int | None:
        if type(obj) is bytes and len(obj) >= LARGE:
            self.large.append(obj)
            return len(self.large) - 1
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, small: memoryview, large: list[memoryview]) -> None:
        super().__init__(io.BytesIO(small))
        self._large = large

    def persistent_load(self, pid: int) -> bytes:
        return bytes(self._large[pid])


def pack(record: Any) -> np.ndarray:
    """The record, which must pickle, as (N,) uint8: how many parts, their lengths, the pickle, its large values."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(record)
    parts = [file.getbuffer(), *(memoryview(value) for value in pickler.large)]
    head = np.array([len(parts), *map(len, parts)], np.int64).tobytes()
    edges = list(accumulate(map(len, parts), initial=len(head)))
    out = np.empty(edges[-1], np.uint8)
    for part, (start, stop) in zip([memoryview(head), *parts], pairwise([0, *edges]), strict=True):
        out[start:stop] = np.frombuffer(part, np.uint8)
    return out


def unpack(data: memoryview) -> Any:
    """The record that ``pack`` made ``data`` of."""
    (count,) = _COUNT.unpack_from(data)
    lengths = struct.unpack_from(f"={count}q", data, _COUNT.size)
    edges = accumulate(lengths, initial=_COUNT.size * (1 + count))
    small, *large = [data[start:stop] for start, stop in pairwise(edges)]
    return _Unpickler(small, large).load()
