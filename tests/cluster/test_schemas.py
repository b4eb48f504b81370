"""What the schemas refuse; that they accept something is shown by the manifests."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.manifests import cluster_spec, container, groups, ray_jobs
from tests.cluster.schemas import definitions, problems

Change = Callable[[dict[str, Any]], object]


def job(name: str = "rayjob-parse-unqueued.yaml") -> dict[str, Any]:
    return copy.deepcopy(dict(ray_jobs())[name])


def rename(document: dict[str, Any], old: str, new: str) -> None:
    document[new] = document.pop(old)


TYPOS: dict[str, Change] = {
    "entrypont": lambda d: rename(d["spec"], "entrypoint", "entrypont"),
    "replcias": lambda d: rename(groups(d)[1], "replicas", "replcias"),
    "idleTimeout": lambda d: rename(cluster_spec(d)["autoscalerOptions"], "idleTimeoutSeconds", "idleTimeout"),
    "nodeSelecter": lambda d: rename(groups(d)[1]["template"]["spec"], "nodeSelector", "nodeSelecter"),
    "volumeMount": lambda d: rename(container(groups(d)[1]), "volumeMounts", "volumeMount"),
    "opertor": lambda d: rename(groups(d)[1]["template"]["spec"]["tolerations"][0], "operator", "opertor"),
    "sizelimit": lambda d: rename(groups(d)[1]["template"]["spec"]["volumes"][0]["emptyDir"], "sizeLimit", "sizelimit"),
    "comand": lambda d: rename(container(groups(d)[1])["lifecycle"]["preStop"]["exec"], "command", "comand"),
    "ttlSecond": lambda d: rename(d["spec"]["deletionStrategy"]["deletionRules"][0]["condition"], "ttlSeconds",
                                  "ttlSecond"),
}  # fmt: skip
WRONG: dict[str, Change] = {
    "replicas": lambda d: groups(d)[1].update(replicas="two"),
    "version": lambda d: cluster_spec(d)["autoscalerOptions"].update(version="v3"),
    "rayStartParams.num-cpus": lambda d: groups(d)[0]["rayStartParams"].update({"num-cpus": 0}),
    "memory": lambda d: container(groups(d)[1])["resources"]["limits"].update(memory="8 Gigs"),
    "headGroupSpec": lambda d: cluster_spec(d).pop("headGroupSpec"),
    "template": lambda d: groups(d)[1].pop("template"),
    "ttlSeconds": lambda d: d["spec"]["deletionStrategy"]["deletionRules"][0]["condition"].update(ttlSeconds=-1),
    "policy": lambda d: d["spec"]["deletionStrategy"]["deletionRules"][0].update(policy="DeleteAll"),
    "condition": lambda d: d["spec"]["deletionStrategy"]["deletionRules"][0]["condition"].update(
        jobDeploymentStatus="Failed"),
    "deletionStrategy": lambda d: d["spec"]["deletionStrategy"].update(onSuccess={"policy": "DeleteNone"}),
    "deletionRules": lambda d: d["spec"]["deletionStrategy"].update(deletionRules=[]),
    "apiVersion": lambda d: d.update(apiVersion="ray.io/v1alpha1"),
}  # fmt: skip


@pytest.mark.parametrize("typo", TYPOS)
def test_a_typo_is_refused_however_deep_it_lies(typo: str) -> None:
    document = job()
    TYPOS[typo](document)
    assert any(typo in problem for problem in problems(document)), problems(document)


@pytest.mark.parametrize("place", WRONG)
def test_a_wrong_value_is_refused_at_its_place(place: str) -> None:
    document = job()
    WRONG[place](document)
    assert any(place in problem for problem in problems(document)), problems(document)


def test_a_quantity_is_a_number_or_a_string() -> None:
    for value in (1, "1", "500m", "1.5", "8Gi"):
        document = job()
        container(groups(document)[1])["resources"]["limits"]["nvidia.com/gpu"] = value
        assert not problems(document)


def test_a_service_is_checked_too() -> None:
    service = {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": "jocr"}}
    service["spec"] = {"serveConfigV2": "applications: []", "rayClusterConfig": cluster_spec(job())}
    assert not problems(service)
    assert problems({**service, "spec": {**service["spec"], "serveConfigv2": ""}})


def test_no_object_of_the_schemas_takes_fields_it_does_not_name() -> None:
    def walk(node: Any) -> int:
        if isinstance(node, list):
            return sum(map(walk, node))
        if not isinstance(node, dict):
            return 0
        named = isinstance(node.get("properties"), dict) and "$ref" not in node
        assert not named or node["additionalProperties"] is False, node
        return named + sum(map(walk, node.values()))

    assert walk(definitions()) > 130
