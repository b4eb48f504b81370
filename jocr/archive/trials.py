"""Files a task opens, of a chunk at its inventory or of a unit at its rendering: what was begun and never ended, so
that a file which kills its process is found.

As with a unit's pages (``jocr.archive.attempts``), the first try takes the files as a whole and leaves one small
object. After a death comes care: the object says which file is being opened and what a file held may be kept, so that a
death costs and charges exactly one file.

Who dies or is stopped takes the tasks it started along, and no file is to blame. So the last try of another run charges
nobody, but where ``PATIENCE`` runs ended at one file: it takes the driver with it.

::

    OUT/manifest/.open/<chunk>.tries/<try>.begun       {"file": number or null, "run": ..., "written": ...}
    OUT/manifest/.open/<chunk>.tries/<number>.kept     what the file held: the bytes of a table
    OUT/attempts/<settings>/<unit>/<generation>/render/<try>.begun
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from jocr import storage
from jocr.archive.names import digest
from jocr.errors import StorageError

PATIENCE = 3  # runs that may end at a file before it is blamed for that
_BEGUN, _KEPT = ".begun", ".kept"


def begin(folder: str, budget: int, run: str = "") -> Trial:
    """Record that a try at the files begins, and tell what earlier tries left.

    Args:
        folder: of the tries.
        budget: how often a file is opened; with one, care comes at once.
        run: that begins it: what is started again after a death. Another command, pass or task has another.

    Raises:
        StorageError: it cannot be read or written.
    """
    entries = list(storage.list_below(folder))
    deaths = [_read(entry.uri) for entry in entries if entry.uri.endswith(_BEGUN)]
    kept = {int(_stem(entry.uri)): entry.uri for entry in entries if entry.uri.endswith(_KEPT)}
    trial = Trial(
        folder=folder,
        uri=storage.join(folder, uuid.uuid4().hex + _BEGUN),
        budget=budget,
        run=run,
        deaths=len(deaths),
        lone=_count(deaths),
        sure=_count(_sure(deaths, run)),
        kept=kept,
    )
    trial._record(None)
    return trial


@dataclass(frozen=True, slots=True)
class _Death:
    """What a try that never ended left behind."""

    file: int | None  # that it had open; None where it had none alone, or what it wrote is gone or torn
    run: str
    written: str


@dataclass(frozen=True, slots=True)
class Trial:
    """One try at some files. As a context manager it is ended when the block is left, by an exception too; where the
    block went well, everything about the tries is removed."""

    folder: str
    uri: str
    budget: int
    run: str
    deaths: int  # earlier tries that never ended
    lone: dict[int | None, int]  # file -> how many of them died while it was open; None: while any may have been
    sure: dict[int | None, int]  # of these, the deaths that were not a driver's
    kept: dict[int, str]  # file -> where what it held lies

    @property
    def careful(self) -> bool:
        """Whether each file is to be ``started`` and ``saved``."""
        return self.deaths > 0 or self.budget == 1

    def charged(self, number: int) -> int:
        """How many deaths the file answers for. The first of the tries may have been any file's, and counts once."""
        lone, sure = self.lone.get(number, 0), self.sure.get(number, 0)
        if lone >= max(self.budget, PATIENCE):
            return lone
        return sure + (self.sure.get(None, 0) > 0) if sure else 0

    def exhausted(self, number: int) -> bool:
        """Whether the file has killed as many processes as it may. Never before it was open alone."""
        return self.charged(number) >= self.budget

    def started(self, number: int) -> None:
        """Record that this file is being opened. ``StorageError`` where that cannot be."""
        self._record(number)

    def saved(self, number: int, data: bytes) -> None:
        """Keep what a file held. ``StorageError`` where that cannot be."""
        storage.atomic_write(storage.join(self.folder, f"{number}{_KEPT}"), data)

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.suppress(StorageError):  # the work is done, or its own error matters more
            storage.delete(self.uri)
            if kind is None and self.careful:
                for entry in list(storage.list_below(self.folder)):
                    storage.delete(entry.uri)
        if not storage.is_s3(self.folder):
            with contextlib.suppress(OSError):  # somebody else's try is in it
                os.rmdir(self.folder)

    def _record(self, number: int | None) -> None:
        record = {"file": number, "run": self.run, "written": datetime.now(UTC).isoformat(timespec="milliseconds")}
        storage.atomic_write(self.uri, json.dumps(record).encode("ascii"), durable=number is not None)


@dataclass(frozen=True, slots=True)
class Within:
    """One file of a careful trial, from the inside: whose turn it is among its members; ``""`` for its own."""

    trial: Trial
    file: int
    uri: str

    def begun(self, member: str) -> None:
        """Record that this member, or what is the file's own, is being read. ``StorageError`` where that cannot be."""
        self.trial.started(self._number(member))

    def deaths(self, member: str) -> int:
        """Of a member that is not to be read again; 0 for all others."""
        number = self._number(member)
        return self.trial.charged(number) if self.trial.exhausted(number) else 0

    def _number(self, member: str) -> int:
        return digest(f"{self.uri}\0{member}") if member else self.file


def _count(deaths: Iterable[_Death]) -> dict[int | None, int]:
    return dict(Counter(death.file for death in deaths))


def _sure(deaths: list[_Death], run: str) -> list[_Death]:
    """Deaths that no driver's explains: its run went on after them."""
    last: dict[str, _Death] = {}
    for death in deaths:
        last[death.run] = max(death, last.get(death.run, death), key=lambda one: one.written)
    return [death for death in deaths if death.run == run or death is not last[death.run]]


def _read(uri: str) -> _Death:
    try:
        record = json.loads(storage.read_bytes(uri) or b"{}")
        return _Death(record.get("file"), record.get("run", ""), record.get("written", ""))
    except (FileNotFoundError, ValueError):
        return _Death(None, "", "")


def _stem(uri: str) -> str:
    return uri.rpartition("/")[2].partition(".")[0]
