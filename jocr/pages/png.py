"""A quick PNG writer: grey or RGB, no row filter, deflate level 1 by ISA-L.

Measured on nine pages of 1280 pixels: 2.7 ms a page and 523 kB, where level 1 of zlib takes 12 ms for 469 kB and
Pillow, which also filters the rows, about twice as long as zlib. Where ISA-L has no wheel, zlib does it.
"""

from __future__ import annotations

import struct

import numpy as np

try:
    from isal.isal_zlib import compress, crc32
except ImportError:
    from zlib import compress, crc32


def encode_png(pixels: np.ndarray) -> bytes:
    """``pixels`` (H, W) or (H, W, 3) uint8 -> PNG bytes, 8-bit grey or RGB."""
    height, width = pixels.shape[:2]
    rows = np.empty((height, 1 + pixels[0].size), np.uint8)
    rows[:, 0] = 0  # not filtered
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if pixels.ndim == 2 else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", compress(rows.data, 1)), (b"IEND", b""))
    return b"".join([b"\x89PNG\r\n\x1a\n", *(part for name, body in chunks for part in _chunk(name, body))])


def _chunk(name: bytes, body: bytes) -> tuple[bytes, ...]:
    return struct.pack(">I", len(body)), name, body, struct.pack(">I", crc32(body, crc32(name)))
