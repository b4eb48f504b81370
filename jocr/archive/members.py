"""What a container holds, entry by entry: the records, and the judgement on one entry that all kinds share.

A ``Member`` becomes a document. One that cannot be had (it is encrypted, too large, damaged) carries its ``reason`` and
is accounted for as a failed document; with an empty ``id`` it speaks for the container itself. ``SkippedMember`` is
what is no document at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jocr.errors import DocumentError
from jocr.pages.sniff import EXTENSIONS, sniff

LIMIT_BYTES = 4 << 30  # of one member, unpacked
RATIO = 500  # unpacked over packed bytes, above which a member ...
FLOOR = 256 << 20  # ... of at least so many bytes is a bomb: blank scans pack nearly as well, but they are small
_PIECE = 1 << 20

PasswordOf = Callable[[str], str | None]  # name of a member -> its password


@dataclass(frozen=True, slots=True)
class Member:
    """An entry that is a document, or claims to be one by its extension."""

    id: str  # unique in its container: the name, and "#2" for the second of that name
    name: str  # full inner path exactly as stored
    ordinal: int  # place among all entries of the container, from 0
    size: int  # bytes unpacked, as declared; -1 where the container does not say
    kind: str  # pdf, tiff ...; empty where the bytes are of no such type or could not be seen
    offset: int  # where the entry (tar: its data) begins in the container, unpacked if that is compressed as a whole
    reason: str | None = None  # a code of REASONS: this document cannot be had
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SkippedMember:
    """An entry that is no document; with an empty ``name``, the container itself."""

    name: str
    ordinal: int
    reason: str
    detail: str


Item = Member | SkippedMember


class Names:
    """Tells equal names apart: the second ``a.pdf`` of a container is ``a.pdf#2``, in the order they are stored."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def unique(self, name: str) -> str:
        wanted, count = name, 1
        while wanted in self._taken:
            count += 1
            wanted = f"{name}#{count}"
        self._taken.add(wanted)
        return wanted


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as its container describes it, before its bytes are looked at."""

    name: str
    ordinal: int
    size: int
    offset: int

    def skipped(self, reason: str, detail: str) -> SkippedMember:
        return SkippedMember(self.name, self.ordinal, reason, detail)

    def failed(self, names: Names, reason: str, detail: str) -> Item:
        """A document that cannot be had, if its extension says that it is one; else it is only left out."""
        if not _claimed(self.name):
            return self.skipped(reason, detail)
        return Member(names.unique(self.name), self.name, self.ordinal, self.size, "", self.offset, reason, detail)

    def judged(self, names: Names, head: bytes) -> Item:
        """What the entry is, by its first bytes and, where they say nothing, by its extension."""
        kind = sniff(head)
        if kind is None and not _claimed(self.name):
            return self.skipped(*_no_document(head))
        return Member(names.unique(self.name), self.name, self.ordinal, self.size, kind or "", self.offset)

    def metadata(self) -> SkippedMember | None:
        """Files that macOS adds on its own."""
        parts = self.name.replace("\\", "/").split("/")
        if "__MACOSX" in parts or parts[-1] == ".DS_Store" or parts[-1].startswith("._"):
            return self.skipped("not_a_document", "metadata of macOS")
        return None


def of_container(reason: str, detail: str) -> Member:
    """The failed row that speaks for a container."""
    return Member("", "", -1, 0, "", -1, reason, detail)


def is_bomb(unpacked: int, packed: int, limit: int) -> str:
    """Why an entry is not unpacked, or an empty text."""
    if unpacked > limit:
        return f"it declares {unpacked:,} bytes; the limit is {limit:,}"
    if unpacked > FLOOR and unpacked > RATIO * max(1, packed):
        return f"it declares {unpacked:,} bytes in {packed:,}"
    return ""


def copy_out(read: Callable[[int], bytes], target: Path, limit: int) -> None:
    """Write what ``read`` gives to ``target``; what ``read`` raises passes through.

    Raises:
        DocumentError: too_large past ``limit`` bytes; unreadable_file where this node has no room for it.
    """
    total = 0
    try:
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    except OSError as error:
        raise _no_room(error) from error
    try:
        while piece := read(_PIECE):
            total += len(piece)
            if total > limit:
                raise DocumentError("too_large", f"it unpacks to more than the limit of {limit:,} bytes")
            _write(handle, piece)
    finally:
        os.close(handle)


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(handle, view) :]
    except OSError as error:
        raise _no_room(error) from error


def _no_room(error: OSError) -> DocumentError:
    return DocumentError("unreadable_file", f"it cannot be unpacked on this node: {error.strerror or error}")


def _claimed(name: str) -> bool:
    return "." in name and name.rsplit(".", 1)[-1].lower() in EXTENSIONS


def _no_document(head: bytes) -> tuple[str, str]:
    from jocr.archive.containers import sniff_container

    if not head:
        return "empty_file", "it has no bytes"
    if kind := sniff_container(head):
        return "nested_container", f"a {kind} inside a container is not opened; unpack the outer one first"
    return "not_a_document", f"its first bytes are {head[:8]!r}"
