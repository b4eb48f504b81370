"""A decoder's beginning and end in a process of its own: failed starts are told, a lost one ends it."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from jocr.decoding.protocol import Decoder
from jocr.errors import EngineError, JocrError

DEATHS = 3  # processes that may die of starting the decoder before that is taken for its nature
PAUSES = (5.0, 15.0, 30.0)  # seconds
EXIT = 70  # EX_SOFTWARE


def open_guarded(
    make: Callable[[], Decoder],
    name: str | None,
    *,
    restarted: bool = False,
    wait: Callable[[float], None] = time.sleep,
) -> Decoder:
    """Start a decoder, and make it measure itself where it does that before its first page.

    A start that kills the process (out of memory, a driver's fault) leaves a line in a file of this machine, so that
    whoever starts processes anew does not do it for ever.

    Args:
        name: of the process through its restarts; None for no such guard.
        restarted: an earlier process of this name died, and may still hold the device for a moment: a start that fails
            is tried again after ``PAUSES``.

    Raises:
        CheckpointError, ConfigError: as ``make`` does.
        EngineError: it did not start, or ``DEATHS`` processes of this name died of trying.
    """
    trace = _trace(name) if name else None
    if trace is not None and _lines(trace) >= DEATHS:
        raise EngineError(
            f"{DEATHS} processes died while the engine started; out of memory? Lower model.batch or give the decoders "
            "more memory (the workers' logs say more)"
        )
    if trace is not None:
        with trace.open("a") as file:
            file.write(f"{os.getpid()}\n")
    try:
        for pause in PAUSES if restarted else ():
            with suppress(EngineError):
                return _start(make)
            wait(pause)
        return _start(make)
    finally:
        if trace is not None:
            trace.unlink(missing_ok=True)


def _start(make: Callable[[], Decoder]) -> Decoder:
    try:
        decoder = make()
        getattr(decoder, "warm_up", lambda: None)()
    except JocrError:
        raise
    except Exception as error:
        raise EngineError(f"the engine did not start: {type(error).__name__}: {error}") from error
    return decoder


def end_process(why: str) -> None:
    """End this process and those it started, at once: what a lost decoder holds is not to be trusted or waited for."""
    print(f"jocr: decoder lost, this process ends: {why}", file=sys.stderr, flush=True)
    for child in _descendants(os.getpid()):
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)
    os._exit(EXIT)


def _descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield from _descendants(child)
                yield child


def _trace(name: str) -> Path:
    folder = Path(tempfile.gettempdir()) / f"jocr-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"start-{name}"


def _lines(path: Path) -> int:
    try:
        return len(path.read_text().splitlines())
    except FileNotFoundError:
        return 0
