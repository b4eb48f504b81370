"""A result directory: built in a hidden folder beside its place, then moved there as a whole.

Layout: ``pages.parquet`` (one row per page), one Markdown file per document, ``run.json`` (provenance, counts,
speeds, what was skipped, and the list of files that belong to the result) and ``report.html``.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jocr.errors import ConfigError, StorageError

PAGES, RUN, REPORT = "pages.parquet", "run.json", "report.html"
FORMAT = 1


class ResultDirectory:
    """Context manager. Work in ``work``; ``publish`` moves it to ``out``; leaving without that removes it.

    ``work`` is locked while it is in use, so that two runs never write one result at a time, and what a killed run left
    behind is recognised (its lock went with it) and cleared by the next.

    Raises:
        ConfigError: ``out`` is a file, not writable, a directory that is not a result of this program, or what another
            run is writing now.
    """

    def __init__(self, out: Path, *, force: bool = False) -> None:
        self.out = out.absolute()
        self.work = self.out.parent / f".{self.out.name}.jocr-work"
        self._aside = self.work.with_name(self.work.name + "-old")
        self._lock: int | None = None
        self._check(force)

    def __enter__(self) -> ResultDirectory:
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _own(self.work)
            if self._lock is not None:
                self._recover()
        except OSError as error:
            raise ConfigError(f"cannot write beside {self.out}: {error.strerror}; choose another --out") from None
        if self._lock is None:
            raise ConfigError(f"another run is writing {self.out} now; wait for it, or choose another --out")
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}  # the lock stays with the process that took it

    def write(self, relative: str, data: bytes) -> None:
        """Write one file of the result.

        Raises:
            StorageError: the disk refuses.
        """
        with self.writing(relative):
            path = self.work / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Turns the system's refusals into StorageError."""
        try:
            yield
        except OSError as error:
            raise StorageError(f"cannot write {what} under {self.out}: {error.strerror or error}") from None

    def publish(self, run: dict[str, Any]) -> None:
        """Write ``run.json`` with the list of files, then put the result in its place.

        An earlier result is replaced; files in the directory that belong to no result are kept.

        Raises:
            StorageError: the disk refuses.
        """
        files = sorted(str(path.relative_to(self.work)) for path in self.work.rglob("*") if path.is_file())
        run = {"jocr_result": FORMAT, **run, "files": [*files, RUN]}
        self.write(RUN, json.dumps(run, indent=1, ensure_ascii=True, default=str).encode() + b"\n")
        old = listed(self.out)
        with self.writing("the result"):
            if self.out.is_dir() and set(_walk(self.out)) - set(old):
                self._merge([*files, RUN], old)
            else:
                self._swap()

    def _swap(self) -> None:
        """The directory holds nothing but an earlier result (or is not there): two renames, no mixed state."""
        if self.out.exists():
            self.out.rename(self._aside)
        self.work.rename(self.out)
        shutil.rmtree(self._aside, ignore_errors=True)

    def _recover(self) -> None:
        """A run killed between its two renames left the earlier result aside: it comes back."""
        if self._aside.exists() and not self.out.exists():
            self._aside.rename(self.out)
        shutil.rmtree(self._aside, ignore_errors=True)

    def _merge(self, new: Iterable[str], old: Iterable[str]) -> None:
        """File by file, ``run.json`` last; then what only the earlier result had goes."""
        new = list(new)
        for name in new:
            target = self.out / name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(self.work / name, target)
        for name in set(old) - set(new):
            (self.out / name).unlink(missing_ok=True)
            _prune(self.out, (self.out / name).parent)

    def _check(self, force: bool) -> None:
        if self.out.exists() and not self.out.is_dir():
            raise ConfigError(f"{self.out} is a file; --out takes a directory")
        if self.out.is_dir() and not force and any(self.out.iterdir()) and not listed(self.out):
            raise ConfigError(
                f"{self.out} holds files and no earlier result of jocr; choose another --out, or add --force to write "
                "into it (files of the same name are replaced)"
            )
        nearest = next(p for p in (self.out, *self.out.parents) if p.exists())
        if not os.access(nearest, os.W_OK) or not os.access(self.out.parent if self.out.exists() else nearest, os.W_OK):
            raise ConfigError(f"{nearest} is not writable; choose another --out")


def listed(out: Path) -> list[str]:
    """Files of the result in ``out``, after its ``run.json``; empty where there is none."""
    try:
        run = json.loads((out / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    if not isinstance(run, dict) or "jocr_result" not in run:
        return []
    names = [name for name in run.get("files", []) if isinstance(name, str)]
    return [name for name in names if not name.startswith("/") and ".." not in name.split("/")]


def _walk(out: Path) -> Iterable[str]:
    return (str(path.relative_to(out)) for path in out.rglob("*") if not path.is_dir() or path.is_symlink())


def _prune(top: Path, folder: Path) -> None:
    while folder != top and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _own(work: Path) -> int | None:
    """Make ``work`` empty and ours: the descriptor whose lock says so, or None where a living process has it.

    Whoever holds the lock of the directory that bears the name owns it; one renamed or removed meanwhile is looked for
    again.
    """
    while True:
        work.mkdir(exist_ok=True)
        handle = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
        if not _locked(handle):
            os.close(handle)
            return None
        if work.exists() and os.path.samestat(os.fstat(handle), work.stat()):
            break
        os.close(handle)
    for path in work.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return handle


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: the last run to finish wins
        return True
    return True
