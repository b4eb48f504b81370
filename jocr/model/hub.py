"""Where a checkpoint lies (package data, a path, the local Hugging Face cache) and what its content is called."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from functools import lru_cache
from importlib import resources
from pathlib import Path

from jocr.errors import CheckpointError
from jocr.model.shards import weight_files

LICENCES = {
    "jinaai/jina-ocr-v1": "The weights of jinaai/jina-ocr-v1 are licensed CC BY-NC 4.0: no commercial use.",
}
WANTED = ("*.json", "*.safetensors")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def resolve_checkpoint(name: str) -> Path:
    """``nano`` (shipped), a directory, or a hub id: looked up in the local cache first, then downloaded.

    The licence of weights that have a restrictive one is printed to stderr.

    Raises:
        CheckpointError: nothing of that name; the message says what was tried.
    """
    if name == "nano":
        path = Path(str(resources.files("jocr"))) / "data" / "nano"
        if not (path / "config.json").exists():
            raise CheckpointError(f"this installation lacks the embedded model (expected at {path})")
        return path
    path = Path(name).expanduser()
    if name and path.is_dir():
        return path
    if name and path.exists():
        raise CheckpointError(f"{name} is a file; a checkpoint is a directory with config.json and safetensors")
    if not _HUB_ID.fullmatch(name):
        raise CheckpointError(f"no checkpoint {name!r}: neither 'nano', a directory, nor a hub id like owner/model")
    notice = LICENCES.get(name.lower())
    if notice:
        print(notice, file=sys.stderr)
    return _snapshot(name)


def _snapshot(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        path = Path(snapshot_download(name, local_files_only=True, allow_patterns=list(WANTED)))
        weight_files(path)  # a cache may hold only part of a repository
        return path
    except Exception as error:  # not cached, or incompletely: the hub raises many kinds
        cached = error
    try:
        return Path(snapshot_download(name, allow_patterns=list(WANTED)))
    except Exception as error:
        detail = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(
            f"{name} is not complete in the local Hugging Face cache ({type(cached).__name__}) "
            f"and cannot be downloaded: {detail}"
        ) from error


def revision(directory: str | Path) -> str:
    """16 hex digits of the content of config, processor config, tokenizer and weights: same bytes, same revision.

    Read once per process and file state. Files of a Hugging Face cache are named by their SHA-256 and not read.
    """
    directory = Path(directory)
    names = ["config.json", "processor_config.json", "tokenizer.json"]
    files = [*(directory / n for n in names if (directory / n).exists()), *weight_files(directory)]
    parts = {}
    for path in files:
        stat = path.stat()
        parts[path.name] = _digest(path, stat.st_size, stat.st_mtime_ns)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


@lru_cache(maxsize=256)
def _digest(path: Path, size: int, stamp: int) -> str:
    blob = path.resolve()
    if path.is_symlink() and blob.parent.name == "blobs" and _SHA256.fullmatch(blob.name):
        return blob.name
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
