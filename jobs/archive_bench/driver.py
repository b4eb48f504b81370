"""``python -m jobs.parse`` as a process of its own: what an operator starts, and what a benchmark kills and watches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil


def sets(settings: Mapping[str, Any]) -> list[str]:
    """``{"ray.unit": 64}`` -> ``["--set", "ray.unit=64"]``; strings and lists are written as TOML reads them."""
    words = []
    for key, value in settings.items():
        plain = value if isinstance(value, str) and value.startswith(("/", "s3:")) else None
        words += ["--set", f"{key}={plain if plain is not None else json.dumps(value, ensure_ascii=False)}"]
    return words


@dataclass
class Driver:
    """A parse job at work. ``log`` is appended to, so that it tells of all starts."""

    settings: Mapping[str, Any]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    rss: list[tuple[float, float]] = field(default_factory=list)  # (seconds since the start, MiB), where watched
    _process: subprocess.Popen | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "jobs.parse", *sets(self.settings)]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            log.write(b"\n---- start\n")
            log.flush()
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env={**os.environ, **self.environment},
            )  # fmt: skip

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._running.poll()

    def kill(self) -> None:
        """SIGKILL."""
        self._running.kill()
        self._running.wait()

    def wait(self, seconds: float) -> int:
        """Until it ends by itself; killed and ``subprocess.TimeoutExpired`` where that takes longer."""
        try:
            return self._running.wait(seconds)
        except BaseException:  # out of time, or this process is told to end: its Ray must not stay behind
            self.kill()
            raise

    def watch(self, every: float = 0.5) -> None:
        """Sample the process's memory until it ends."""
        threading.Thread(target=self._sample, args=(psutil.Process(self._running.pid), every), daemon=True).start()

    def tail(self, lines: int = 15) -> str:
        """The last words of the log."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:]) if self.log.exists() else ""

    @property
    def _running(self) -> subprocess.Popen:
        assert self._process is not None, "not started"
        return self._process

    def _sample(self, process: psutil.Process, every: float) -> None:
        begin = time.monotonic()
        while self.code is None:
            try:
                self.rss.append((time.monotonic() - begin, process.memory_info().rss / 2**20))
            except psutil.Error:
                return
            time.sleep(every)
