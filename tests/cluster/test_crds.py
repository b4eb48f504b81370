"""The manifests against KubeRay's own CRD files, where ``JOCR_KUBERAY_CRDS`` names their folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.manifests import of_ray
from tests.cluster.schemas import crd_problems

CRD = {
    "spec": {
        "group": "ray.io",
        "names": {"kind": "RayJob"},
        "versions": [
            {"name": "v1alpha1", "schema": {"openAPIV3Schema": {"type": "object"}}},
            {"name": "v1", "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                    "spec": {"type": "object", "required": ["entrypoint"], "properties": {
                        "entrypoint": {"type": "string"},
                        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {}},
                        "port": {"type": "string", "x-kubernetes-int-or-string": True},
                        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    }},
                },
            }}},
        ],
    }
}  # fmt: skip
JOB: dict[str, Any] = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "x", "labels": {}}}
SPEC: dict[str, Any] = {"entrypoint": "x", "free": {"any": 1}, "port": 8080, "labels": {"a": "b"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ray.io_rayjobs.yaml").write_text(yaml.safe_dump(CRD), "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("change", "named"),
    [({"entrypont": "x"}, "entrypont"), ({"entrypoint": 3}, "entrypoint"), ({"labels": {"a": 1}}, "labels")],
)
def test_a_typo_is_refused(folder: Path, change: dict[str, Any], named: str) -> None:
    assert any(named in problem for problem in crd_problems({**JOB, "spec": {**SPEC, **change}}, folder))


def test_what_the_file_allows_is_accepted(folder: Path) -> None:
    assert crd_problems({**JOB, "spec": SPEC}, folder) == []
    with pytest.raises(LookupError, match="RayCluster"):
        crd_problems({**JOB, "kind": "RayCluster", "spec": SPEC}, folder)


@pytest.mark.skipif("JOCR_KUBERAY_CRDS" not in os.environ, reason="JOCR_KUBERAY_CRDS names no folder of CRD files")
@pytest.mark.parametrize(("name", "document"), of_ray(), ids=[name for name, _ in of_ray()])
def test_kuberays_own_files_accept_it(name: str, document: dict[str, Any]) -> None:
    assert crd_problems(document, Path(os.environ["JOCR_KUBERAY_CRDS"])) == []
