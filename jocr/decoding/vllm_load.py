"""From a checkpoint's name to a tested decoder over vLLM."""

from __future__ import annotations

import importlib.metadata
from functools import partial
from pathlib import Path

import torch

from jocr.decoding.engine import Limits
from jocr.decoding.protocol import EngineInfo
from jocr.decoding.vllm_backend import VllmDecoder
from jocr.decoding.vllm_depth import default_table, load_table, pick_depth, table_path
from jocr.decoding.vllm_golden import compare, find_golden, golden_page
from jocr.decoding.vllm_options import VllmSettings, installed, prepare_environment, version
from jocr.errors import ConfigError
from jocr.markup.repeats import LoopGuard
from jocr.model.config import OcrConfig
from jocr.model.hub import revision
from jocr.model.prompts import prompt_text
from jocr.model.tokenizer import load_tokenizer
from jocr.pages.tiles import ProcessorConfig

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
              limits: Limits | None = None, eager: bool = False) -> VllmDecoder:  # fmt: skip
    """Start an engine and let it reproduce the checkpoint's golden page.

    Args:
        name: what provenance calls the model.
        depth: drafted tokens a round, or ``auto``: by the table of ``vllm_depth``.
        batch: pages decoded at once.

    Raises:
        EngineError: vLLM is not installed, does not start, or does not reproduce the golden page.
        CheckpointError: the checkpoint is not whole.
    """
    release = version()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    prepare_environment(device)
    stamp = revision(checkpoint)
    settings = VllmSettings(_depth(depth, checkpoint, stamp, device, batch, eager), batch, dtype, eager)
    tokenizer = load_tokenizer(checkpoint)
    info = EngineInfo(name, stamp, f"vllm {release} (jocr {_own_version()})", device, dtype, str(settings.depth),
                      "up to near-ties")  # fmt: skip
    decoder = VllmDecoder(
        checkpoint, settings, tokenizer=tokenizer, processor=ProcessorConfig.load(checkpoint), info=info,
        limits=limits or Limits(), make_guard=partial(LoopGuard, decode=tokenizer.decode),
    )  # fmt: skip
    try:
        self_test(decoder, checkpoint)
    except BaseException:
        decoder.close()
        raise
    return decoder


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
    if not OcrConfig.load(checkpoint).mtp_num_heads:
        return 0
    if depth != "auto":
        return int(depth)
    measured = load_table(table_path(device_name(), stamp, eager or device == "cpu"))
    return pick_depth(batch, measured or default_table(device, eager))


def device_name() -> str:
    """What a measured depth table is kept under."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def _own_version() -> str:
    try:
        return importlib.metadata.version("jocr")
    except importlib.metadata.PackageNotFoundError:
        return "0"
