"""From what a user names (files, folders, globs, ``s3://`` prefixes) to the documents behind it."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jocr import storage
from jocr.errors import ConfigError, StorageError
from jocr.pages.sniff import EXTENSIONS, SNIFF_BYTES, sniff

__all__ = [
    "Skipped",
    "Source",
    "SourceFile",
    "common_root",
    "discover",
    "expand",
    "lost",
    "relative",
    "sniff",
    "special",
]


PACKED = (b"PK", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"WARC/")  # how containers begin, but for tar


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to parse. ``name`` is its path below the root of the sources given: unique, and the key of its outputs."""

    uri: str
    name: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is left out: ``reason`` is a code of ``jocr.records.REASONS``, ``detail`` a sentence."""

    uri: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Source:
    """One source as given, and the files behind it, found when they are asked for."""

    base: str  # names are relative to the common root of all bases
    files: Iterator[str]
    given: str


Lister = Callable[[str], Iterator[str]]


def discover(sources: Sequence[str]) -> Iterator[SourceFile | Skipped]:
    """Every document behind the sources, in the order given, sorted within each.

    A folder is walked recursively without its hidden entries; an existing path is taken literally before it is read as
    a glob. A file reached twice (also through links) appears once. What the bytes do not show to be a document is
    ``Skipped``, except a file whose extension claims to be one: that stays a source, and parsing it says what is wrong.
    So does a file that is given by its own name and cannot be read; a link to nowhere that a folder or pattern leads to
    is ``Skipped``.

    Args:
        sources: paths, folders, globs or ``s3://bucket/prefix``.

    Raises:
        ConfigError: a source matches nothing (raised by this call for paths, else when its turn comes).
    """
    if not sources:
        raise ConfigError("no source given; name at least one file, folder or pattern")
    return _discover([expand(source) for source in sources])


def _discover(sources: list[Source]) -> Iterator[SourceFile | Skipped]:
    root = common_root([source.base for source in sources])
    seen: set[str] = set()
    names: set[str] = set()
    for source in sources:
        found = False
        for uri in source.files:
            found = True
            identity = uri if storage.is_s3(uri) else os.path.realpath(uri)
            if identity not in seen:
                seen.add(identity)
                yield _judge(uri, root, names, named=uri == source.given)
        if not found:
            raise ConfigError(f"{source.given!r} holds no file; name a file, folder or pattern that does")


def _judge(uri: str, root: str, names: set[str], named: bool) -> SourceFile | Skipped:
    claimed = EXTENSIONS.get(uri.rsplit(".", 1)[-1].lower()) if "." in os.path.basename(uri) else None
    head = b""
    try:
        if not storage.is_s3(uri) and (kind := special(uri)):
            return Skipped(uri, *kind)
        head = storage.read_bytes(uri, SNIFF_BYTES)
    except (OSError, StorageError) as error:
        if not named and (claimed is None or lost(uri)):
            return Skipped(uri, "unreadable_file", lost(uri) or str(error))
    else:
        if claimed is None and sniff(head) is None:
            return Skipped(uri, *_no_document(head))
    return SourceFile(uri, _unique(relative(uri, root), uri, names))


def _no_document(head: bytes) -> tuple[str, str]:
    if not head:
        return "empty_file", "it has no bytes"
    packed = head.startswith(PACKED) or head[257:262] == b"ustar"
    more = "; a zip, tar or WARC file is opened by the archive job, python -m jobs.parse" if packed else ""
    return "not_a_document", f"its first bytes are {head[:8]!r}{more}"


def lost(uri: str) -> str:
    """What is wrong with a local path that leads to no file, or an empty text."""
    if storage.is_s3(uri):
        return ""
    try:
        os.stat(uri)
    except OSError as error:
        if os.path.islink(uri):
            return f"it is a link to {os.readlink(uri)!r}, which leads nowhere"
        if isinstance(error, FileNotFoundError):
            bare = os.path.exists(uri.strip())
            return "it is not there; without the white space at its ends it is" if bare else "it is not there"
    return ""


def special(path: str) -> tuple[str, str] | None:
    """Reason and detail of what is no regular file: opening a pipe or a device could wait for ever."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        return "unreadable_file", "the folder cannot be listed"
    return None if stat.S_ISREG(mode) else ("not_a_document", "it is no regular file")


