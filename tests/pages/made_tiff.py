"""TIFF files written tag by tag, for layouts that Pillow does not write."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def tiff(
    size: tuple[int, int],
    strips: Sequence[bytes],
    *,
    bits: Sequence[int] = (8,),
    photometric: int = 1,
    more: dict[int, Sequence[int]] | None = None,
    order: str = "<",
) -> bytes:
    """One frame. ``more`` adds tags or replaces them; where it holds 324, the strips are tiles."""
    tags: dict[int, Sequence[int]] = {
        256: [size[0]], 257: [size[1]], 258: list(bits), 259: [1], 262: [photometric], 277: [len(bits)],
    }  # fmt: skip
    places, counts = (324, 325) if more and 322 in more else (273, 279)
    if places == 273:
        tags[278] = [-(-size[1] * (len(bits) if more and more.get(284) == [2] else 1) // len(strips))]
    tags |= {counts: [len(strip) for strip in strips], **(more or {})}
    tags[places] = [0] * len(strips)
    count = len(tags)
    start = 8 + 2 + 12 * count + 4
    outside = {tag: values for tag, values in tags.items() if 4 * len(values) > 4}
    data_at = start + sum(4 * len(values) for values in outside.values())
    offsets, at = [], data_at
    for strip in strips:
        offsets.append(at)
        at += len(strip)
    tags[places] = offsets
    directory, behind = b"", b""
    for tag, values in sorted(tags.items()):
        body = struct.pack(f"{order}{len(values)}L", *values)
        if len(body) > 4:
            where = struct.pack(f"{order}L", start + len(behind))
            behind += body
        else:
            where = body
        directory += struct.pack(f"{order}HHL", tag, 4, len(values)) + where
    mark = b"II*\0" if order == "<" else b"MM\0*"
    head = mark + struct.pack(f"{order}L", 8) + struct.pack(f"{order}H", count)
    return head + directory + bytes(4) + behind + b"".join(strips)
