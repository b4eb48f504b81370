"""Tar files, plain or compressed as a whole: read forward only, so that a compressed one is unpacked once per pass."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jocr.archive.members import FLOOR, RATIO, Entry, Item, Member, Names, SkippedMember, copy_out, is_bomb
from jocr.errors import DocumentError
from jocr.pages.sniff import SNIFF_BYTES

_PIECE = 1 << 20
_LARGEST_HEADER = 16 << 20  # a name or a pax header that declares more is a bomb
_BROKEN = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError, ValueError)
_OPEN: dict[str, Callable[..., Any]] = {
    "tar.gz": lambda raw: gzip.GzipFile(fileobj=raw, mode="rb"), "tar.bz2": bz2.BZ2File, "tar.xz": lzma.LZMAFile,
}  # fmt: skip


class Forward:
    """A tar's bytes as a file that only goes forward. ``last`` is what was read last."""

    def __init__(self, path: str | Path, kind: str) -> None:
        self._raw = open(path, "rb")  # noqa: SIM115  # closed by close()
        self._file = _OPEN[kind](self._raw) if kind in _OPEN else self._raw
        self._at = 0
        self.last = b""

    def __enter__(self) -> Forward:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not self._raw:
            self._file.close()
        self._raw.close()

    def tell(self) -> int:
        return self._at

    def read(self, count: int) -> bytes:
        if not 0 <= count <= _LARGEST_HEADER:
            raise tarfile.ReadError(f"a header declares {count:,} bytes")
        self.last = self._file.read(count)
        self._at += len(self.last)
        if self._at > FLOOR and self._file is not self._raw and self._at > RATIO * self._raw.tell():
            raise DocumentError("too_large", f"it unpacks to more than {RATIO} times its {self._raw.tell():,} bytes")
        return self.last

    def seek(self, position: int) -> None:
        if position < self._at:
            raise tarfile.ReadError("a header points backwards")
        if self._file is self._raw:
            self._at = self._raw.seek(position)
        while self._at < position and self.read(min(_PIECE, position - self._at)):
            pass

    def verify(self) -> None:
        """Read to the end for the sake of gzip's checksum, which stands there; the other packings check every block."""
        try:
            while isinstance(self._file, gzip.GzipFile) and self.read(_PIECE):
                pass
        except gzip.BadGzipFile as error:
            if "Not a gzipped file" not in str(error):  # else something stands behind the end that is no matter
                raise DocumentError("corrupt", f"some member is damaged, none can say which ({error})") from None
        except (EOFError, zlib.error):
            pass  # cut off behind the tar's own end

    def holds(self, stop: int) -> bool:
        """Whether there are bytes up to ``stop``, which the position moves to."""
        if self._file is self._raw:
            return os.fstat(self._raw.fileno()).st_size >= stop
        self.seek(stop)
        return self._at >= stop


def list_members(path: str | Path, kind: str, limit: int) -> Iterator[Item]:
    """Entries in their order; raises DocumentError where the tar is damaged, behind all that lies before it."""
    names = Names()
    with Forward(path, kind) as stream:
        name = ""
        try:
            tar = tarfile.open(fileobj=stream, mode="r:", encoding="utf-8", errors="surrogateescape")  # type: ignore[call-overload]  # noqa: SIM115
            ordinal = 0
            while (info := tar.next()) is not None:
                tar.members.clear()  # tarfile keeps them all
                entry = Entry(info.name, ordinal, info.size, info.offset_data)
                name = entry.name
                yield _judge(stream, info, entry, names, limit)
                ordinal += 1
        except tarfile.ReadError as error:
            if not name and kind in ("tar.bz2", "tar.xz"):  # those are not known by their first bytes alone
                raise DocumentError("not_a_document", f"what it unpacks to is no tar ({error})") from None
            if str(error) != "empty file":
                raise DocumentError("corrupt", _damage(error, name)) from None
        except _BROKEN as error:
            raise DocumentError("corrupt", _damage(error, name)) from None
        yield from _check_end(stream.last, name)
        stream.verify()


def extract(
    path: str | Path, kind: str, wanted: Sequence[Member], target: Callable[[Member], Path], limit: int
) -> Iterator[tuple[Member, DocumentError | None]]:
    """Unpack members in the order of their offsets."""
    with Forward(path, kind) as stream:
        damage: DocumentError | None = None
        for member in sorted(wanted, key=lambda member: member.offset):
            if damage is None:
                try:
                    stream.seek(member.offset)
                    _copy(stream, member, target(member), limit)
                except DocumentError as error:
                    yield member, error
                    continue
                except _BROKEN as error:  # what lies behind is out of reach too
                    damage = DocumentError("corrupt", _damage(error, member.name))
            yield member, damage


def unpack(path: str | Path, kind: str, target: Path, size: int) -> None:
    """Write the first ``size`` bytes of the tar inside a compressed one; damage ends it early, without an error."""
    with Forward(path, kind) as stream:

        def read(count: int) -> bytes:
            try:
                return stream.read(min(count, size - stream.tell()))
            except _BROKEN:
                return b""

        copy_out(read, target, size)


def _copy(stream: Forward, member: Member, target: Path, limit: int) -> None:
    left = member.size

    def read(count: int) -> bytes:
        nonlocal left
        piece = stream.read(min(count, left))
        if left and not piece:
            raise EOFError(f"its last {left:,} bytes are missing")
        left -= len(piece)
        return piece

    copy_out(read, target, limit)


def _judge(stream: Forward, info: tarfile.TarInfo, entry: Entry, names: Names, limit: int) -> Item:
    if info.isdir():
        return entry.skipped("not_a_document", "it is a folder")
    if info.issym() or info.islnk():
        return entry.skipped("not_a_document", f"it is a link to {info.linkname!r}")
    if not info.isreg() or info.issparse():
        return entry.skipped("not_a_document", "it is no regular file")
    if metadata := entry.metadata():
        return metadata
    if bomb := is_bomb(info.size, info.size, limit):
        return entry.failed(names, "too_large", bomb)
    stream.seek(info.offset_data)
    head = stream.read(min(info.size, SNIFF_BYTES))
    if not stream.holds(info.offset_data + info.size):
        raise EOFError("it is cut off")
    return entry.judged(names, head)


def _check_end(last: bytes, name: str) -> Iterator[SkippedMember]:
    """``tarfile`` takes any unreadable header for the end: only a block of zeros is one."""
    if len(last) == 512 and not any(last):
        return
    if last:
        raise DocumentError("corrupt", _damage(ValueError("the next header is damaged"), name))
    if name:
        yield SkippedMember("", -1, "corrupt", f"the mark of its end is missing: it may be cut off behind {name!r}")


def _damage(error: Exception, name: str) -> str:
    where = f"at or behind {name!r}" if name else "at its beginning"
    return f"damaged {where} ({str(error) or type(error).__name__})"
