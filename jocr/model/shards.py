"""Safetensors files, read and written piece by piece: no tensor is ever held twice.

The format: 8 bytes little-endian header length, a JSON header (name -> dtype, shape, offsets), then the raw tensors.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jocr.errors import CheckpointError

CHUNK = 1 << 24  # bytes read at a time where the dtype or device changes
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


@dataclass(frozen=True, slots=True)
class Stored:
    """Where one tensor lies: ``size`` bytes from ``offset`` of ``path``."""

    path: Path
    dtype: torch.dtype
    shape: tuple[int, ...]
    offset: int
    size: int


def read_index(directory: Path) -> dict[str, Stored]:
    """Every tensor of a checkpoint directory (``model.safetensors`` or the shards its index names).

    Raises:
        CheckpointError: no weights, a shard missing, truncated or unreadable, or a tensor stored twice.
    """
    found: dict[str, Stored] = {}
    for path in weight_files(directory):
        for name, stored in read_header(path).items():
            if name in found:
                raise CheckpointError(f"{name} is stored in both {found[name].path.name} and {path.name}")
            found[name] = stored
    return found


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files of a checkpoint directory, in the index's order of names."""
    index = directory / INDEX
    if not index.exists():
        if not (directory / SINGLE).exists():
            raise CheckpointError(f"{directory} holds neither {SINGLE} nor {INDEX} (only safetensors are read)")
        return [directory / SINGLE]
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise CheckpointError(f"cannot read {index}: {error!r}") from error
    if any(not isinstance(n, str) or Path(n).name != n for n in names):
        raise CheckpointError(f"{index} names files outside its directory")
    missing = [n for n in names if not (directory / n).exists()]
    if missing:
        raise CheckpointError(f"{directory} lacks {len(missing)} of {len(names)} shards: {', '.join(missing)}")
    return [directory / n for n in names]


def read_header(path: Path) -> dict[str, Stored]:
    """Names and places of one file's tensors, checked against the file's length."""
    try:
        total = path.stat().st_size
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > total - 8:
                raise CheckpointError(f"{path} is truncated")
            header: dict[str, Any] = json.loads(file.read(length))
        header.pop("__metadata__", None)
        return {name: _stored(path, 8 + length, total, entry) for name, entry in header.items()}
    except (OSError, ValueError, struct.error, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is not a safetensors file: {error!r}") from error


def _stored(path: Path, base: int, total: int, entry: Mapping[str, Any]) -> Stored:
    if entry["dtype"] not in DTYPES:
        raise CheckpointError(f"{path} holds dtype {entry['dtype']}; readable are {', '.join(DTYPES)}")
    dtype, (begin, end) = DTYPES[entry["dtype"]], entry["data_offsets"]
    shape = tuple(int(n) for n in entry["shape"])
    if base + end > total or end - begin != torch.Size(shape).numel() * dtype.itemsize:
        raise CheckpointError(f"{path} is truncated or its header is wrong")
    return Stored(path, dtype, shape, base + begin, end - begin)


def read_into(stored: Stored, target: Tensor) -> None:
    """Fill a contiguous tensor of the same shape from the file, converting dtype and device by chunks."""
    flat = target.view(-1)
    with stored.path.open("rb", buffering=0) as file:
        file.seek(stored.offset)
        if flat.device.type == "cpu" and flat.dtype == stored.dtype:
            _fill(file, flat)
            return
        step = CHUNK // stored.dtype.itemsize
        buffer = torch.empty(min(step, flat.numel()), dtype=stored.dtype)
        for begin in range(0, flat.numel(), step):
            piece = flat[begin : begin + step]
            _fill(file, buffer[: piece.numel()])
            piece.copy_(buffer[: piece.numel()])


def _fill(file: Any, flat: Tensor) -> None:
    view = flat.view(torch.uint8).numpy().data if flat.numel() else memoryview(b"")
    while len(view):
        count = file.readinto(view[: 1 << 30])
        if not count:
            raise CheckpointError(f"{file.name} ended early")
        view = view[count:]


def write_shards(tensors: Mapping[str, Tensor], directory: Path, shard_bytes: int) -> None:
    """Write tensors in the order given into files of about ``shard_bytes``; one file needs no index."""
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in tensors.items():
        if shards[-1] and size + tensor.nbytes > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += tensor.nbytes
    if len(shards) == 1:
        write_file(shards[0], directory / SINGLE)
        return
    weight_map: dict[str, str] = {}
    for i, shard in enumerate(shards, 1):
        file = f"model-{i:05d}-of-{len(shards):05d}.safetensors"
        write_file(shard, directory / file)
        weight_map |= dict.fromkeys(shard, file)
    total = sum(t.nbytes for t in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (directory / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def write_file(tensors: Mapping[str, Tensor], path: Path) -> None:
    """One safetensors file; tensors may be views of larger ones, on any device."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, t in tensors.items():
        header[name] = {"dtype": names[t.dtype], "shape": list(t.shape), "data_offsets": [offset, offset + t.nbytes]}
        offset += t.nbytes
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(raw)) + raw)
        for t in tensors.values():
            if t.numel():
                file.write(t.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
