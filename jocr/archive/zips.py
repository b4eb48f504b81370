"""Zip files: listed by their directory, or by their local headers where the directory is lost."""

from __future__ import annotations

import contextlib
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from jocr.archive.damaged_zip import Lost, recover
from jocr.archive.members import Entry, Item, Member, Names, PasswordOf, SkippedMember, copy_out, is_bomb
from jocr.errors import DocumentError
from jocr.pages.sniff import SNIFF_BYTES

_ENCRYPTED, _UTF8, _AES = 0x1, 0x800, 99
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, struct.error, OverflowError)


def list_members(path: str | Path, limit: int, password: PasswordOf) -> Iterator[Item]:
    """Entries in the order of the directory; raises DocumentError behind them where the file is damaged."""
    with _opened(path) as (archive, damage):
        if office := _office(archive):
            yield SkippedMember("", -1, "not_a_document", office)
            return
        names = Names()
        for ordinal, info in enumerate(archive.filelist):
            entry = Entry(_name(info), ordinal, info.file_size, info.header_offset)
            yield _judge(archive, info, entry, names, limit, password)
    if damage:
        raise DocumentError("corrupt", damage)


def extract(
    path: str | Path, wanted: Sequence[Member], target: Callable[[Member], Path], limit: int, password: PasswordOf
) -> Iterator[tuple[Member, DocumentError | None]]:
    """Unpack members, each checked against its checksum."""
    with _opened(path) as (archive, _):
        for member in wanted:
            try:
                if member.ordinal >= len(archive.filelist):
                    raise DocumentError("corrupt", "the container no longer holds it")
                info = archive.filelist[member.ordinal]
                with _reading(archive, info, password(member.name)) as file:
                    copy_out(file.read, target(member), limit)
            except DocumentError as error:
                yield member, error
            else:
                yield member, None


@contextlib.contextmanager
def _opened(path: str | Path) -> Iterator[tuple[zipfile.ZipFile, str]]:
    """The archive, and what is wrong with it."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive, ""
    except zipfile.BadZipFile as error:
        cause = error
    else:
        return
    try:
        with recover(path) as (archive, where):
            yield archive, f"{where} ({cause})"
    except Lost:
        raise DocumentError("corrupt", f"damaged at its beginning ({cause})") from None


def _judge(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, entry: Entry, names: Names, limit: int, password: PasswordOf
) -> Item:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if entry.name.endswith("/"):
        return entry.skipped("not_a_document", "it is a folder")
    if kind == stat.S_IFLNK:
        return entry.skipped("not_a_document", "it is a link")
    if kind not in (0, stat.S_IFREG):
        return entry.skipped("not_a_document", "it is no regular file")
    if metadata := entry.metadata():
        return metadata
    if bomb := is_bomb(info.file_size, info.compress_size, limit):
        return entry.failed(names, "too_large", bomb)
    try:
        with _reading(archive, info, password(entry.name)) as file:
            head = file.read(SNIFF_BYTES)
    except DocumentError as error:
        return entry.failed(names, error.reason, error.detail)
    return entry.judged(names, head)


@contextlib.contextmanager
def _reading(archive: zipfile.ZipFile, info: zipfile.ZipInfo, password: str | None) -> Iterator[zipfile.ZipExtFile]:
    """An entry's bytes; whatever goes wrong with them is a DocumentError."""
    locked = bool(info.flag_bits & _ENCRYPTED)
    if locked and not password:
        raise DocumentError("encrypted", "the member is encrypted and no password was given")
    if locked and info.compress_type == _AES:
        raise DocumentError("encrypted", "the member is encrypted with AES, which cannot be read; unpack it first")
    try:
        with _unlocked(archive, info, password.encode() if locked and password else None) as file:
            yield file
    except _BROKEN as error:
        if locked:  # one in 256 wrong passwords passes the check of the header
            raise DocumentError("wrong_password", f"the password gives no sound data ({error})") from None
        raise DocumentError("corrupt", f"damaged in its container ({error})") from None


def _unlocked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, password: bytes | None) -> zipfile.ZipExtFile:
    """An entry opened: only there ``zipfile`` says that it lacks the compression, or that the password is wrong."""
    try:
        return archive.open(info, pwd=password)  # type: ignore[return-value]
    except NotImplementedError as error:
        raise DocumentError("unreadable_file", f"{error}; unpack it first") from None
    except RuntimeError as error:
        if password is None:
            raise
        raise DocumentError("wrong_password", str(error)) from None


def _name(info: zipfile.ZipInfo) -> str:
    """As stored: UTF-8 where the flag or the bytes say so, else code page 437."""
    name = info.orig_filename
    if not info.flag_bits & _UTF8:
        with contextlib.suppress(UnicodeError):
            return name.encode("cp437").decode("utf-8")
    return name


def _office(archive: zipfile.ZipFile) -> str:
    """What kind of document in zip's clothes this is, or nothing."""
    names = archive.NameToInfo
    if "[Content_Types].xml" in names:
        return "an Office Open XML document"
    first = archive.filelist[0] if archive.filelist else None
    if first is not None and first.orig_filename == "mimetype" and first.file_size < 200:
        with contextlib.suppress(DocumentError), _reading(archive, first, None) as file:
            kind = file.read(200).decode("ascii", "replace").strip()
            return f"a document of type {kind}" if kind.startswith("application/") else ""
    return ""
