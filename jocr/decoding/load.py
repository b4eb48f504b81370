"""From a checkpoint's name to a decoder."""

from __future__ import annotations

import importlib.metadata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from jocr.decoding import bf16, packed
from jocr.decoding.ahead import AHEAD, encoder_thread, spare_cores
from jocr.decoding.cache import GRAIN, SlotCache
from jocr.decoding.compiled_steps import CompiledSteps
from jocr.decoding.compiled_weights import Packed, fits, pack_model
from jocr.decoding.depth import MAX_DEPTH, AutoDepth, Costs, DepthPolicy, FixedDepth
from jocr.decoding.engine import Limits, TorchDecoder
from jocr.decoding.fake import is_fake, make_fake
from jocr.decoding.guard import CompiledGuard
from jocr.decoding.memory import keep_freed_memory
from jocr.decoding.protocol import Decoder, EngineInfo
from jocr.decoding.steps import Steps
from jocr.decoding.torch_steps import TorchSteps
from jocr.decoding.vision_weights import CompiledVision
from jocr.decoding.vision_weights import fits as fits_vision
from jocr.decoding.vllm_load import load_vllm, pick_engine, vllm_device
from jocr.errors import ConfigError, EngineError
from jocr.model.ocr import OcrModel, PageViews
from jocr.model.shards import weight_files
from jocr.model.tokenizer import Tokenizer, load_tokenizer
from jocr.model.weights import load_model, resolve_checkpoint, revision
from jocr.pages.tiles import ProcessorConfig

Backend = Literal["auto", "compiled", "torch"]
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def load_decoder(
    model: str,
    *,
    depth: str | int = "auto",
    device: str = "auto",
    dtype: str | None = None,
    batch: int = 8,
    max_tokens: int | None = None,
    page_seconds: float | None = None,
    engine: str = "auto",
) -> Decoder:
    """Load a checkpoint and make a decoder of it.

    Args:
        model: ``nano``, ``fake``, a checkpoint directory or a hub id.
        depth: draft tokens a round, 0..5, or ``auto``.
        device: ``auto`` takes a CUDA device where there is one.
        dtype: ``float32`` or ``bfloat16``; None takes bf16, but fp32 for small models on a CPU that does not multiply
            bf16 (or in vLLM).
        batch: pages decoded at once.
        max_tokens: most tokens of any page; None for what the checkpoint's positions allow.
        page_seconds: wall time one page may take.
        engine: ``torch`` (this project's own), ``vllm``, or ``auto``: vLLM on a CUDA device where it is installed.

    Raises:
        ConfigError: a value out of range.
        CheckpointError: the checkpoint is not there or not whole.
        EngineError: the device is not there, or vLLM is not installed or not fit for the checkpoint.
    """
    if is_fake(model):
        return make_fake(model)
    depth = parse_depth(depth)
    if pick_engine(engine, device) == "vllm":
        directory = resolve_checkpoint(model)
        kind = str(pick_dtype(dtype, pick_device(vllm_device(device)), size_of(directory))).removeprefix("torch.")
        limits = Limits(max_tokens, page_seconds)
        return load_vllm(model, directory, depth=depth, dtype=kind, batch=batch, limits=limits)
    parts = load_parts(model, device=device, dtype=dtype)
    return parts.decoder(depth=depth, batch=batch, limits=Limits(max_tokens, page_seconds))


@dataclass(frozen=True)
class Parts:
    """A checkpoint in memory, from which any number of decoders can be made."""

    name: str
    revision: str
    model: OcrModel
    tokenizer: Tokenizer
    processor: ProcessorConfig
    weights: Packed | None = None  # the matrices as the compiled steps read them; a bf16 model has no others
    vision: CompiledVision | None = None  # the towers compiled, where they can be

    def decoder(self, *, depth: str | int, batch: int, limits: Limits | None = None) -> TorchDecoder:
        return make_decoder(
            self.model, self.tokenizer, self.processor, name=self.name, revision=self.revision, depth=depth,
            batch=batch, limits=limits, weights=self.weights, vision=self.vision,
        )  # fmt: skip


def load_parts(model: str, *, device: str = "auto", dtype: str | None = None) -> Parts:
    """Read a checkpoint; see ``load_decoder`` for arguments and errors."""
    place = pick_device(device)
    directory = resolve_checkpoint(model)
    kind = pick_dtype(dtype, place, size_of(directory), bf16.supported())
    if place.type == "cpu":
        keep_freed_memory()
    loaded = load_model(directory, dtype=kind, device=str(place))
    weights = pack_model(loaded, hand_over=kind == torch.bfloat16, quick=True) if fits(loaded) else None
    if weights is None and packed.fits(loaded):
        packed.pack(loaded)
    vision = CompiledVision(loaded) if weights is not None and fits_vision(loaded) else None
    if vision is None and packed.fits_vision(loaded):
        packed.pack_vision(loaded)
    return Parts(
        model, revision(directory), loaded, load_tokenizer(directory), ProcessorConfig.load(directory), weights, vision
    )


