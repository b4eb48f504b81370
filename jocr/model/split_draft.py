"""A checkpoint's draft head as a directory of its own: what engines that load drafts separately (vLLM) ask for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch

from jocr.errors import CheckpointError
from jocr.model.config import OcrConfig
from jocr.model.hub import revision
from jocr.model.shards import SINGLE, Stored, read_index, read_into, write_file
from jocr.model.weights import DUPLICATES
from jocr.storage import atomic_directory

ARCHITECTURE = "EagleFastMTPForCausalLM"  # vLLM leaves the name of a draft as it is where it begins with Eagle
HEAD = "mtp_module.heads.0."
NORM = "model.norm.weight"
OWN_NORM = "mtp_module.shared_head.norm.weight"


def cache_root() -> Path:
    """``$JOCR_CACHE``, else ``$XDG_CACHE_HOME/jocr``, else ``~/.cache/jocr``."""
    if root := os.environ.get("JOCR_CACHE"):
        return Path(root)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jocr"


def prepare_draft(checkpoint: str | Path, cache: str | Path | None = None) -> Path:
    """Directory of the draft head and the final norm (about 72 MB at the published size), made on first use.

    It is named by the checkpoint's revision and appears whole or not at all, so any number of processes may ask.

    Raises:
        CheckpointError: no draft head, or one that does not share the verifier's embedding and head.
    """
    checkpoint = Path(checkpoint)
    cfg = OcrConfig.load(checkpoint)
    if not cfg.mtp_num_heads:
        raise CheckpointError(f"{checkpoint} has no draft head: decode with depth 0")
    target = Path(cache or cache_root()) / "drafts" / revision(checkpoint)
    if not (target / "config.json").exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        tensors = _draft_tensors(checkpoint)
        with atomic_directory(target, replace=True) as new:
            write_file(tensors, new / SINGLE)
            write_config(cfg, str(tensors[NORM].dtype), new)
    return target


def write_config(cfg: OcrConfig, dtype: str, directory: Path) -> None:
    """Only ``config.json``: all that an engine with random weights needs."""
    text = json.dumps(draft_config(cfg, dtype), indent=2) + "\n"
    (directory / "config.json").write_text(text, encoding="utf-8")


def draft_config(cfg: OcrConfig, dtype: str) -> dict[str, Any]:
    """A flat config: the head's block is a Llama layer."""
    text = cfg.text
    return {
        "architectures": [ARCHITECTURE],
        "model_type": "llama",
        "num_hidden_layers": 1,
        "hidden_size": text.hidden_size,
        "intermediate_size": text.intermediate_size,
        "num_attention_heads": text.num_attention_heads,
        "num_key_value_heads": text.num_key_value_heads,
        "head_dim": text.head_dim,
        "vocab_size": text.vocab_size,
        "rms_norm_eps": text.rms_norm_eps,
        "max_position_embeddings": text.max_position_embeddings,
        "rope_parameters": {"rope_type": "default", "rope_theta": text.rope_theta},
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": text.bos_token_id,
        "eos_token_id": text.eos_token_id,
        "dtype": dtype.removeprefix("torch."),
    }


def _draft_tensors(checkpoint: Path) -> dict[str, torch.Tensor]:
    stored = read_index(checkpoint)
    names = [n for n in stored if n.startswith(HEAD) and "shared_head" not in n]
    if not names or NORM not in stored:
        raise CheckpointError(f"{checkpoint} lacks {HEAD}* or {NORM}")
    for name in stored:
        original = next((o for pattern, o in DUPLICATES if pattern.fullmatch(name)), None)
        if original in stored and original != NORM and not _same(stored[name], stored[original]):
            raise CheckpointError(
                f"{name} differs from {original}: this engine's draft shares the verifier's; use --engine torch"
            )
    tensors = {name: _read(stored[name]) for name in sorted(names)}
    tensors[NORM] = _read(stored.get(OWN_NORM, stored[NORM]))
    return tensors


def _read(stored: Stored) -> torch.Tensor:
    tensor = torch.empty(stored.shape, dtype=stored.dtype)
    read_into(stored, tensor)
    return tensor


def _same(a: Stored, b: Stored) -> bool:
    return a.shape == b.shape and torch.equal(_read(a).float(), _read(b).float())
