"""Every manifest is valid, asks for what exists, and does not contradict itself."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from jocr.config import ParseRecipe, load
from jocr.errors import ConfigError
from tests.cluster.dockerfile import image_targets, read
from tests.cluster.manifests import (
    CLUSTER,
    ELASTIC,
    QUEUE,
    ROOT,
    Entry,
    cluster_spec,
    container,
    contradictions,
    documents,
    groups,
    of_ray,
    quantity,
    ray_jobs,
)
from tests.cluster.schemas import problems

RAY = pytest.mark.parametrize(("name", "document"), of_ray(), ids=[name for name, _ in of_ray()])
JOBS = pytest.mark.parametrize(("name", "job"), ray_jobs(), ids=[name for name, _ in ray_jobs()])


def test_all_that_is_promised_is_there() -> None:
    kinds = {(name, document["kind"]) for name, document in documents()}
    assert {("raycluster.yaml", "RayCluster"), ("rayjob-parse-gke.yaml", "RayJob"), ("queues.yaml", "LocalQueue"),
            ("rayjob-parse-aws.yaml", "RayJob"), ("rayjob-inventory.yaml", "RayJob")} <= kinds  # fmt: skip


@RAY
def test_kuberay_accepts_it(name: str, document: dict[str, Any]) -> None:
    assert problems(document) == []


def test_kubernetes_accepts_the_metadata_of_the_rest() -> None:
    for _, document in documents():
        assert not problems(document["metadata"], "ObjectMeta")


@JOBS
def test_the_job_and_its_recipe_exist_and_take_the_settings(name: str, job: dict[str, Any]) -> None:
    entry = Entry.parse(job["spec"]["entrypoint"])
    spec = importlib.util.find_spec(entry.module)
    assert spec is not None
    assert spec.origin is not None
    assert "__main__" in Path(spec.origin).read_text("utf-8")
    assert (ROOT / entry.recipe).is_file()
    assert entry.folder == read().workdir
    recipe = load(ParseRecipe, ROOT / entry.recipe, entry.sets)
    assert all(place.startswith("s3://example-") for place in (*recipe.sources, recipe.out))
    with pytest.raises(ConfigError, match="spool_gb"):
        load(ParseRecipe, ROOT / entry.recipe, [*entry.sets, "job.spool_bg=1"])


@JOBS
def test_what_the_recipe_asks_for_fits_the_workers(name: str, job: dict[str, Any]) -> None:
    entry = Entry.parse(job["spec"]["entrypoint"])
    recipe = load(ParseRecipe, ROOT / entry.recipe, entry.sets)
    for group in groups(job)[1:]:
        volumes = {v["name"]: v for v in group["template"]["spec"]["volumes"]}
        room = quantity(volumes["spool"]["emptyDir"]["sizeLimit"])
        assert recipe.job.spool_gb * 1e9 < room
        assert room <= quantity(container(group)["resources"]["requests"]["ephemeral-storage"])
    decoding = [group for group in groups(job)[1:] if "nvidia.com/gpu" in container(group)["resources"]["limits"]]
    if entry.module != "jobs.parse":
        assert not decoding
        return
    assert recipe.ray.decoder_gpus == 1
    assert recipe.ray.decoder_cpus <= min(quantity(container(g)["resources"]["limits"]["cpu"]) for g in decoding)
    assert recipe.ray.decoders <= (recipe.ray.max_decoders or 0) <= sum(g["maxReplicas"] for g in decoding)


@RAY
def test_resources_are_sound(name: str, document: dict[str, Any]) -> None:
    head, *workers = groups(document)
    assert head["rayStartParams"]["num-cpus"] == "0"
    for group in (head, *workers):
        resources = container(group)["resources"]
        assert set(resources["requests"]) == set(resources["limits"])
        for what, least in resources["requests"].items():
            assert quantity(least) <= quantity(resources["limits"][what])
        assert container(group)["ports"][-1] == {"containerPort": 8080, "name": "metrics"}
    for group in workers:
        limits = container(group)["resources"]["limits"]
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
        assert limits.get("nvidia.com/gpu", 0) == (1 if group["groupName"] == "l4" else 0)
        shared = next(v for v in group["template"]["spec"]["volumes"] if v["name"] == "shm")
        assert quantity(shared["emptyDir"]["sizeLimit"]) < quantity(limits["memory"])


@RAY
def test_workers_are_spot_and_the_head_is_not(name: str, document: dict[str, Any]) -> None:
    head, *workers = (group["template"]["spec"]["nodeSelector"] for group in groups(document))
    spot = {"cloud.google.com/gke-spot": "true"}, {"eks.amazonaws.com/capacityType": "SPOT"}
    assert all(any(mark.items() <= place.items() for mark in spot) for place in workers)
    lasting = {"cloud.google.com/gke-provisioning": "standard"}, {"eks.amazonaws.com/capacityType": "ON_DEMAND"}
    assert any(mark.items() <= head.items() for mark in lasting)


@RAY
def test_pods_run_as_the_images_user_with_the_accounts_rights(name: str, document: dict[str, Any]) -> None:
    (made,) = {words for word, words in read().line("gpu") if word == "RUN" and "useradd" in words}
    accounts = [d["metadata"]["name"] for _, d in documents() if d["kind"] == "ServiceAccount"]
    for group in groups(document):
        pod = group["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert f"--uid {pod['securityContext']['runAsUser']} ray" in made
        assert pod["serviceAccountName"] in accounts
        names = {variable["name"] for variable in container(group)["env"]}
        assert not any(word in name for name in names for word in ("SECRET", "KEY", "TOKEN"))


@RAY
def test_the_autoscaler_is_the_second(name: str, document: dict[str, Any]) -> None:
    spec = cluster_spec(document)
    assert spec["enableInTreeAutoscaling"] is True
    assert spec["autoscalerOptions"]["version"] == "v2"
    assert spec["rayVersion"] == read().arguments["RAY"]
    assert all(group["template"]["spec"]["restartPolicy"] == "Never" for group in groups(document))


@RAY
def test_images_are_targets_of_the_dockerfile(name: str, document: dict[str, Any]) -> None:
    for group in groups(document):
        limits = container(group)["resources"]["limits"]
        target = image_targets()[container(group)["image"]]
        assert target == ("gpu" if "nvidia.com/gpu" in limits else "cpu")


@JOBS
def test_kuberay_and_kueue_would_take_it(name: str, job: dict[str, Any]) -> None:
    assert contradictions(job) == []
    assert job["spec"]["backoffLimit"] > 0
    queued = QUEUE in job["metadata"].get("labels", {})
    assert queued == ("deletionStrategy" not in job["spec"])
    assert queued == job["spec"].get("suspend", False)


@pytest.mark.parametrize("change", [
    lambda d: d["spec"].update(shutdownAfterJobFinishes=False),
    lambda d: d["spec"].update(deletionStrategy={"deletionRules": [{"policy": "DeleteNone"}]}),
    lambda d: d["metadata"]["annotations"].pop(ELASTIC),
    lambda d: groups(d)[1].update(groupName="head"),
    lambda d: d["spec"].update(submissionMode="Http"),
])  # fmt: skip
def test_contradictions_are_found(change: Callable[[dict[str, Any]], object]) -> None:
    job = copy.deepcopy(dict(ray_jobs())["rayjob-parse-gke.yaml"])
    change(job)
    assert contradictions(job)


def test_the_queue_named_by_jobs_exists_and_has_room_for_all_workers() -> None:
    queues = list(yaml.safe_load_all((CLUSTER / "queues.yaml").read_text("utf-8")))
    local = {d["metadata"]["name"]: d["spec"]["clusterQueue"] for d in queues if d["kind"] == "LocalQueue"}
    cluster = {d["metadata"]["name"]: d["spec"] for d in queues if d["kind"] == "ClusterQueue"}
    flavors = {d["metadata"]["name"] for d in queues if d["kind"] == "ResourceFlavor"}
    for name, job in ray_jobs():
        if (queue := job["metadata"].get("labels", {}).get(QUEUE)) is None:
            continue
        (group,) = cluster[local[queue]]["resourceGroups"]
        assert {f["name"] for f in group["flavors"]} == flavors
        quota = {f["name"]: {r["name"]: quantity(r["nominalQuota"]) for r in f["resources"]} for f in group["flavors"]}
        for workers in groups(job)[1:]:
            requests = container(workers)["resources"]["requests"]
            assert set(requests) <= set(group["coveredResources"]), name
            room = quota["jocr-l4" if "nvidia.com/gpu" in requests else "jocr-cpu"]
            assert all(quantity(v) * workers["maxReplicas"] <= room[what] for what, v in requests.items()), name
