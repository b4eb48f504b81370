"""A result directory: built in a hidden folder beside its place, then moved there as a whole.

Layout: ``pages.parquet`` (one row per page), one Markdown file per document, ``run.json`` (provenance, counts,
speeds, what was skipped, and the list of files that belong to the result) and ``report.html``.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jocr.errors import ConfigError, StorageError

PAGES, RUN, REPORT = "pages.parquet", "run.json", "report.html"
FORMAT = 1


class ResultDirectory:
    """Context manager. Work in ``work``; ``publish`` moves it to ``out``; leaving without that removes it.

    Raises:
        ConfigError: ``out`` is a file, not writable, or a directory that is not a result of this program.
    """

    def __init__(self, out: Path, *, force: bool = False) -> None:
        self.out = out.absolute()
        self._check(force)
        self.work = self.out.parent / f".{self.out.name}.jocr-{os.getpid()}"

    def __enter__(self) -> ResultDirectory:
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(self.out)
            self.work.mkdir()
        except OSError as error:
            raise ConfigError(f"cannot write beside {self.out}: {error.strerror}; choose another --out") from None
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.work, ignore_errors=True)

    def write(self, relative: str, data: bytes) -> None:
        """Write one file of the result.

        Raises:
            StorageError: the disk refuses.
        """
        path = self.work / relative
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            raise StorageError(f"cannot write {relative} under {self.out}: {error.strerror}") from None

    def publish(self, run: dict[str, Any]) -> None:
        """Write ``run.json`` with the list of files, then put the result in its place.

        An earlier result is replaced; files in the directory that belong to no result are kept.
        """
        files = sorted(str(path.relative_to(self.work)) for path in self.work.rglob("*") if path.is_file())
        run = {"jocr_result": FORMAT, **run, "files": [*files, RUN]}
        self.write(RUN, json.dumps(run, indent=1, ensure_ascii=True, default=str).encode() + b"\n")
        old = _listed(self.out)
        if self.out.is_dir() and set(_walk(self.out)) - set(old):
            self._merge([*files, RUN], old)
        else:
            self._swap()

    def _swap(self) -> None:
        """The directory holds nothing but an earlier result (or is not there): two renames, no mixed state."""
        aside = self.work.with_name(self.work.name + "-old")
        if self.out.exists():
            self.out.rename(aside)
        self.work.rename(self.out)
        shutil.rmtree(aside, ignore_errors=True)

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
        if self.out.is_dir() and not force and any(self.out.iterdir()) and not _listed(self.out):
            raise ConfigError(
                f"{self.out} holds files and no earlier result of jocr; choose another --out, or add --force to write "
                "into it (files of the same name are replaced)"
            )
        nearest = next(p for p in (self.out, *self.out.parents) if p.exists())
        if not os.access(nearest, os.W_OK) or not os.access(self.out.parent if self.out.exists() else nearest, os.W_OK):
            raise ConfigError(f"{nearest} is not writable; choose another --out")


def _listed(out: Path) -> list[str]:
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


def _remove_leftovers(out: Path) -> None:
    """Work folders of earlier runs into the same place whose process is gone."""
    for path in out.parent.glob(f".{_glob_escape(out.name)}.jocr-*"):
        pid = path.name.rsplit(".jocr-", 1)[1].removesuffix("-old")
        if not pid.isdigit() or int(pid) == os.getpid() or not _alive(int(pid)):
            shutil.rmtree(path, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _glob_escape(name: str) -> str:
    import glob

    return glob.escape(name)
