"""One chaos run: the parse job on a cluster that is being broken, started again until it ends well.

Kills come at moments drawn from the run's seed: some seconds after a start of the driver (Ray, inventory, planning), or
when a drawn share of the units is committed, or after the last one (while results are written).
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.archive_bench.cluster import Nodes
from jobs.archive_bench.corpus import LONG_SIDE, End, Place
from jobs.archive_bench.driver import Driver
from jobs.archive_bench.papers import CRASH_MB
from jobs.archive_bench.verify import verify

KINDS = ("driver", "worker", "node")
REPLACED = (1.0, 4.0)  # seconds after which a killed node is replaced
STARTS = 8  # starts of the driver in one run, after which it does not end well
FLIGHT = 0.1


@dataclass(frozen=True, slots=True)
class Kill:
    """``seconds`` after the driver's latest start where ``share`` is None, else after that share of the units."""

    kind: str
    share: float | None
    seconds: float


@dataclass
class Trial:
    """What a run came to."""

    seed: int
    seconds: float = 0.0
    starts: int = 0
    kills: list[str] = field(default_factory=list)
    unasked: list[int] = field(default_factory=list)  # exit codes of drivers that ended by themselves, not well
    counts: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    units: int = 0
    problems: list[str] = field(default_factory=list)


def draw(seed: int, kills: int) -> list[Kill]:
    """The kills of a run, in the order of their moments."""
    rng = random.Random(seed)
    early = sorted((rng.uniform(0.5, 10.0) for _ in range(kills) if rng.random() < 0.25), reverse=True)
    shares = sorted(min(1.0, rng.uniform(0.0, 1.1)) for _ in range(kills - len(early)))
    drawn = [Kill(rng.choice(KINDS), None, seconds) for seconds in early]
    return [*drawn, *(Kill(rng.choice(KINDS), share, rng.uniform(0.0, 1.5)) for share in shares)]


def settings(source: str, out: str, **more: Any) -> dict[str, Any]:
    """What the job is told: an engine and a renderer that poison pages really break."""
    return {
        "sources": [source],
        "out": out,
        "model.name": "fake:marks",
        "render.long_side": LONG_SIDE,
        "render.page_seconds": 6,
        "render.memory_mb": CRASH_MB,
        "job.stall_seconds": 6,
        "report.pages": 12,
        "ray.unit": 64,
        "ray.decoders": 2,
        "ray.decoder_cpus": 0.5,
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def run(
    seed: int, cluster: Nodes, source: str, work: Path, ends: Mapping[Place, End], *,
    kills: int, limit: float = 600.0, **more: Any,
) -> Trial:  # fmt: skip
    """One run into ``work / "out"``, verified. Problems are in the trial; nothing is raised for them.

    Args:
        cluster: complete, and complete again afterwards.
        limit: seconds after which a run does not end any more.
        more: changes of ``settings``, with ``__`` for a dot.
    """
    shutil.rmtree(work, ignore_errors=True)
    out, trial, begin = work / "out", Trial(seed), time.monotonic()
    driver = Driver(settings(source, str(out), **more), work / "driver.log", {"RAY_ADDRESS": cluster.address})
    breaker = _Breaker(driver, cluster, out, deque(draw(seed, kills)), random.Random(seed), trial)
    try:
        breaker.until(begin + limit)
    finally:
        if driver.code is None:
            driver.kill()
        cluster.complete()
    trial.seconds = round(time.monotonic() - begin, 1)
    verdict = verify(str(out), ends)
    trial.counts, trial.reasons, trial.units = verdict.counts, verdict.reasons, verdict.units
    trial.problems += verdict.problems
    return trial


@dataclass
class _Breaker:
    """Watches a driver, kills what is to be killed, starts again what was."""

    driver: Driver
    cluster: Nodes
    out: Path
    kills: deque[Kill]
    rng: random.Random
    trial: Trial
    _due: float | None = None  # when dead nodes are to be replaced
    _started: float = 0.0
    _reached: float | None = None

    def until(self, limit: float) -> None:
        self._start()
        while not self._over():
            if time.monotonic() > limit:
                self.trial.problems.append(f"the run does not end; the driver's last words:\n{self.driver.tail()}")
                return
            self._kill()
            if self._due is not None and self._due <= time.monotonic():
                self._due = None
                self.cluster.complete()
            time.sleep(FLIGHT)

    def _start(self) -> None:
        self.trial.starts += 1
        self._started = time.monotonic()
        self.driver.start()

    def _over(self) -> bool:
        """Whether all is done; a driver that ended is started again where it is not."""
        code = self.driver.code
        if code is None:
            return False
        if code == 0 and not self.kills:
            return True
        if code == 0:  # sooner than the next kill, which then hits a job that has nothing left to do
            self.kills[0] = Kill("driver", None, self.rng.uniform(0.5, 6.0))
        if code > 0:
            self.trial.unasked.append(code)
        if self.trial.starts == STARTS:
            self.trial.problems.append(f"the driver ended with {code} at start {STARTS}:\n{self.driver.tail()}")
            return True
        self._start()
        return False

    def _kill(self) -> None:
        if not self.kills or not self._is_time(self.kills[0]):
            return
        kind = self.kills[0].kind
        if kind == "driver":
            self.driver.kill()
            what: str | None = f"start {self.trial.starts}"
        elif kind == "worker":
            what = self.cluster.kill_worker(self.rng)
        else:
            what = self.cluster.kill_node(self.rng)
            self._due = self._due or time.monotonic() + self.rng.uniform(*REPLACED)
        if what is not None:  # a worker is waited for until there is one at work
            self.kills.popleft()
            self._reached = None
            done, units = self._progress()
            self.trial.kills.append(f"{kind} ({what}) at {done} of {units or '?'} units")

    def _is_time(self, kill: Kill) -> bool:
        now = time.monotonic()
        if kill.share is None:
            return now >= self._started + kill.seconds
        done, units = self._progress()
        if self._reached is None and units and done >= kill.share * units:
            self._reached = now
        return self._reached is not None and now >= self._reached + kill.seconds

    def _progress(self) -> tuple[int, int]:
        """(units committed, units in all; 0 where that is not known yet)."""
        done = sum(1 for _ in self.out.glob("commits/*/*.json"))
        heads = sorted(self.out.glob("manifest/*.json"))
        return done, json.loads(heads[-1].read_bytes())["groups"] if heads else 0
