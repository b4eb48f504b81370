"""Messages between a parent and its rendering process: a JSON header and a block of bytes, both length-prefixed.

JSON on purpose: what a hostile file may do to the child must not become code in the parent, as unpickling would allow.
"""

from __future__ import annotations

import json
import os
import select
import struct
import time
from collections.abc import Callable
from typing import Any

_PREFIX = struct.Struct(">II")
PIPE_BYTES = 1 << 20  # a page at a time instead of 64 KiB
_SLICE = 0.1  # seconds between two looks at the child's memory


class Ended(Exception):
    """The other side closed the pipe."""


class OutOfTime(Exception):
    """No complete message before the deadline."""


def send(handle: int, header: dict[str, Any], blob: bytes = b"") -> None:
    """Write one message to a file descriptor."""
    text = json.dumps(header).encode("ascii")
    try:
        _write(handle, _PREFIX.pack(len(text), len(blob)) + text)
        _write(handle, blob)
    except OSError as error:  # a broken pipe, or bytes left by a child that died
        raise Ended from error


def receive(
    handle: int, seconds: float | None = None, watch: Callable[[], None] | None = None
) -> tuple[dict[str, Any], bytes]:
    """Read one message.

    Args:
        handle: the file descriptor to read.
        seconds: time limit for the whole message; None waits for ever.
        watch: called about ten times a second while waiting; what it raises ends the wait.

    Raises:
        Ended: the other side is gone.
        OutOfTime: the limit passed.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    head, body = _PREFIX.unpack(_read(handle, _PREFIX.size, deadline, watch))
    header = json.loads(_read(handle, head, deadline, watch))
    return header, _read(handle, body, deadline, watch)


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _read(handle: int, count: int, deadline: float | None, watch: Callable[[], None] | None) -> bytes:
    """A message that fits the pipe arrives in one piece, and is then not copied."""
    parts, left, poll = [], count, select.poll()
    poll.register(handle, select.POLLIN | select.POLLHUP)
    while left:
        if deadline is not None and not poll.poll(_SLICE * 1000):
            if watch is not None:
                watch()
            if time.monotonic() > deadline:
                raise OutOfTime
            continue
        part = os.read(handle, min(left, PIPE_BYTES))
        if not part:
            raise Ended
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
