"""A Ray cluster of several nodes on this machine, to be broken on purpose: SIGKILL of a worker process or of a whole
node, which is then replaced."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psutil

NODE_MEMORY = 100 << 20  # bytes of object store of a node
QUICK_DEATH = {  # a dead node is known after some 3 s instead of 20
    "health_check_initial_delay_ms": 2000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 4,
}
_HOUSEHOLD = ("ray::IDLE", "ray::DashboardAgent", "ray::RuntimeEnvAgent")


@dataclass
class Nodes:
    """A head without CPUs and ``count`` workers of ``cpus`` logical CPUs each. Use it as a context manager."""

    count: int
    cpus: int = 4
    _cluster: Any = field(default=None, init=False)
    _folder: str = field(default="", init=False)

    def __enter__(self) -> Nodes:
        os.environ.setdefault("RAY_worker_niceness", "0")
        self._folder = tempfile.mkdtemp(prefix="jocr-ray-")
        os.environ["RAY_TMPDIR"] = self._folder  # where a ``ray.init()`` of somebody else does not find this cluster
        logging.getLogger("ray").setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from ray.cluster_utils import Cluster

            head = {"num_cpus": 0, "include_dashboard": False, "_system_config": QUICK_DEATH}
            self._cluster = Cluster(initialize_head=True, head_node_args={**head, "object_store_memory": NODE_MEMORY})
        self.complete()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(AssertionError, ValueError):
            self._cluster.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def address(self) -> str:
        return self._cluster.address

    def complete(self) -> None:
        """Replace the nodes that were killed."""
        while len(self._cluster.worker_nodes) < self.count:
            self._cluster.add_node(num_cpus=self.cpus, object_store_memory=NODE_MEMORY)

    def kill_node(self, rng: random.Random) -> str | None:
        """SIGKILL all processes of a worker node at once; says which, or None where there is none."""
        nodes = sorted(self._cluster.worker_nodes, key=lambda node: str(node.raylet_socket_name))
        if not nodes:
            return None
        node = rng.choice(nodes)
        victims = [process for process in _raylet(node) for process in (*process.children(recursive=True), process)]
        for process in victims:
            _kill(process)
        psutil.wait_procs(victims, timeout=10)
        with contextlib.suppress(AssertionError):
            self._cluster.remove_node(node, allow_graceful=False)
        return f"{len(victims)} processes"

    def kill_worker(self, rng: random.Random) -> str | None:
        """SIGKILL one process that runs a task or an actor; its title, or None where none is at work."""
        busy = sorted(self._workers(), key=lambda found: found[0].pid)
        if not busy:
            return None
        process, title = rng.choice(busy)
        return title if _kill(process) else None

    def workers(self) -> list[str]:
        """Titles of all processes at work."""
        return [title for _, title in self._workers()]

    def _workers(self) -> Iterator[tuple[psutil.Process, str]]:
        for node in list(self._cluster.worker_nodes):
            for raylet in _raylet(node):
                for process in raylet.children():
                    with contextlib.suppress(psutil.Error):
                        title = " ".join(process.cmdline()).strip()
                        if title.startswith("ray::") and not title.startswith(_HOUSEHOLD):
                            yield process, title


def _raylet(node: Any) -> list[psutil.Process]:
    found = []
    for info in node.all_processes.get("raylet", []):
        with contextlib.suppress(psutil.Error):
            found.append(psutil.Process(info.process.pid))
    return found


def _kill(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        process.send_signal(signal.SIGKILL)
        return True
    return False
