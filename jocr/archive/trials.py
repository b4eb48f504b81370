"""A chunk of files at its inventory: what was begun and never ended, so that a file which kills its process is found.

As with a unit's pages (``jocr.archive.attempts``), the first try takes the chunk as a whole and leaves one small
object. After a death comes care: the object says which file is being opened and what each file held is kept, so that a
death costs and charges exactly one file.

::

    OUT/manifest/.open/<chunk>.tries/<try>.begun       {"file": number in the chunk or null}
    OUT/manifest/.open/<chunk>.tries/<number>.kept     what the file held: the bytes of a table
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections import Counter
from dataclasses import dataclass

from jocr import storage
from jocr.errors import StorageError

_BEGUN, _KEPT = ".begun", ".kept"


def begin(folder: str, budget: int) -> Trial:
    """Record that a chunk is begun, and tell what earlier tries left.

    Args:
        folder: of the chunk's tries.
        budget: how often a file is opened; with one, care comes at once.

    Raises:
        StorageError: it cannot be read or written.
    """
    entries = list(storage.list_below(folder))
    deaths = [_file(entry.uri) for entry in entries if entry.uri.endswith(_BEGUN)]
    kept = {int(_stem(entry.uri)): entry.uri for entry in entries if entry.uri.endswith(_KEPT)}
    lone = Counter(number for number in deaths if number is not None)
    trial = Trial(folder, storage.join(folder, uuid.uuid4().hex + _BEGUN), budget, len(deaths), dict(lone), kept)
    trial._record(None)
    return trial


@dataclass(frozen=True, slots=True)
class Trial:
    """One try at a chunk. As a context manager it is ended when the block is left, by an exception too; where the block
    went well, everything about the chunk's tries is removed."""

    folder: str
    uri: str
    budget: int
    deaths: int  # earlier tries that never ended
    lone: dict[int, int]  # file -> how many of them died while it was open
    kept: dict[int, str]  # file -> where what it held lies

    @property
    def careful(self) -> bool:
        """Whether each file is to be ``started`` and ``saved``."""
        return self.deaths > 0 or self.budget == 1

    def exhausted(self, number: int) -> bool:
        """Whether the file has killed as many processes as it may. The first death may have been any file's."""
        lone = self.lone.get(number, 0)
        return lone > 0 and lone + (self.budget > 1) >= self.budget

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
        storage.atomic_write(self.uri, json.dumps({"file": number}).encode("ascii"), durable=number is not None)


def _file(uri: str) -> int | None:
    """The file a try had open; None where it had none alone, or what it wrote is gone or torn."""
    try:
        return json.loads(storage.read_bytes(uri) or b"{}").get("file")
    except (FileNotFoundError, ValueError):
        return None


def _stem(uri: str) -> str:
    return uri.rpartition("/")[2].partition(".")[0]
