"""Local paths and ``s3://`` URIs behind one set of functions: the only place that knows object storage.

A URI is a plain path or ``s3://bucket/key``. Keys are taken byte for byte: ``#``, ``%``, ``?`` and spaces are ordinary
characters and nothing is URL-decoded. S3 goes through boto3, imported on first use; ``AWS_ENDPOINT_URL`` is honoured by
it, and overload, broken lines and passing refusals are waited out. What remains surfaces as ``StorageError``, which
says the file, the cause and the remedy.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from jocr.errors import StorageError
from jocr.storage import local, s3
from jocr.storage.failures import as_storage_error
from jocr.storage.local import Writer, atomic_directory
from jocr.storage.uris import Entry, is_s3, join, split_s3

__all__ = [
    "Entry",
    "Writer",
    "atomic_directory",
    "atomic_write",
    "check_writable",
    "delete",
    "download",
    "etag",
    "exists",
    "is_s3",
    "join",
    "list_below",
    "list_entries",
    "list_files",
    "put_if_absent",
    "read_bytes",
    "size",
    "split_s3",
]


def exists(uri: str) -> bool:
    """Whether a file (or, locally, a folder) is there."""
    if not is_s3(uri):
        return os.path.exists(uri)
    try:
        s3.head(uri)
    except FileNotFoundError:
        return False
    return True


def size(uri: str) -> int:
    """Bytes of one file.

    Raises:
        FileNotFoundError: no such file.
        StorageError: the backend refused.
    """
    return _head(uri).size


def etag(uri: str) -> str:
    """Version of one file: S3's ETag without quotes; locally modification time and size. Raises as ``size``."""
    return _head(uri).etag


def _head(uri: str) -> Entry:
    if is_s3(uri):
        return s3.head(uri)
    with as_storage_error("read", uri):
        facts = os.stat(uri)
    return Entry(uri, facts.st_size, local.version(facts))


def read_bytes(uri: str, limit: int | None = None) -> bytes:
    """The bytes of one file, or its first ``limit`` bytes.

    Raises:
        FileNotFoundError: no such file.
        StorageError: the backend refused.
    """
    if is_s3(uri):
        return s3.read(uri, limit)
    with as_storage_error("read", uri), open(uri, "rb") as file:
        return file.read() if limit is None else file.read(limit)


def download(uri: str, path: str, *, limit: int | None = None) -> Entry:
    """Copy one file to the local ``path``, a piece at a time; returns what was copied, with its version.

    Raises:
        FileNotFoundError: no such file.
        StorageError: it has more than ``limit`` bytes, the backend refused, or ``path`` is not writable; ``path`` is
            left as it was.
    """

    def accept(entry: Entry) -> None:
        if limit is not None and entry.size > limit:
            raise StorageError(f"{uri} has {entry.size} bytes; the limit is {limit}")

    with local.Copy(path) as copy:
        entry = s3.copy(uri, copy, accept) if is_s3(uri) else local.copy(uri, copy, accept)
    return entry


def list_files(source: str, *, everything: bool = False) -> Iterator[str]:
    """URIs of the regular files below a folder or under an ``s3://`` prefix, sorted, recursively.

    Symbolic links are followed; every real folder is visited once, so loops end. A file's URI yields itself. With
    ``everything``, also pipes, sockets, devices, links to nowhere, and folders inside that cannot be listed.

    Raises:
        StorageError: the source cannot be listed.
    """
    if is_s3(source):
        yield from (entry.uri for entry in s3.entries(source))
    elif os.path.isdir(source):
        yield from local.walk(source, set(), everything)
    else:
        yield source


def list_entries(source: str, *, everything: bool = False) -> Iterator[Entry]:
    """``list_files`` with sizes and versions, in the same order and streamed: memory does not grow with the listing.

    What cannot be asked for its size (a link to nowhere) has size 0 and an empty version.

    Raises:
        StorageError: the source cannot be listed, or is a local path that does not exist.
    """
    yield from s3.entries(source) if is_s3(source) else local.entries(source, everything)


def list_below(folder: str) -> Iterator[Entry]:
    """The files below a folder (``a/b`` and ``a/b/`` alike), recursively, sorted; none where it does not exist.

    Drafts of files that are being written, or whose writer was killed, are left out.

    Raises:
        StorageError: the folder cannot be listed, or there is no such bucket.
    """
    if is_s3(folder):
        bucket, key = split_s3(folder)
        yield from s3.entries(f"s3://{bucket}/{key.rstrip('/')}/" if key.strip("/") else f"s3://{bucket}/")
    elif os.path.isdir(folder):
        yield from (entry for entry in local.entries(folder, False) if not local.is_draft(entry.uri))


def atomic_write(uri: str, data: bytes | Writer, *, durable: bool = True) -> None:
    """Write a file so that readers see the old bytes or all the new ones, never a part.

    Args:
        uri: a path (folders are made) or an ``s3://`` key.
        data: the bytes, or a function that writes them to the binary file it is handed.
        durable: whether a local file is on the disk when this returns. Without it, a power cut (not the death of a
            process) may leave the old bytes, or none.

    Raises:
        StorageError: the target is not writable; nothing is left behind.
    """
    write: Writer = data if callable(data) else lambda file: _write_all(file, data)
    if is_s3(uri):
        return s3.put(uri, write)
    with as_storage_error("write", uri):
        target = Path(uri)
        target.parent.mkdir(parents=True, exist_ok=True)
        local.replace(target, write, durable)


def put_if_absent(uri: str, data: bytes) -> bool:
    """Write a file unless there is one of that name: of any number of writers exactly one is told true.

    The file appears with all its bytes or not at all, and is durable when this returns. On S3 this is a PUT with
    ``If-None-Match: *``; locally a hard link.

    Raises:
        StorageError: the target is not writable, or the storage cannot do this.
    """
    if is_s3(uri):
        return s3.put_new(uri, data)
    with as_storage_error("write", uri):
        target = Path(uri)
        target.parent.mkdir(parents=True, exist_ok=True)
        return local.link_new(target, lambda file: _write_all(file, data))


def delete(uri: str) -> None:
    """Remove one file; that it is not there is fine.

    Raises:
        StorageError: the backend refused.
    """
    if is_s3(uri):
        return s3.delete(uri)
    with as_storage_error("delete", uri), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(uri)


def check_writable(folder: str) -> None:
    """See that files can be written, written once only, and removed below ``folder``; leaves nothing behind.

    A folder that does not exist is not made: the nearest one above it is tried.

    Raises:
        StorageError: it is not so; the message says the remedy.
    """
    probe = join(folder if is_s3(folder) else _nearest(folder), f".jocr-{uuid.uuid4().hex}.part")
    try:
        first, second = put_if_absent(probe, b"1"), put_if_absent(probe, b"2")
    finally:
        with contextlib.suppress(StorageError):
            delete(probe)
    if not first or second:
        raise StorageError(
            f"cannot write {folder}: this storage ignores If-None-Match, so two runs could overwrite each other; "
            "use one that honours conditional writes"
        )
    delete(probe)


def _nearest(folder: str) -> str:
    """The deepest part of the path that exists."""
    path = os.path.abspath(folder)
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def _write_all(file: BinaryIO, data: bytes) -> None:
    file.write(data)
