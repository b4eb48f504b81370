"""A rendering process as its parent sees it: start, ask, wait with a time limit, watch its memory, kill."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import jocr
from jocr.errors import JocrError
from jocr.pages import wire

_START_SECONDS = 60.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
_KEPT = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(64 << 20)}  # bytes


class ChildDied(JocrError):
    """The process ended, or was ended for its memory, while it owed an answer."""


class Child:
    """One ``jocr.pages.worker`` process. ``pages`` counts the pages it has been asked for."""

    def __init__(self, memory_mb: int) -> None:
        self.pages = 0
        self._memory_mb = memory_mb
        self._started = False
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # what native libraries print: last words of a crash
        command = [sys.executable, "-P", "-m", "jocr.pages.worker", str(memory_mb)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=_environment(), bufsize=0
        )
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(self._process.stdout, fcntl.F_SETPIPE_SZ, wire.PIPE_BYTES)
        self._statm: IO[bytes] | None = None
        with contextlib.suppress(OSError):  # kept open: it is read for every page
            self._statm = open(f"/proc/{self._process.pid}/statm", "rb", buffering=0)  # noqa: SIM115

    def send(self, request: dict[str, Any]) -> None:
        """Send a request; answers come in the order of requests. Raises ChildDied."""
        assert self._process.stdin is not None
        self.pages += request["do"] == "render"
        try:
            wire.send(self._process.stdin.fileno(), request)
        except wire.Ended:
            raise ChildDied(self._obituary()) from None

    def receive(self, seconds: float) -> tuple[dict[str, Any], bytes]:
        """Wait for the answer to the oldest request that has none yet.

        Raises:
            OutOfTime: no answer in time; the caller kills the child.
            ChildDied: the process is gone.
        """
        assert self._process.stdout is not None
        answers = self._process.stdout.fileno()
        try:
            if not self._started:  # interpreter and imports are not the document's time
                wire.receive(answers, _START_SECONDS, self._watch)
                self._started = True
            return wire.receive(answers, seconds, self._watch)
        except wire.Ended:
            raise ChildDied(self._obituary()) from None

    def private_mb(self) -> float:
        """Memory that is the child's alone (not mapped files), in MiB; 0 where the system does not tell."""
        if self._statm is not None:
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = os.pread(self._statm.fileno(), 256, 0).split()
                return (int(fields[1]) - int(fields[2])) * _PAGE / 2**20
        return 0.0

    def kill(self) -> None:
        """End the process at once and wait for it; harmless when repeated."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log, self._statm):
            if stream is not None:
                stream.close()

    def _watch(self) -> None:
        used = self.private_mb()
        if used > self._memory_mb:
            raise ChildDied(f"stopped at {used:.0f} MiB of memory; the limit is {self._memory_mb}")

    def _obituary(self) -> str:
        code = self._process.wait()
        how = f"exit code {code}"
        if code < 0:
            with contextlib.suppress(ValueError):
                how = f"signal {signal.Signals(-code).name}"
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 300))
        words = " ".join(self._log.read().decode("utf-8", "replace").split())
        return f"the rendering process ended with {how}" + (f": {words}" if words else "")


def _environment() -> dict[str, str]:
    """The child imports this very package, with one thread per library and no search in the working directory. Memory
    of a page's size is kept by glibc from page to page: mapped anew each time, it costs the system a tenth of a page's
    time. What is larger is given back at once."""
    home = str(Path(jocr.__file__).resolve().parents[1])
    paths = [home, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**_KEPT, **os.environ, **single, "PYTHONPATH": os.pathsep.join(paths)}
