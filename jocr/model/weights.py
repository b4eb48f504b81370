"""A checkpoint directory to a model and back, in the published file layout. Safetensors only, never pickle."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jocr.errors import CheckpointError
from jocr.model.config import OcrConfig
from jocr.model.hub import resolve_checkpoint, revision
from jocr.model.layers import RMSNorm
from jocr.model.ocr import OcrModel
from jocr.model.prompts import CHAT_TEMPLATE
from jocr.model.shards import CHUNK, Stored, read_index, read_into, write_shards
from jocr.model.tokenizer import IMAGE, PAD, Tokenizer, save_tokenizer
from jocr.pages.tiles import ProcessorConfig
from jocr.storage import atomic_directory

__all__ = ["load_model", "resolve_checkpoint", "revision", "save_checkpoint"]

log = logging.getLogger(__name__)

DUPLICATES = (
    (re.compile(r"mtp_embed_tokens\.weight"), "model.embed_tokens.weight"),
    (re.compile(r"mtp_module\.(?:.*\.)?shared_head(?:\..*)?\.norm\.weight"), "model.norm.weight"),
    (re.compile(r"mtp_module\.(?:.*\.)?shared_head(?:\..*)?\.weight"), "lm_head.weight"),
)  # optional tensor -> the one it repeats
OWN = {
    "mtp_norm.weight": "mtp_module.shared_head.norm.weight",
    "mtp_lm_head.weight": "mtp_module.shared_head.head.weight",
}  # the draft head's own tensors in the model -> in a file


def load_model(directory: str | Path, *, dtype: torch.dtype = torch.float32, device: str = "cpu") -> OcrModel:
    """Build from ``config.json`` on the meta device, then stream every tensor into its place.

    Peak memory is the model in ``dtype`` plus one chunk of 16 MiB. Optional copies of the verifier's tensors
    (``mtp_embed_tokens.*``, ``mtp_module.*shared_head*``) are dropped where they equal the originals; where they do
    not, the draft head uses them (``OcrModel.draft_embed``, ``draft`` and ``draft_logits``). A checkpoint
    whose config names no draft head (``mtp_num_heads`` 0 or absent) loads without one.

    Raises:
        CheckpointError: unreadable files, or tensors missing, unexpected or of another shape: all are listed.
    """
    directory = Path(directory)
    cfg = OcrConfig.load(directory)
    if not cfg.mtp_num_heads:
        log.warning("%s has no draft head: decoding will be plain", directory)
    stored = read_index(directory)
    duplicates = {name: original for name in stored if (original := _original(name)) is not None}
    with torch.device("meta"):
        model = OcrModel(cfg)
    model = model.to(dtype).to_empty(device=device).eval()
    state = model.state_dict()
    _check(directory, {name: tuple(t.shape) for name, t in state.items()}, stored, duplicates)
    with torch.no_grad():
        for name, target in state.items():
            read_into(stored[name], target)
        for name, original in duplicates.items():
            if cfg.mtp_num_heads and not _identical(stored[name], state[original]):
                log.warning("%s differs from %s: the draft head uses it", name, original)
                _attach(model, original, stored[name], state[original])
    return model


def save_checkpoint(model: OcrModel, tokenizer: Tokenizer, processor: ProcessorConfig, directory: str | Path,
                    shard_bytes: int = 5 << 30) -> None:  # fmt: skip
    """Write config, processor config, tokenizer and weights so that ``directory`` appears complete or not at all.

    An older checkpoint at ``directory`` is replaced.

    Raises:
        CheckpointError: ``directory`` exists and is neither empty nor a checkpoint.
    """
    directory = Path(directory)
    if directory.exists() and any(directory.iterdir()) and not (directory / "config.json").exists():
        raise CheckpointError(f"{directory} exists and is no checkpoint: nothing was written")
    with atomic_directory(directory, replace=True) as new:
        _write(model, tokenizer, processor, new, shard_bytes)


def _write(model: OcrModel, tokenizer: Tokenizer, processor: ProcessorConfig, to: Path, shard_bytes: int) -> None:
    state = {OWN.get(name, name): tensor for name, tensor in model.state_dict().items()}
    config = model.cfg.to_dict() | {"torch_dtype": str(model.lm_head.weight.dtype).removeprefix("torch.")}
    text = model.cfg.text
    generation = {"bos_token_id": text.bos_token_id, "eos_token_id": text.eos_token_id,
                  "pad_token_id": text.pad_token_id, "do_sample": False}  # fmt: skip
    _write_json(to / "config.json", config)
    _write_json(to / "processor_config.json", _processor_dict(processor))
    _write_json(to / "generation_config.json", generation)
    save_tokenizer(tokenizer.raw, to, CHAT_TEMPLATE)
    write_shards(dict(sorted(state.items())), to, shard_bytes)


def _processor_dict(cfg: ProcessorConfig) -> dict[str, Any]:
    sizes = {name: getattr(cfg, name) for name in ProcessorConfig.__dataclass_fields__}
    return {"processor_class": "DeepseekVLV2Processor", "candidate_resolutions": [[cfg.base_size, cfg.base_size]],
            "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "normalize": True, "image_token": IMAGE,
            "pad_token": PAD, "add_special_token": False, "mask_prompt": False, "sft_format": "deepseek",
            "ignore_id": -100, **sizes}  # fmt: skip


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _original(name: str) -> str | None:
    return next((original for pattern, original in DUPLICATES if pattern.fullmatch(name)), None)


def _check(directory: Path, wanted: dict[str, tuple[int, ...]], stored: dict[str, Stored],
           duplicates: dict[str, str]) -> None:  # fmt: skip
    missing = [f"missing: {name} {shape}" for name, shape in wanted.items() if name not in stored]
    extra = [f"unexpected: {name} {stored[name].shape}" for name in stored if name not in wanted | duplicates]
    shapes = {name: wanted[duplicates.get(name, name)] for name in stored if name in wanted | duplicates}
    wrong = [f"shape: {name} is {stored[name].shape}, expected {want}" for name, want in shapes.items()
             if stored[name].shape != want]  # fmt: skip
    problems = [*missing, *extra, *wrong]
    if problems:
        raise CheckpointError(f"{directory} does not fit its config.json:\n  " + "\n  ".join(problems))


def _identical(stored: Stored, loaded: Tensor) -> bool:
    """Whether the stored tensor, converted to the working dtype, is bit for bit the loaded one."""
    rows = loaded.view(loaded.shape[0], -1)
    step = max(1, CHUNK // max(1, rows[0].numel() * stored.dtype.itemsize))
    width = stored.size // loaded.shape[0]
    for i in range(0, loaded.shape[0], step):
        mine = rows[i : i + step]
        theirs = torch.empty_like(mine)
        part = Stored(stored.path, stored.dtype, tuple(mine.shape), stored.offset + i * width, len(mine) * width)
        read_into(part, theirs)
        if not torch.equal(theirs.view(torch.uint8), mine.view(torch.uint8)):
            return False
    return True


def _attach(model: OcrModel, original: str, stored: Stored, like: Tensor) -> None:
    """Give the draft head its own copy of one of the verifier's tensors."""
    weight = torch.empty_like(like)
    read_into(stored, weight)
    if original == "model.norm.weight":
        model.mtp_norm = RMSNorm(like.shape[0], model.cfg.text.rms_norm_eps)
        model.mtp_norm.weight = nn.Parameter(weight)
    elif original == "lm_head.weight":
        model.mtp_lm_head = nn.Linear(1, 1, bias=False)
        model.mtp_lm_head.weight = nn.Parameter(weight)
    else:
        model.mtp_embed_tokens = nn.Embedding.from_pretrained(weight, freeze=False)
