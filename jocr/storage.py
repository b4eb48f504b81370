"""Local paths and ``s3://`` URIs behind one set of functions: the only module that knows object storage.

A URI is a plain path or ``s3://bucket/key``. Keys are taken byte for byte: ``#``, ``%``, ``?`` and spaces are ordinary
characters and nothing is URL-decoded. S3 goes through boto3, imported on first use; ``AWS_ENDPOINT_URL`` is honoured by
it. Every failure of a backend surfaces as ``StorageError``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from jocr.errors import StorageError

Writer = Callable[[BinaryIO], None]

_clients = threading.local()
_PARTS = 16  # a writer's output is spooled on disk beyond this many MiB


def is_s3(uri: str) -> bool:
    return uri.startswith("s3://")


def split_s3(uri: str) -> tuple[str, str]:
    """``s3://bucket/key`` -> (bucket, key), without any decoding; the key may be empty."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    if not bucket:
        raise StorageError(f"{uri!r} names no bucket; write s3://bucket/key")
    return bucket, key


def join(folder: str, name: str) -> str:
    """The URI of ``name`` inside ``folder``."""
    return f"{folder.rstrip('/')}/{name}" if is_s3(folder) else os.path.join(folder, name)


def exists(uri: str) -> bool:
    """Whether a file (or, locally, a folder) is there."""
    if not is_s3(uri):
        return os.path.exists(uri)
    try:
        size(uri)
    except FileNotFoundError:
        return False
    return True


def size(uri: str) -> int:
    """Bytes of one file.

    Raises:
        FileNotFoundError: no such file.
        StorageError: the backend refused.
    """
    if not is_s3(uri):
        with _as_storage_error("read", uri):
            return os.stat(uri).st_size
    bucket, key = split_s3(uri)
    with _as_storage_error("read", uri):
        return int(_client().head_object(Bucket=bucket, Key=key)["ContentLength"])


def read_bytes(uri: str, limit: int | None = None) -> bytes:
    """The bytes of one file, or its first ``limit`` bytes.

    Raises:
        FileNotFoundError: no such file.
        StorageError: the backend refused.
    """
    if not is_s3(uri):
        with _as_storage_error("read", uri), open(uri, "rb") as file:
            return file.read() if limit is None else file.read(limit)
    bucket, key = split_s3(uri)
    with _as_storage_error("read", uri):
        # a plain GET cut short: a Range request on an empty object is an error
        body = _client().get_object(Bucket=bucket, Key=key)["Body"]
        with contextlib.closing(body):
            return body.read() if limit is None else body.read(limit)


def list_files(source: str, *, everything: bool = False) -> Iterator[str]:
    """URIs of the regular files below a folder or under an ``s3://`` prefix, sorted, recursively.

    Symbolic links are followed; every real folder is visited once, so loops end. A file's URI yields itself. With
    ``everything``, also pipes, sockets, devices, links to nowhere, and folders inside that cannot be listed.

    Raises:
        StorageError: the source cannot be listed.
    """
    if is_s3(source):
        yield from _list_s3(source)
    elif os.path.isdir(source):
        yield from _walk(source, set(), everything)
    else:
        yield source


def atomic_write(uri: str, data: bytes | Writer) -> None:
    """Write a file so that readers see the old bytes or all the new ones, never a part.

    Args:
        uri: a path (folders are made) or an ``s3://`` key.
        data: the bytes, or a function that writes them to the binary file it is handed.

    Raises:
        StorageError: the target is not writable; nothing is left behind.
    """
    write: Writer = data if callable(data) else lambda file: _write_all(file, data)
    if is_s3(uri):
        return _put_s3(uri, write)
    with _as_storage_error("write", uri):
        target = Path(uri)
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_local(target, write)


