"""Folders on a node's disk, each filled once, shared by its processes, and removed for room while nobody uses them.

Every folder has a lock file: shared while it is used, exclusive while it is filled or removed. The kernel drops the
locks of a process that dies, so nothing has to be cleaned up after a crash: a half-filled folder whose lock is free is
removed when it is met.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from jocr.errors import DocumentError

_KEEP = 0.9  # of the limit is filled again after room had to be made: looking at every folder takes time


class Shelf:
    """Args:
    folder: on a local disk; made if it is missing.
    limit_bytes: what all folders may hold together. It is exceeded only where all that is there is in use.
    """

    def __init__(self, folder: str | Path, limit_bytes: int) -> None:
        self.limit = limit_bytes
        self._folder = Path(folder)
        self._full, self._locks = self._folder / "full", self._folder / "locks"
        for part in (self._full, self._locks):
            part.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def hold(
        self,
        key: str,
        need: Callable[[], int],
        fill: Callable[[Path], None],
        good: Callable[[Path], bool] = lambda _: True,
    ) -> Iterator[Path]:
        """The folder ``key``, which stays while the context lasts.

        Args:
            key: its name: hexadecimal digits.
            need: about how many bytes it will hold; asked where it has to be filled.
            fill: writes into the empty folder it is handed.
            good: whether a folder found there may be used; else it is filled anew.

        Raises:
            DocumentError: what ``fill`` raised; too_large beyond the limit; unreadable_file where the disk is full.
        """
        lock = self._ready(key, need, fill, good)
        try:
            yield self._full / key
        finally:
            os.close(lock)

    def _ready(
        self, key: str, need: Callable[[], int], fill: Callable[[Path], None], good: Callable[[Path], bool]
    ) -> int:
        """A shared lock on the filled folder."""
        place = self._full / key
        while True:
            lock = self._lock(key, fcntl.LOCK_SH)
            if place.is_dir() and good(place):
                with contextlib.suppress(OSError):
                    os.utime(place)
                return lock
            os.close(lock)
            lock = self._lock(key, fcntl.LOCK_EX)
            try:
                filled = not (place.is_dir() and good(place))
                if filled:
                    self._fill(place, need(), fill)
                fcntl.flock(lock, fcntl.LOCK_SH)  # not at one stroke: another may have removed it
            except BaseException:
                os.close(lock)
                raise
            if filled and place.is_dir() and self._current(lock, key):
                return lock
            os.close(lock)

    def _fill(self, place: Path, need: int, fill: Callable[[Path], None]) -> None:
        if place.is_dir():
            self._count(-_size(place))
            shutil.rmtree(place)
        draft = place.with_name(f"{place.name}.{need}.part")
        shutil.rmtree(draft, ignore_errors=True)
        self._reserve(need)
        used = 0
        try:
            draft.mkdir()
            fill(draft)
            used = _size(draft)
            os.replace(draft, place)
        except OSError as error:
            raise DocumentError("unreadable_file", f"it cannot be kept on this node: {error}") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            self._count(used - need)

    def _reserve(self, need: int) -> None:
        if need > self.limit:
            detail = f"it takes {need:,} bytes and the spool of a node holds {self.limit:,}; raise job.spool_gb"
            raise DocumentError("too_large", detail)
        with self._room() as counter:
            used = counter.used()
            if used + need > self.limit:
                used = self._make_room(int(self.limit * _KEEP) - need)
            if shutil.disk_usage(self._folder).free < need:
                used = self._make_room(0)
            counter.set(used + need)
        if (free := shutil.disk_usage(self._folder).free) < need:
            self._count(-need)
            raise DocumentError("unreadable_file", f"the node's disk has {free:,} bytes left of {need:,} that it takes")

    def _make_room(self, wanted: int) -> int:
        """Remove what was not used for longest until at most ``wanted`` bytes lie there; returns how many do."""
        found = []
        for entry in os.scandir(self._full):
            with contextlib.suppress(FileNotFoundError):
                size = int(entry.name.split(".")[1]) if entry.name.endswith(".part") else _size(Path(entry.path))
                found.append((not entry.name.endswith(".part"), entry.stat().st_mtime, size, Path(entry.path)))
        total = sum(size for _, _, size, _ in found)
        for whole, _, size, place in sorted(found):
            if (total > wanted or not whole) and self._remove(place):
                total -= size
        return total

    def _remove(self, place: Path) -> bool:
        key = place.name.partition(".")[0]
        try:
            lock = self._lock(key, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            shutil.rmtree(place, ignore_errors=True)
            if not (self._full / key).exists():
                (self._locks / key).unlink(missing_ok=True)
        finally:
            os.close(lock)
        return True

    def _lock(self, key: str, mode: int) -> int:
        """A descriptor that holds the lock; a lock file that was removed meanwhile is made anew."""
        while True:
            handle = os.open(self._locks / key, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(handle, mode)
            except BaseException:
                os.close(handle)
                raise
            if self._current(handle, key):
                return handle
            os.close(handle)

    def _current(self, handle: int, key: str) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(handle), os.stat(self._locks / key))
        return False

    @contextlib.contextmanager
    def _room(self) -> Iterator[_Counter]:
        handle = os.open(self._folder / "used", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield _Counter(handle)
        finally:
            os.close(handle)

    def _count(self, change: int) -> None:
        with self._room() as counter:
            counter.set(counter.used() + change)


class _Counter:
    """Bytes that lie there or are about to, in a locked file; it need not be exact: making room counts anew."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def used(self) -> int:
        text = os.pread(self._handle, 32, 0)
        return int(text) if text.strip().isdigit() else 0

    def set(self, value: int) -> None:
        os.pwrite(self._handle, b"%-31d" % max(0, value), 0)


def _size(folder: Path) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder))
