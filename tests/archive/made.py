"""Small containers made on the spot."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable

PDF = b"%PDF-1.7\n% not a real one, but it says so\n"
TAR_MODES = {"tar": "w", "tar.gz": "w:gz", "tar.bz2": "w:bz2", "tar.xz": "w:xz"}


def zipped(entries: Iterable[tuple[str, bytes]], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data, packing)
    return out.getvalue()


def tarred(entries: Iterable[tuple[str, bytes]], kind: str = "tar", form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=TAR_MODES[kind], format=form) as archive:  # type: ignore[call-overload]
        for name, data in entries:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def http(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/pdf", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(body: bytes, size: int = 7) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def record(kind: str, uri: str, block: bytes, content: str = "application/http; msgtype=response") -> bytes:
    head = ["WARC/1.0", f"WARC-Type: {kind}", "WARC-Record-ID: <urn:uuid:12345678-1234-1234-1234-123456789012>"]
    head += ["WARC-Date: 2026-01-01T00:00:00Z"] + ([f"WARC-Target-URI: {uri}"] if uri else [])
    head += [f"Content-Type: {content}", f"Content-Length: {len(block)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def gzipped(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


def locked_zip(name: str, data: bytes, password: bytes) -> bytes:
    """One stored entry under PKWARE's traditional encryption (APPNOTE 6.1)."""
    keys = [0x12345678, 0x23456789, 0x34567890]

    def update(byte: int) -> None:
        keys[0] = _crc(keys[0], byte)
        keys[1] = ((keys[1] + (keys[0] & 255)) * 134775813 + 1) & 0xFFFFFFFF
        keys[2] = _crc(keys[2], keys[1] >> 24)

    for byte in password:
        update(byte)
    crc, locked = zlib.crc32(data), bytearray()
    for byte in bytes(11) + bytes([crc >> 24]) + data:
        word = keys[2] | 2
        locked.append(byte ^ ((word * (word ^ 1) >> 8) & 255))
        update(byte)
    fields = struct.pack("<5H3L2H", 20, 1, 0, 0, 33, crc, len(locked), len(data), len(name), 0)
    local = b"PK\x03\x04" + fields + name.encode() + locked
    central = b"PK\x01\x02" + struct.pack("<H", 20) + fields + struct.pack("<3H2L", 0, 0, 0, 0, 0) + name.encode()
    return local + central + b"PK\x05\x06" + struct.pack("<4H2LH", 0, 0, 1, 1, len(central), len(local), 0)


def _crc(key: int, byte: int) -> int:
    return zlib.crc32(bytes([byte]), key ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
