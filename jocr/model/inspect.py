"""``jocr model inspect``: every tensor's name and shape, one a line, sorted by name."""

from __future__ import annotations

from pathlib import Path

import torch

from jocr.errors import CheckpointError
from jocr.model.config import OcrConfig
from jocr.model.hub import resolve_checkpoint
from jocr.model.ocr import OcrModel
from jocr.model.shards import read_index


def run(target: str) -> int:
    """Print the tensors of a checkpoint (from its file headers), or of the ``published`` layout (from the model).

    Raises:
        CheckpointError: no checkpoint at ``target``, or unreadable files.
    """
    shapes = published() if target == "published" else stored(resolve_checkpoint(target))
    print("\n".join(line(name, shape) for name, shape in sorted(shapes.items())))
    return 0


def line(name: str, shape: tuple[int, ...]) -> str:
    """``name<tab>2x3``"""
    return f"{name}\t{'x'.join(map(str, shape))}"


def published() -> dict[str, tuple[int, ...]]:
    """Names and shapes of the model class, built without memory from the published config."""
    with torch.device("meta"):
        model = OcrModel(OcrConfig())
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def stored(directory: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors in a checkpoint directory."""
    if not directory.is_dir():
        raise CheckpointError(f"{directory} is no directory")
    return {name: entry.shape for name, entry in read_index(directory).items()}
