"""From a checkpoint's name to a tested decoder over vLLM."""

from __future__ import annotations

import importlib.metadata
import logging
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from jocr.decoding.engine import Limits
from jocr.decoding.protocol import EngineInfo
from jocr.decoding.vllm_backend import VllmDecoder
from jocr.decoding.vllm_depth import default_table, load_table, pick_depth, table_path
from jocr.decoding.vllm_golden import compare, find_golden, golden_page
from jocr.decoding.vllm_options import VllmSettings, installed, prepare_environment, version
from jocr.errors import CheckpointError, ConfigError, EngineError
from jocr.markup.repeats import LoopGuard
from jocr.model.config import OcrConfig
from jocr.model.hub import revision
from jocr.model.prompts import prompt_text
from jocr.model.split_draft import prepare_draft
from jocr.model.tokenizer import load_tokenizer
from jocr.pages.tiles import ProcessorConfig

log = logging.getLogger(__name__)

ENGINES = ("auto", "torch", "vllm")


def pick_engine(engine: str, device: str = "auto") -> str:
    """``auto`` takes vLLM where there is a CUDA device and vLLM is installed, else this project's own engine.

    Raises:
        ConfigError: no engine of that name.
    """
    if engine not in ENGINES:
        raise ConfigError(f"engine {engine!r}: give auto, torch or vllm")
    if engine != "auto":
        return engine
    return "vllm" if torch.cuda.is_available() and not device.startswith("cpu") and installed() else "torch"


def vllm_device(device: str) -> str:
    """The device vLLM takes: the first visible CUDA device, or the CPU where its CPU build is installed.

    Raises:
        ConfigError: another one was asked for.
    """
    place = "cuda" if torch.cuda.is_available() else "cpu"
    if device not in {"auto", place}:
        raise ConfigError(f"vLLM runs on {place} here, not {device!r}; choose a GPU with CUDA_VISIBLE_DEVICES=N")
    return place


def load_vllm(name: str, checkpoint: Path, *, depth: str | int = "auto", dtype: str = "bfloat16", batch: int = 32,
              limits: Limits | None = None, eager: bool = False,
              stall_seconds: float = 600.0) -> VllmDecoder:  # fmt: skip
    """Start an engine and let it reproduce the checkpoint's golden page.

    Where the checkpoint has no draft head, or this vLLM does not take it, pages are decoded without one (depth 0): the
    text is the same. A warning says so, and so does ``info.draft_depth``.

    Args:
        name: what provenance calls the model.
        depth: drafted tokens a round, or ``auto``: by the table of ``vllm_depth``.
        batch: pages decoded at once.
        eager: no CUDA graphs and no compilation; always so on a CPU.
        stall_seconds: see ``VllmSettings``.

    Raises:
        EngineError: vLLM is not installed, does not start, or does not reproduce the golden page.
        CheckpointError: the checkpoint is not whole.
    """
    release = version()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    eager = eager or device == "cpu"
    prepare_environment(device)
    stamp = revision(checkpoint)
    drafted = _draftable(checkpoint, _depth(depth, checkpoint, stamp, device, batch, eager))
    settings = VllmSettings(drafted, batch, dtype, eager, stall_seconds=stall_seconds)
    tokenizer = load_tokenizer(checkpoint)
    info = EngineInfo(name, stamp, f"vllm {release} (jocr {_own_version()})", device, dtype, str(drafted),
                      "up to near-ties")  # fmt: skip
    start = partial(
        VllmDecoder, checkpoint, tokenizer=tokenizer, processor=ProcessorConfig.load(checkpoint),
        limits=limits or Limits(), make_guard=partial(LoopGuard, decode=tokenizer.decode),
    )  # fmt: skip
    try:
        decoder = start(settings=settings, info=info)
    except EngineError as error:
        if not drafted:
            raise
        log.warning("with the draft head: %s; starting without it (depth 0): the same text, slower", error)
        decoder = start(settings=replace(settings, depth=0), info=replace(info, draft_depth="0"))
    try:
        self_test(decoder, checkpoint)
    except BaseException:
        decoder.close()
        raise
    return decoder


def _draftable(checkpoint: Path, depth: int) -> int:
    """``depth``, or 0 where no draft head can be split off."""
    if depth:
        try:
            prepare_draft(checkpoint)
        except CheckpointError as error:
            log.warning("%s; decoding without a draft head (depth 0): the same text, slower", error)
            return 0
    return depth


def self_test(decoder: VllmDecoder, checkpoint: Path) -> None:
    """
    Raises:
        EngineError: the engine does not reproduce the golden page.
    """
    golden = find_golden(checkpoint)
    if golden is None:
        return
    page = golden_page(decoder.processor)
    answer = decoder.ask(page)
    compare(golden, prompt_text(page.instruction), answer.prompt_ids, answer.tokens, decoder.info.engine)


def _depth(depth: str | int, checkpoint: Path, stamp: str, device: str, batch: int, eager: bool) -> int:
    if depth != "auto":
        return int(depth)
    if not OcrConfig.load(checkpoint).mtp_num_heads:
        return 0
    measured = load_table(table_path(device_name(), stamp, eager))
    return pick_depth(batch, measured or default_table(device, eager))


def device_name() -> str:
    """What a measured depth table is kept under."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def _own_version() -> str:
    try:
        return importlib.metadata.version("jocr")
    except importlib.metadata.PackageNotFoundError:
        return "0"
