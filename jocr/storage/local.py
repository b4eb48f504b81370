"""Files of this machine: whole or absent, on disk before they are announced."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from jocr.errors import StorageError
from jocr.storage.failures import as_storage_error
from jocr.storage.uris import Entry

Writer = Callable[[BinaryIO], None]

PIECE = 1 << 20  # bytes copied at a time
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def version(facts: os.stat_result) -> str:
    """What stands for an ETag: modification time in nanoseconds and size, in hexadecimal."""
    return f"{facts.st_mtime_ns:x}-{facts.st_size:x}"


def replace(target: Path, write: Writer, durable: bool = True) -> None:
    """Write ``target`` under a draft's name, then give it its own."""
    with _draft(target, write, durable) as draft:
        os.replace(draft, target)
    if durable:
        sync(target.parent)


def link_new(target: Path, write: Writer) -> bool:
    """Write ``target`` unless it exists; false where it did. The name appears with all its bytes, once for all."""
    with _draft(target, write) as draft:
        try:
            os.link(draft, target)
        except FileExistsError:
            if os.stat(draft).st_nlink < 2:  # over NFS a link may be made and still be answered with an error
                return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            raise StorageError(
                f"cannot write {target}: its file system has no hard links ({error.strerror}), by which a file is "
                "written once only; name a place on another"
            ) from error
    sync(target.parent)
    return True


@contextlib.contextmanager
def _draft(target: Path, write: Writer, durable: bool = True) -> Iterator[str]:
    handle, draft = tempfile.mkstemp(prefix=".", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~umask())
            if durable:
                os.fsync(file.fileno())
        yield draft
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)


class Copy:
    """A local file in the making: it takes the name ``path`` when its block ends well, else nothing is left of it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._draft = os.path.join(os.path.dirname(path), f".{uuid.uuid4().hex}.part")

    def __enter__(self) -> Copy:
        with as_storage_error("write", self._path):
            self._file = open(self._draft, "wb")
        return self

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()

    def write(self, data: bytes) -> None:
        with as_storage_error("write", self._path):
            self._file.write(data)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with as_storage_error("write", self._path):
                self._file.close()
                if kind is None:
                    os.replace(self._draft, self._path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(self._draft)


def copy(source: str, target: Copy, accept: Callable[[Entry], None]) -> Entry:
    """Bring the bytes of ``source`` to ``target``; ``accept`` may raise at its size."""
    with as_storage_error("read", source), open(source, "rb") as file:
        facts = os.fstat(file.fileno())
        entry = Entry(source, facts.st_size, version(facts))
        accept(entry)
        while data := file.read(PIECE):
            target.write(data)
    return entry


def is_draft(path: str) -> bool:
    """Whether this is what a writer that was killed left behind, or is still writing."""
    name = os.path.basename(path)
    return name.startswith(".") and name.endswith(".part")


def umask() -> int:
    """The process's umask, read without changing it where the system allows."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    return 0o022


def sync(path: Path) -> None:
    """Bring a file's bytes, or a folder's names, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def walk(folder: str, seen: set[tuple[int, int]], everything: bool) -> Iterator[str]:
    """Paths of the files below ``folder``, sorted by their bytes; every real folder once. See ``list_files``."""
    with as_storage_error("list", folder):
        facts = os.stat(folder)
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    if (facts.st_dev, facts.st_ino) in seen:
        return
    seen.add((facts.st_dev, facts.st_ino))
    for entry in entries:
        if _is(entry.is_dir):
            try:
                yield from walk(entry.path, seen, everything)
            except StorageError:
                if not everything:
                    raise
                yield entry.path
        elif everything or _is(entry.is_file):
            yield entry.path


def entries(source: str, everything: bool) -> Iterator[Entry]:
    """The files of ``walk``, or the one file ``source``, with size and version; see ``list_entries``."""
    if not os.path.isdir(source):
        with as_storage_error("list", source):
            facts = os.stat(source)
        yield Entry(source, facts.st_size, version(facts))
        return
    for path in walk(source, set(), everything):
        try:
            facts = os.stat(path)
        except OSError:  # a link to nowhere, or gone since it was listed
            if everything:
                yield Entry(path, 0, "")
            continue
        yield Entry(path, facts.st_size, version(facts))


def _is(kind: Callable[[], bool]) -> bool:
    with contextlib.suppress(OSError):  # a link to itself is neither file nor folder
        return kind()
    return False


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
    with as_storage_error("write", str(final)):
        final.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{final.name[:100]}.", suffix=".part", dir=final.parent))
        draft.chmod(0o777 & ~umask())
    try:
        yield draft
        with as_storage_error("write", str(final)):
            _swap_in(draft, final)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _swap_in(draft: Path, final: Path) -> None:
    for root, _, names in os.walk(draft):
        for name in names:
            sync(Path(root, name))
        sync(Path(root))
    if not _occupied(final):
        os.replace(draft, final)  # an empty folder of that name is replaced too
    else:
        old = Path(tempfile.mkdtemp(prefix=f".{final.name[:100]}.", suffix=".old", dir=final.parent))
        os.replace(final, old)
        os.replace(draft, final)
        shutil.rmtree(old, ignore_errors=True)
    sync(final.parent)


def _occupied(path: Path) -> bool:
    return path.exists() and not (path.is_dir() and not any(path.iterdir()))
