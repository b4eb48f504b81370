"""``cluster/Dockerfile`` taken apart: there is no Docker where the tests run."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from tests.cluster.manifests import CLUSTER


@dataclass
class Stage:
    """One ``FROM``: its name, what it builds on, and its instructions with their words."""

    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Dockerfile:
    stages: dict[str, Stage]
    arguments: dict[str, str]

    def line(self, target: str) -> list[tuple[str, str]]:
        """Instructions of a stage and of all it builds on, the first one first."""
        stage = self.stages.get(target)
        return [] if stage is None else [*self.line(stage.base), *stage.steps]

    @property
    def workdir(self) -> str:
        return [words for word, words in self.line("gpu") if word == "WORKDIR"][-1]


@functools.cache
def read() -> Dockerfile:
    text = (CLUSTER / "Dockerfile").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    stages: dict[str, Stage] = {}
    arguments: dict[str, str] = {}
    current: Stage | None = None
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        word, _, words = line.strip().partition(" ")
        if word == "FROM":
            base, _, name = words.partition(" AS ")
            current = stages[name] = Stage(name, base)
        elif word == "ARG":
            name, _, value = words.partition("=")
            assert arguments.setdefault(name, value) == value, f"two values of {name}"
        elif word:
            assert current is not None, line
            current.steps.append((word, words))
    return Dockerfile(stages, arguments)


@functools.cache
def image_targets() -> dict[str, str]:
    """Image -> target, from the build commands at the top of the file."""
    text = (CLUSTER / "Dockerfile").read_text("utf-8")
    return {image: target for target, image in re.findall(r"--target (\S+) -t (\S+) \.", text)}