@contextlib.contextmanager
def atomic_directory(path: str | Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder that appears complete or not at all.

    Yields an empty temporary folder beside ``path``; when the block ends well it takes the name ``path``, and when it
    raises, it is removed.

    Args:
        path: the local folder to make.
        replace: whether a folder of that name may be exchanged; otherwise it is an error, raised before any work.

    Raises:
        StorageError: ``path`` exists and ``replace`` is false, or its parent is not writable.
    """
    final = Path(path)
    if _occupied(final) and not replace:
        raise StorageError(f"{final} exists already; choose another output folder or remove it first")
    with _as_storage_error("write", str(final)):
        final.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{final.name[:100]}.", suffix=".part", dir=final.parent))
        draft.chmod(0o777 & ~_umask())
    try:
        yield draft
        with _as_storage_error("write", str(final)):
            _swap_in(draft, final)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _swap_in(draft: Path, final: Path) -> None:
    _sync_tree(draft)
    if not _occupied(final):
        os.replace(draft, final)  # an empty folder of that name is replaced too
    else:
        old = Path(tempfile.mkdtemp(prefix=f".{final.name[:100]}.", suffix=".old", dir=final.parent))
        os.replace(final, old)
        os.replace(draft, final)
        shutil.rmtree(old, ignore_errors=True)
    _sync_folder(final.parent)


def _occupied(path: Path) -> bool:
    return path.exists() and not (path.is_dir() and not any(path.iterdir()))


def _write_all(file: BinaryIO, data: bytes) -> None:
    file.write(data)


def _write_local(target: Path, write: Writer) -> None:
    handle, draft = tempfile.mkstemp(prefix=".", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        raise
    _sync_folder(target.parent)


def _umask() -> int:
    """The process's umask, read without changing it where the system allows."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    return 0o022


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_tree(folder: Path) -> None:
    for root, _, names in os.walk(folder):
        for name in names:
            _sync_folder(Path(root, name))
        _sync_folder(Path(root))


def _walk(folder: str, seen: set[tuple[int, int]], everything: bool) -> Iterator[str]:
    with _as_storage_error("list", folder):
        facts = os.stat(folder)
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    if (facts.st_dev, facts.st_ino) in seen:
        return
    seen.add((facts.st_dev, facts.st_ino))
    for entry in entries:
        if _is(entry.is_dir):
            try:
                yield from _walk(entry.path, seen, everything)
            except StorageError:
                if not everything:
                    raise
                yield entry.path
        elif everything or _is(entry.is_file):
            yield entry.path


def _is(kind: Callable[[], bool]) -> bool:
    with contextlib.suppress(OSError):  # a link to itself is neither file nor folder
        return kind()
    return False


def _list_s3(source: str) -> Iterator[str]:
    bucket, prefix = split_s3(source)
    with _as_storage_error("list", source):
        for page in _client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for item in page.get("Contents", ()):
                if not item["Key"].endswith("/"):
                    yield f"s3://{bucket}/{item['Key']}"


def _put_s3(uri: str, write: Writer) -> None:
    bucket, key = split_s3(uri)
    with _as_storage_error("write", uri), tempfile.SpooledTemporaryFile(_PARTS << 20) as spool:
        write(spool)  # type: ignore[arg-type]
        spool.seek(0)
        _client().upload_fileobj(spool, bucket, key, Config=_transfer())  # the object appears when it is complete


def _client() -> Any:
    """One S3 client per thread: boto3 clients are safe to share, their creation is not."""
    if not hasattr(_clients, "s3"):
        import boto3
        from botocore.config import Config

        config = Config(retries={"max_attempts": 8, "mode": "standard"}, max_pool_connections=16)
        _clients.s3 = boto3.session.Session().client("s3", config=config)
    return _clients.s3


def _transfer() -> Any:
    from boto3.s3.transfer import TransferConfig

    return TransferConfig(use_threads=False)


@contextlib.contextmanager
def _as_storage_error(verb: str, uri: str) -> Iterator[None]:
    """Backend errors -> StorageError; a missing file stays FileNotFoundError on reading."""
    try:
        yield
    except FileNotFoundError:
        if verb != "read":
            raise StorageError(f"cannot {verb} {uri}: no such file or folder") from None
        raise
    except OSError as error:
        raise StorageError(f"cannot {verb} {uri}: {error.strerror or error}") from error
    except Exception as error:
        if not type(error).__module__.startswith(("boto3", "botocore", "s3transfer")):
            raise
        if getattr(error, "response", {}).get("Error", {}).get("Code") in ("404", "NoSuchKey", "NotFound"):
            raise FileNotFoundError(uri) from error
        raise StorageError(f"cannot {verb} {uri}: {error}") from error
