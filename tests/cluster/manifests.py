"""The files of ``cluster/`` as tests read them."""

from __future__ import annotations

import functools
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CLUSTER = ROOT / "cluster"
RAY_KINDS = ("RayCluster", "RayJob", "RayService")
QUEUE = "kueue.x-k8s.io/queue-name"
ELASTIC = "kueue.x-k8s.io/elastic-job"
UNITS = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
UNITS |= {f"{unit}i": 1024.0**power for power, unit in enumerate("KMGT", 1)}
Document = dict[str, Any]


@functools.cache
def documents() -> tuple[tuple[str, Document], ...]:
    """(file name, document) of everything in ``cluster/*.yaml``; to be copied before it is changed."""
    return tuple(
        (path.name, document)
        for path in sorted(CLUSTER.glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text("utf-8"))
    )


def of_ray() -> list[tuple[str, Document]]:
    return [(name, document) for name, document in documents() if document["kind"] in RAY_KINDS]


def ray_jobs() -> list[tuple[str, Document]]:
    return [(name, document) for name, document in of_ray() if document["kind"] == "RayJob"]


def cluster_spec(document: Document) -> Document:
    spec: Document = document["spec"]
    return spec if document["kind"] == "RayCluster" else spec["rayClusterSpec"]


def groups(document: Document) -> list[Document]:
    """Head first, then the worker groups."""
    spec = cluster_spec(document)
    return [spec["headGroupSpec"], *spec.get("workerGroupSpecs", [])]


def container(group: Document) -> Document:
    found: Document = group["template"]["spec"]["containers"][0]
    return found


def quantity(value: str | int) -> float:
    """``"500m"`` -> 0.5, ``"8Gi"`` -> 8 * 1024 ** 3."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-zA-Z]*)", str(value))
    assert match, value
    return float(match[1]) * UNITS[match[2]]


@dataclass(frozen=True)
class Entry:
    """``cd FOLDER && python -m MODULE RECIPE --set KEY=VALUE ...``."""

    folder: str
    module: str
    recipe: str
    sets: tuple[str, ...]

    @classmethod
    def parse(cls, command: str) -> Entry:
        words = shlex.split(command)
        assert [words[0], *words[2:5]] == ["cd", "&&", "python", "-m"], command
        flags, values = words[7::2], words[8::2]
        assert set(flags) <= {"--set"}, command
        assert len(flags) == len(values), command
        return cls(words[1], words[5], words[6], tuple(values))


def contradictions(job: Document) -> list[str]:
    """What KubeRay's controller and Kueue's webhook would refuse although every field is right by itself."""
    spec, metadata = job["spec"], job["metadata"]
    rules = bool(spec.get("deletionStrategy", {}).get("deletionRules"))
    shutdown = spec.get("shutdownAfterJobFinishes", False)
    found = []
    if rules and (shutdown or spec.get("ttlSecondsAfterFinished")):
        found.append("deletionRules exclude shutdownAfterJobFinishes and ttlSecondsAfterFinished")
    if spec.get("ttlSecondsAfterFinished") and not shutdown:
        found.append("ttlSecondsAfterFinished needs shutdownAfterJobFinishes")
    if spec.get("suspend") and not shutdown:
        found.append("suspend needs shutdownAfterJobFinishes")
    if spec.get("submissionMode", "K8sJobMode") not in ("K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"):
        found.append("no such submissionMode")
    if QUEUE in metadata.get("labels", {}):
        workers = groups(job)[1:]
        elastic = metadata.get("annotations", {}).get(ELASTIC) == "true"
        if not shutdown:
            found.append("Kueue needs shutdownAfterJobFinishes")
        if cluster_spec(job).get("enableInTreeAutoscaling") and not elastic:
            found.append("Kueue refuses autoscaling without the annotation of an elastic job")
        if len(workers) > 7 or any(group["groupName"] == "head" for group in workers):
            found.append("Kueue takes at most seven worker groups, none of them named head")
    return found
