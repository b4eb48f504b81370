"""From sources to a stream of files: nothing is opened, and nothing of the stream is kept.

A source is what ``jocr.pages.sources`` takes (a path, folder, glob or ``s3://`` URI), or ``list:`` and the URI of a
file that names files (``jocr.archive.lists``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

from jocr import storage
from jocr.archive.layout import (
    ATTEMPTS,
    COMMITS,
    DOCUMENTS,
    FAILURES,
    JSONL,
    MANIFEST,
    PAGE_MAP,
    PAGES,
    PARTS,
    REPORT,
    RETIRED,
    RUN,
    RUNS,
)
from jocr.archive.lists import UriList, is_list, open_list
from jocr.errors import ConfigError, StorageError
from jocr.pages.sources import common_root, expand, lost, relative, special
from jocr.storage.local import version

OWN = (MANIFEST, PAGES, COMMITS, ATTEMPTS, DOCUMENTS, JSONL, PARTS, RETIRED, RUNS, PAGE_MAP, FAILURES, RUN, REPORT)


@dataclass(frozen=True, slots=True)
class File:
    """A file behind the sources. With a ``reason`` it is left out; ``etag`` is empty where it was not asked, and where
    the file was named by itself and is not there: then opening it says so, and it counts as a failed document."""

    uri: str
    name: str
    collection: str
    etag: str
    size: int  # bytes; 0 where it was not asked
    identity: str  # what tells that two URIs are one file; empty where it is the URI
    reason: str = ""
    detail: str = ""


class Listed(str):
    """A URI that remembers what the listing said of its object."""

    size: int
    etag: str


def list_remote(source: str) -> Iterator[Listed]:
    """Objects under an ``s3://`` prefix, a page of keys at a time."""
    for entry in storage.list_entries(source):
        uri = Listed(entry.uri)
        uri.size, uri.etag = entry.size, entry.etag
        yield uri


Lister = Callable[[str], Iterator[str]]


@dataclass(frozen=True, slots=True)
class _Given:
    base: str
    files: Iterator[tuple[str, str | None]]  # URI, collection where it is given
    given: str | None = None  # as it was named; None for a list, each of whose files is

    def names(self, uri: str) -> bool:
        """Whether the user wrote this very URI."""
        return self.given in (None, uri)


def list_sources(sources: Sequence[str], out: str = "", lister: Lister = list_remote) -> Iterator[File]:
    """Every file behind the sources, in the order given, sorted within each; a file reached twice comes twice.

    What a folder of results at ``out`` holds is no source.

    Raises:
        ConfigError: a source matches nothing, or cannot be listed. All sources are tried before the first file comes.
    """
    if not sources:
        raise ConfigError("nothing to parse: name at least one file, folder or pattern as sources")
    with ExitStack() as stack:
        given = [_begin(source, lister, stack) for source in sources]
        root = common_root([source.base for source in given])
        own = tuple(_identity(storage.join(out, part)) for part in OWN) if out else ()
        folders = _Folders()
        for source in given:
            for uri, collection in source.files:
                file = _file(uri, root, collection, folders, named=source.names(uri))
                if not _below(file.identity or file.uri, own):
                    yield file


def _begin(source: str, lister: Lister, stack: ExitStack) -> _Given:
    """The source with its first file found: what cannot be listed shows at once."""
    try:
        if is_list(source):
            uris: UriList = stack.enter_context(open_list(source))
            return _Given(uris.base(), uris.entries())
        found = expand(source, lister)
        first = next(found.files, None)
    except FileNotFoundError:
        raise ConfigError(f"{source!r} is not there; check bucket and key") from None
    except StorageError as error:
        raise ConfigError(f"source {source!r}: {error}; check the name, the credentials and AWS_ENDPOINT_URL") from None
    if first is None:
        raise ConfigError(f"{source!r} holds no file; name a file, folder or prefix that does")
    return _Given(found.base, ((uri, None) for uri in chain([first], found.files)), source)


class _Folders:
    """Real paths of folders; a listing asks for the same one many times in a row."""

    def __init__(self) -> None:
        self._folder, self._real = "", ""

    def real(self, path: str) -> str:
        if os.path.islink(path):
            return os.path.realpath(path)
        folder, name = os.path.split(os.path.abspath(path))
        if folder != self._folder:
            self._folder, self._real = folder, os.path.realpath(folder)
        return os.path.join(self._real, name)


def _file(uri: str, root: str, collection: str | None, folders: _Folders, *, named: bool) -> File:
    name = relative(uri, root)
    if collection is None:
        collection = name.partition("/")[0] if "/" in name else ""
    if storage.is_s3(uri):
        return File(str(uri), name, collection, getattr(uri, "etag", ""), getattr(uri, "size", 0), "")
    real = folders.real(uri)
    try:
        facts, left_out = os.stat(uri), special(uri)
        if left_out and named and os.path.isdir(uri):
            left_out = ("not_a_document", "it is a folder; name its files, or give it as a source of its own")
    except OSError as error:
        why = () if named else ("unreadable_file", lost(uri) or error.strerror or str(error))
        return File(uri, name, collection, "", 0, real, *why)
    return File(uri, name, collection, version(facts), facts.st_size, real, *(left_out or ()))


def _identity(uri: str) -> str:
    return uri if storage.is_s3(uri) else os.path.realpath(uri)


def _below(uri: str, places: tuple[str, ...]) -> bool:
    return any(uri == place or uri.startswith(place + "/") for place in places)
