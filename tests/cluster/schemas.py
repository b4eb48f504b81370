"""Offline validation: KubeRay's fields and the Kubernetes types they refer to, as one JSON schema."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

DATA = Path(__file__).parent / "data"
Document = dict[str, Any]


@functools.cache
def definitions() -> Document:
    merged: Document = {}
    for name in ("kubernetes-1.33.json.gz", "kuberay-1.7.json.gz"):
        merged |= json.loads(gzip.decompress((DATA / name).read_bytes()))
    return merged


@functools.cache
def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": definitions()})


def problems(document: Document, kind: str | None = None) -> list[str]:
    """What is wrong with a resource, each with its place; empty where it would be accepted."""
    errors = validator(kind or document["kind"]).iter_errors(document)
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]


def closed(schema: Any) -> Any:
    """A CRD's schema in which no object takes a field it does not name; the API server would drop those in silence."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
    return made


def crd_problems(document: Document, crds: Path) -> list[str]:
    """As ``problems``, by the CRD files in a folder (``helm-chart/kuberay-operator/crds`` of a KubeRay release).

    Raises:
        LookupError: no file there defines the document's kind and version.
    """
    group, _, version = document["apiVersion"].partition("/")
    for path in sorted(crds.glob("*.yaml")):
        spec = yaml.safe_load(path.read_text("utf-8"))["spec"]
        if (spec["group"], spec["names"]["kind"]) == (group, document["kind"]):
            for each in spec["versions"]:
                if each["name"] == version:
                    schema = closed(each["schema"]["openAPIV3Schema"])
                    schema["properties"]["metadata"] = {"type": "object"}
                    errors = Draft202012Validator(schema).iter_errors(document)
                    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]
    raise LookupError(f"no CRD of {document['apiVersion']} {document['kind']} in {crds}")
