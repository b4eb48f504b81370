"""The Dockerfile names nothing that is not there."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch

import pytest

from tests.cluster.dockerfile import image_targets, read
from tests.cluster.manifests import CLUSTER, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TARGETS = pytest.mark.parametrize("target", ["cpu", "gpu"])


def copied(target: str) -> list[tuple[str | None, list[str]]]:
    """(stage or None for the build context, sources) of every COPY."""
    found = []
    for word, words in read().line(target):
        if word == "COPY":
            flags = dict(re.findall(r"--(\w+)=(\S+)", words))
            found.append((flags.get("from"), re.sub(r"--\S+ ", "", words).split()[:-1]))
    return found


def test_the_build_commands_name_every_target() -> None:
    assert sorted(image_targets().values()) == ["cpu", "gpu"]
    assert set(image_targets().values()) <= set(read().stages)


@TARGETS
def test_every_source_of_a_copy_exists_and_is_not_ignored(target: str) -> None:
    rules = [line for line in (CLUSTER / "Dockerfile.dockerignore").read_text("utf-8").splitlines() if line[:1] != "#"]
    assert rules[0] == "*"
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    assert all((ROOT / name).exists() for name in allowed)
    builder = next(stage for stage, _ in copied(target) if stage)
    for stage, sources in (*copied(target), *copied(builder)):
        assert stage is None or stage in read().stages
        for source in sources if stage is None else []:
            assert (ROOT / source).exists(), source
            assert any(fnmatch(source, rule) for rule in allowed), source


@TARGETS
def test_extras_and_pins_are_those_of_the_project(target: str) -> None:
    steps = [words for word, words in read().line(f"build-{target}") if word == "RUN" and "pip install" in words]
    extras = {name for words in steps for group in re.findall(r"\.\[([^\]]+)\]", words) for name in group.split(",")}
    assert extras == {"formats", "cluster"} | ({"vllm"} if target == "gpu" else set())
    assert extras <= set(PROJECT["optional-dependencies"])
    pinned = f"=={read().arguments['RAY']}"
    assert any(line == f"ray[data]{pinned}" for line in PROJECT["dependencies"])
    assert PROJECT["optional-dependencies"]["cluster"] == [f"ray[default]{pinned}"]
    assert any("ray[data,default]==${RAY}" in words for words in steps)
    python = read().arguments["PYTHON"]
    assert python.startswith("3.11")


def test_what_is_pinned_is_within_the_projects_ranges() -> None:
    from packaging.requirements import Requirement

    wanted = {r.name: r for r in map(Requirement, PROJECT["dependencies"])}
    assert read().arguments["TORCH"] in wanted["torch"].specifier
    (vllm,) = PROJECT["optional-dependencies"]["vllm"]
    assert read().arguments["VLLM"] in Requirement(vllm).specifier


@TARGETS
def test_the_image_runs_as_a_user_with_what_pods_need(target: str) -> None:
    steps = read().line(target)
    assert steps[-1] == ("USER", "ray")
    installed = " ".join(words for word, words in steps if word == "RUN" and "apt-get install" in words)
    assert {"tini", "wget", "fonts-noto-cjk", "ca-certificates"} <= set(installed.split())
    assert ("ENTRYPOINT", '["tini", "--"]') in steps
    assert any("profile.d" in words for word, words in steps if word == "RUN")  # a login shell finds the programs too