def size_of(directory: Path) -> int:
    """Bytes of a checkpoint's weights."""
    return sum(path.stat().st_size for path in weight_files(directory))


def make_decoder(model: OcrModel, tokenizer: Tokenizer, processor: ProcessorConfig, *, name: str = "memory",
                 revision: str = "", depth: str | int = "auto", batch: int = 8, limits: Limits | None = None,
                 backend: Backend = "auto", guard: bool = True,
                 weights: Packed | None = None, vision: CompiledVision | None = None) -> TorchDecoder:  # fmt: skip
    """A decoder over a model in memory (one being trained, for instance; its weights may be copied, so make a new
    decoder after an update). ``vision`` are its towers where they are compiled."""
    depth = parse_depth(depth) if model.cfg.mtp_num_heads else 0
    weight = model.model.norm.weight
    steps = make_steps(model, batch, backend, weights)
    encoder = make_encoder(steps)
    if encoder is not None:
        steps.cache.add_spare(AHEAD)
    info = EngineInfo(name, revision, engine_name(steps), str(weight.device), str(weight.dtype).removeprefix("torch."),
                      str(depth), steps.guarantee if depth else "exact")  # fmt: skip
    return TorchDecoder(
        cfg=model.cfg, encode=vision or partial(encode_page, model), steps=steps, policy=make_policy(depth),
        drafting=depth != 0, tokenizer=tokenizer, processor=processor, info=info, limits=limits or Limits(),
        make_guard=partial(CompiledGuard, decode=tokenizer.decode) if guard else None, encoder=encoder,
    )  # fmt: skip


def encode_page(model: OcrModel, views: PageViews) -> Tensor:
    """Visual tokens of one page, the pixels brought to the model's device and type."""
    like = model.model.norm.weight
    return model.encode_page(PageViews(views.global_view.to(like), views.tiles.to(like), views.grid))


def make_steps(model: OcrModel, slots: int, backend: Backend = "auto", weights: Packed | None = None) -> Steps:
    """The fastest steps for this model and device, or those asked for, with a cache of ``slots`` pages; ``weights``
    are the model's where they are packed already."""
    weight = model.model.norm.weight
    if weights is not None or (backend != "torch" and fits(model)):
        cache = SlotCache(model.cfg.text, slots, GRAIN, torch.float32, weight.device, transposed=True)
        return CompiledSteps(model, cache, weights)
    return TorchSteps(model, SlotCache(model.cfg.text, slots, GRAIN, weight.dtype, weight.device))


def make_encoder(steps: Steps) -> ThreadPoolExecutor | None:
    """A thread for the next page's vision, where decoding leaves a core for it."""
    spare = spare_cores(1) if isinstance(steps, CompiledSteps) and steps.threads == 1 else 0
    return encoder_thread(spare) if spare else None


def make_policy(depth: str | int) -> DepthPolicy:
    return AutoDepth(Costs()) if depth == "auto" else FixedDepth(int(depth))


def parse_depth(depth: str | int) -> str | int:
    """``auto`` or 0..5.

    Raises:
        ConfigError: anything else.
    """
    if depth == "auto":
        return depth
    if str(depth) not in {str(i) for i in range(MAX_DEPTH + 1)}:
        raise ConfigError(f"draft depth {depth!r}: give a number from 0 to {MAX_DEPTH}, or auto")
    return int(depth)


def pick_device(device: str) -> torch.device:
    """
    Raises:
        EngineError: there is no such device.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
        torch.empty(1, device=place)
    except (RuntimeError, AssertionError) as error:
        raise EngineError(f"no device {device!r} here: {str(error).splitlines()[0]}") from error
    return place


def pick_dtype(dtype: str | None, device: torch.device, size: int, quick: bool = False) -> torch.dtype:
    """fp32 for checkpoints under 1 GB on a CPU that is not ``quick`` in bf16, else bf16, unless said otherwise."""
    if dtype is None:
        return torch.float32 if device.type == "cpu" and size < 1 << 30 and not quick else torch.bfloat16
    if dtype not in DTYPES:
        raise ConfigError(f"dtype {dtype!r}: give float32 or bfloat16")
    return DTYPES[dtype]


def engine_name(steps: Steps) -> str:
    try:
        version = importlib.metadata.version("jocr")
    except importlib.metadata.PackageNotFoundError:
        version = "0"
    return f"jocr-{type(steps).__name__.removesuffix('Steps').lower()} {version} (torch {torch.__version__})"