def _unique(name: str, uri: str, names: set[str]) -> str:
    if name in names:
        raise ConfigError(f"two sources would write the same output {name!r} (the second is {uri}); parse them apart")
    names.add(name)
    return name


def relative(uri: str, root: str) -> str:
    """A file's name: its path below ``root``, byte for byte."""
    if storage.is_s3(uri):
        return uri.removeprefix(root).lstrip("/") if root and uri.startswith(root) else uri.removeprefix("s3://")
    path = os.path.abspath(uri)
    return os.path.relpath(path, root) if root else path.lstrip("/")


def common_root(bases: list[str]) -> str:
    """The deepest folder above all bases; empty where local and remote sources are mixed."""
    remote = [storage.is_s3(base) for base in bases]
    if any(remote) and not all(remote):
        return ""
    if not any(remote):
        return os.path.commonpath([os.path.abspath(base) for base in bases])
    common = os.path.commonpath([f"/{base.removeprefix('s3://').rstrip('/')}" for base in bases]).lstrip("/")
    return f"s3://{common}" if common else ""


def expand(source: str, list_remote: Lister = storage.list_files) -> Source:
    """The files behind one source; the rules of ``discover``, without a look into the files.

    Args:
        source: a path, folder, glob or ``s3://`` URI.
        list_remote: lists an ``s3://`` prefix; what it yields comes through as it is.

    Raises:
        ConfigError: no such path, or a pattern that matches nothing.
    """
    if storage.is_s3(source):
        return _expand_s3(source, list_remote)
    if os.path.isdir(source):
        return Source(source, _visible(storage.list_files(source, everything=True), source), source)
    if os.path.lexists(source):
        return Source(os.path.dirname(source) or ".", iter([source]), source)
    if glob.has_magic(source):
        matches = sorted(glob.iglob(source, recursive=True), key=os.fsencode)
        if matches:
            return Source(_fixed_part(source), _expand_matches(matches), source)
        raise ConfigError(f"the pattern {source!r} matches nothing here ({os.getcwd()}); check it, or quote it less")
    remedy = "only local paths and s3:// URIs can be read" if "://" in source else "check the path"
    raise ConfigError(f"no such file or folder: {source!r} (looked in {os.getcwd()}); {remedy}")


def _expand_matches(matches: list[str]) -> Iterator[str]:
    for match in matches:
        if os.path.isdir(match):
            yield from _visible(storage.list_files(match, everything=True), match)
        else:
            yield match


def _visible(files: Iterator[str], folder: str) -> Iterator[str]:
    for uri in files:
        below = os.path.relpath(uri, folder)
        if not any(part.startswith(".") for part in below.split("/")):
            yield uri


def _fixed_part(pattern: str) -> str:
    """The folder in front of a pattern's first wildcard."""
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return "/".join(parts[:first]) or ("/" if pattern.startswith("/") else ".")


def _expand_s3(source: str, list_remote: Lister) -> Source:
    _, key = storage.split_s3(source)
    if glob.has_magic(key) and not storage.exists(source):
        prefix = source[: min(source.index(mark) for mark in "*?[" if mark in source)]
        depth = None if "**" in source else source.count("/")  # a single star does not cross folders
        matching = (
            uri for uri in list_remote(prefix) if fnmatch.fnmatchcase(uri, source) and depth in (None, uri.count("/"))
        )
        return Source(prefix.rpartition("/")[0], _without_hidden(matching, prefix), source)
    if key and not key.endswith("/") and storage.exists(source):
        return Source(source.rpartition("/")[0], iter([source]), source)
    folder = source if source.endswith("/") else source + "/"
    return Source(folder.rstrip("/"), _without_hidden(list_remote(folder), folder), source)


def _without_hidden(uris: Iterator[str], prefix: str) -> Iterator[str]:
    for uri in uris:
        parts = uri.removeprefix(prefix).split("/")
        if not any(part.startswith(".") and part not in (".", "..") for part in parts):  # those two hide nothing here
            yield uri
