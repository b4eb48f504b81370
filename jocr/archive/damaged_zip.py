"""A zip without its directory: the entries are found again by their local headers (APPNOTE 4.3.7), up to the damage."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_HEADER = struct.Struct("<4s5H3L2H")
_ENTRY, _DESCRIPTOR = b"PK\x03\x04", b"PK\x07\x08"
_BEHIND = (b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06")  # where the directory begins
_PIECE = 1 << 20
_EMPTY = b"PK\x05\x06" + bytes(18)


class Lost(Exception):
    """Not even one whole entry is left."""


@contextlib.contextmanager
def recover(path: str | Path) -> Iterator[tuple[zipfile.ZipFile, str]]:
    """The archive with the entries that are whole, and where it broke off.

    Raises:
        Lost: there is none.
    """
    with open(path, "rb") as file, zipfile.ZipFile(io.BytesIO(_EMPTY)) as archive:
        found = []
        with contextlib.suppress(struct.error, zlib.error, EOFError, UnicodeError):
            for info in _entries(file):
                found.append(info)
        if not found:
            raise Lost
        archive.fp = file  # the entries' offsets are those of the damaged file
        archive.filelist = found
        archive.NameToInfo = {info.filename: info for info in found}
        yield archive, f"damaged behind {found[-1].filename!r}"


def _entries(file: BinaryIO) -> Iterator[zipfile.ZipInfo]:
    end = file.seek(0, os.SEEK_END)
    at = 0
    while True:
        file.seek(at)
        head = file.read(_HEADER.size)
        if head[:4] in _BEHIND or head[:4] != _ENTRY:
            return
        _, _, flags, method, time, _, crc, packed, unpacked, name_size, extra_size = _HEADER.unpack(head)
        raw, extra = file.read(name_size), file.read(extra_size)
        start = at + _HEADER.size + name_size + extra_size
        packed, unpacked = _long_sizes(extra, packed, unpacked)
        at_end = start + packed
        if flags & 8 and not packed:
            if method != zipfile.ZIP_DEFLATED or flags & 1:
                return  # nothing says where it ends
            crc, packed, unpacked = _measure(file, start)
            at_end = _behind_descriptor(file, start + packed)
        elif flags & 8:
            at_end = _behind_descriptor(file, at_end)
        if start + packed > end:
            return
        info = zipfile.ZipInfo(raw.decode("utf-8" if flags & 0x800 else "cp437"))
        info.flag_bits, info.compress_type, info.header_offset = flags, method, at
        info.CRC, info.compress_size, info.file_size = crc, packed, unpacked
        info._raw_time = time  # type: ignore[attr-defined]  # what zipfile checks a password by
        yield info
        at = at_end


def _long_sizes(extra: bytes, packed: int, unpacked: int) -> tuple[int, int]:
    """Sizes beyond 4 GiB stand in the extra field 1 (APPNOTE 4.5.3)."""
    at = 0
    while at + 4 <= len(extra):
        tag, size = struct.unpack_from("<HH", extra, at)
        if tag == 1 and size >= 16 and 0xFFFFFFFF in (packed, unpacked):
            unpacked, packed = struct.unpack_from("<QQ", extra, at + 4)
        at += 4 + size
    return packed, unpacked


def _measure(file: BinaryIO, start: int) -> tuple[int, int, int]:
    """(checksum, packed, unpacked) of deflated data whose header does not say; raises EOFError where it is cut off."""
    file.seek(start)
    inflate, crc, packed, unpacked = zlib.decompressobj(-15), 0, 0, 0
    piece = b""
    while not inflate.eof:
        if not piece:
            piece = file.read(_PIECE)
            if not piece:
                raise EOFError
            packed += len(piece)
        out = inflate.decompress(piece, _PIECE)
        crc, unpacked, piece = zlib.crc32(out, crc), unpacked + len(out), inflate.unconsumed_tail
    return crc, packed - len(inflate.unused_data), unpacked


def _behind_descriptor(file: BinaryIO, at: int) -> int:
    """Past the data descriptor: with or without its signature, with sizes of four or eight bytes."""
    file.seek(at)
    block = file.read(28)
    signed = 4 if block[:4] == _DESCRIPTOR else 0
    for size in (12, 20):
        if block[signed + size : signed + size + 2] == b"PK":
            return at + signed + size
    return at + signed + 12
