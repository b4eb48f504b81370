"""Where a result comes from: commit, versions, hardware and recipe, as a dict that is written beside every result."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pyarrow", "pypdfium2", "pillow", "ray", "vllm", "numba")


def collect(recipe: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A JSON-ready dict. ``recipe`` is stored as given, without its passwords; ``more`` (model, revision, prompt_hash
    ...) is added as is."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "jocr": _version("jocr"),
        "commit": commit(),
        "python": platform.python_version(),
        "versions": {name: v for name in PACKAGES if (v := _version(name)) is not None},
        "hardware": hardware(),
        "recipe": None if recipe is None else without_secrets(recipe),
        **more,
    }


def text_hash(text: str) -> str:
    """First 16 hex digits of the SHA-256 of ``text``: the prompt hash of a page row."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def commit() -> str | None:
    """Commit of the source tree in use, with ``+dirty`` where tracked files changed; None outside git."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    head = _git(root, "rev-parse", "HEAD")
    if head is None:
        return None
    return head + ("+dirty" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")


def hardware() -> dict[str, Any]:
    """CPU model, cores this process may use, memory in bytes, and CUDA device name where torch is already loaded."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: dict[str, Any] = {"platform": platform.platform(), "cpu": _cpu_model(), "cores": cores, "memory": _memory()}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        found["cuda"] = torch.cuda.get_device_name(0)
    return found


def without_secrets(data: Mapping[str, Any]) -> dict[str, Any]:
    """A copy in which every value under a key that names a password, token or secret is ``"***"`` (None stays)."""
    clean: dict[str, Any] = {}
    for key, value in data.items():
        if key == "passwords" and isinstance(value, Mapping):
            clean[key] = dict.fromkeys(value, "***")
        elif isinstance(value, Mapping):
            clean[key] = without_secrets(value)
        elif value is not None and key in {"password", "secret", "token", "api_key"}:
            clean[key] = "***"
        else:
            clean[key] = value
    return clean


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _git(root: Path, *args: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *args], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
