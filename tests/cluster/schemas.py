"""Offline validation: KubeRay's fields and the Kubernetes types they refer to, as one JSON schema."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path
from typing import Any

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
