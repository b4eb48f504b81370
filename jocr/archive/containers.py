"""Containers of documents: zip, tar (plain, gzip, bzip2, xz) and WARC, told apart by their bytes, listed and unpacked.

Names inside a container are data: they are kept exactly as stored and never used as paths. Members are listed in one
pass with memory that does not grow with their bytes; damage costs what lies behind it, and one row says so.
"""

from __future__ import annotations

import bz2
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from jocr.archive import tars, warcs, zips
from jocr.archive.members import LIMIT_BYTES, Item, Member, PasswordOf, SkippedMember, of_container
from jocr.errors import DocumentError
from jocr.pages.sniff import SNIFF_BYTES

__all__ = [
    "Item",
    "Member",
    "PasswordOf",
    "SkippedMember",
    "extract",
    "extract_run",
    "kind_of",
    "members",
    "sniff_container",
]

_PACKED = ((b"\x1f\x8b", "gz"), (b"BZh", "bz2"), (b"\xfd7zXZ\x00", "xz"))
_OFFICE = (b"[Content_Types].xml", b"mimetype", b"_rels/", b"docProps/", b"word/", b"xl/", b"ppt/", b"META-INF/")


def sniff_container(head: bytes) -> str | None:
    """The kind of container that starts with ``head`` (``SNIFF_BYTES`` of it), or None.

    Returns:
        zip, tar, tar.gz, tar.bz2, tar.xz, warc, warc.gz. Office documents and e-books, which are zips too, are None as
        far as their first entry shows it, and else turn out to be none in ``members``; so does a bzip2 or xz file whose
        head is too short to be unpacked.
    """
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08PK\x03\x04")):
        return None if head[30:].startswith(_OFFICE) else "zip"
    if head.startswith(b"WARC/"):
        return "warc"
    for magic, packing in _PACKED:
        if head.startswith(magic):
            return _packed(head, packing)
    return "tar" if _is_tar(head) else None


def members(path: str | Path, *, limit_bytes: int = LIMIT_BYTES, password: PasswordOf | None = None) -> Iterator[Item]:
    """What a container holds, in its order.

    Args:
        path: a local file.
        limit_bytes: a member that unpacks to more is ``too_large``.
        password: gives the password of an encrypted zip member by its name.

    Yields:
        ``Member`` for documents (with a ``reason`` where one cannot be had), ``SkippedMember`` for all else. Damage
        ends the listing with one ``Member`` whose ``id`` is empty and whose reason is ``corrupt`` or ``too_large``.
    """
    found = False
    try:
        for item in _list(path, limit_bytes, password or _no_password):
            found = True
            yield item
        if not found:
            yield SkippedMember("", -1, "no_pages", "the container is empty")
    except DocumentError as error:
        if error.reason == "not_a_document":
            yield SkippedMember("", -1, error.reason, error.detail)
        else:
            yield of_container(error.reason, error.detail)
    except OSError as error:
        yield of_container("unreadable_file", f"{error.strerror or error}")


def extract_run(
    path: str | Path,
    wanted: Sequence[Member],
    target: Callable[[Member], Path],
    *,
    limit_bytes: int = LIMIT_BYTES,
    password: PasswordOf | None = None,
    unpacked: Path | None = None,
) -> Iterator[tuple[Member, DocumentError | None]]:
    """Unpack some members with one pass over the container.

    Args:
        path: the container.
        wanted: members as ``members`` listed them, in any order.
        target: where a member is to be written; its own name plays no part in that.
        limit_bytes, password: as for ``members``.
        unpacked: the plain tar inside a compressed one, where it lies on disk already: then nothing is skipped over.

    Yields:
        Each member, in the container's order, with why it could not be unpacked, or None.
    """
    kind = kind_of(path)
    run = sorted(wanted, key=lambda member: member.ordinal)
    pending = [member for member in run if member.reason is None]
    if kind == "zip":
        results = zips.extract(path, pending, target, limit_bytes, password or _no_password)
    elif kind.startswith("warc"):
        results = warcs.extract(path, pending, target, limit_bytes)
    else:
        results = tars.extract(unpacked or path, "tar" if unpacked else kind, pending, target, limit_bytes)
    for member in run:
        if member.reason is not None:
            yield member, DocumentError(member.reason, member.detail)
    for member, error in results:
        if error is not None:
            target(member).unlink(missing_ok=True)
        yield member, error


def extract(
    path: str | Path,
    member: Member,
    target: Path,
    *,
    limit_bytes: int = LIMIT_BYTES,
    password: PasswordOf | None = None,
) -> None:
    """Unpack one member to ``target``.

    Raises:
        DocumentError: corrupt, too_large, encrypted, wrong_password, unreadable_file; nothing is left at ``target``.
    """
    for _, error in extract_run(path, [member], lambda _: target, limit_bytes=limit_bytes, password=password):
        if error is not None:
            raise error


def _list(path: str | Path, limit: int, password: PasswordOf) -> Iterator[Item]:
    kind = kind_of(path)
    if kind == "zip":
        return zips.list_members(path, limit, password)
    if kind.startswith("warc"):
        return warcs.list_members(path, limit)
    return tars.list_members(path, kind, limit)


def kind_of(path: str | Path) -> str:
    """The kind of a container, as ``sniff_container`` tells it; raises DocumentError where it is none."""
    with open(path, "rb") as file:
        head = file.read(SNIFF_BYTES)
    kind = sniff_container(head)
    if kind is None and head.startswith(b"PK"):
        kind = "zip"
    if kind is None:
        raise DocumentError("not_a_document", f"its first bytes are {head[:8]!r}, of no container")
    return kind


def _packed(head: bytes, packing: str) -> str | None:
    """A compressed container by what its head unpacks to; a head too short for its packing may be a tar."""
    start = _unpack(head, packing)
    if start.startswith(b"WARC/"):
        return "warc.gz" if packing == "gz" else None
    if len(start) >= 512 or (start and packing == "gz" and len(head) < SNIFF_BYTES):
        return f"tar.{packing}" if _is_tar(start) else None
    return None if packing == "gz" else f"tar.{packing}"


def _unpack(head: bytes, packing: str) -> bytes:
    try:
        if packing == "gz":
            return zlib.decompressobj(31).decompress(head, 4096)
        if packing == "bz2":
            return bz2.BZ2Decompressor().decompress(head, 4096)
        return lzma.LZMADecompressor().decompress(head, 4096)
    except (zlib.error, OSError, lzma.LZMAError, EOFError):
        return b""


def _is_tar(head: bytes) -> bool:
    """A header whose checksum is right, or the two empty blocks of an empty tar."""
    if len(head) < 512:
        return False
    if not any(head):
        return len(head) >= 1024
    try:
        tarfile.TarInfo.frombuf(head[:512], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _no_password(_: str) -> str | None:
    return None
