"""Two independent engines held against each other, page by page: this project's own and vLLM with the plugin.

Both get the same pages and cut them with the same stopper; ``jocr.evaluation.engines`` is the command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jocr.decoding.engine import Limits, TorchDecoder
from jocr.decoding.load import DTYPES, Backend, make_decoder
from jocr.decoding.stats import acceptance
from jocr.decoding.stopping import Stopper
from jocr.decoding.vllm_options import VllmSettings, engine_arguments, make_request, sampling
from jocr.decoding.vllm_stats import read_metrics
from jocr.markup.repeats import LoopGuard
from jocr.model.config import OcrConfig
from jocr.model.tokenizer import load_tokenizer
from jocr.model.weights import load_model
from jocr.pages.tiles import ProcessorConfig
from jocr.records import PageInput, Transcript


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one engine made of the pages.

    Attributes:
        tokens: generated ids by page, cut by the same stopper in both engines.
        acceptance: share of proposals kept at each draft position.
    """

    tokens: dict[str, tuple[int, ...]]
    prompt_tokens: dict[str, int]
    acceptance: list[float]


@dataclass(frozen=True, slots=True)
class Agreement:
    """``parted`` names each page that differs with the index of the first token that does."""

    depth: int
    dtype: str
    pages: int
    identical: int
    parted: dict[str, int]
    prompts_equal: bool
    ours: list[float]
    theirs: list[float]

    @property
    def worst_gap(self) -> float:
        """Largest difference of acceptance at any position, 0..1."""
        if len(self.ours) != len(self.theirs):
            return 1.0
        return max((abs(a - b) for a, b in zip(self.ours, self.theirs, strict=True)), default=0.0)


def ours(checkpoint: Path, pages: Sequence[PageInput], depth: int, *, dtype: str = "float32",
         backend: Backend = "auto") -> Outcome:  # fmt: skip
    """The pages through ``TorchDecoder``."""
    model = load_model(checkpoint, dtype=DTYPES[dtype])
    decoder: TorchDecoder = make_decoder(
        model, load_tokenizer(checkpoint), ProcessorConfig.load(checkpoint), depth=depth, batch=4, limits=Limits(),
        backend=backend,
    )  # fmt: skip
    done: list[Transcript] = list(decoder.decode(pages))
    tokens = {t.page_id: t.tokens for t in done}
    return Outcome(tokens, {t.page_id: t.prompt_tokens for t in done}, acceptance(done))


def theirs(checkpoint: Path, pages: Sequence[PageInput], depth: int, *, dtype: str = "float32", batch: int = 8,
           draft: Path | None = None, make_llm: Callable[..., Any] | None = None,
           bos: Sequence[int] = ()) -> Outcome:  # fmt: skip
    """The pages through vLLM; ``bos`` is put before every prompt (nothing, as published)."""
    from vllm import LLM

    settings = VllmSettings(depth=depth, concurrency=batch, dtype=dtype, eager=True)
    llm = (make_llm or LLM)(**engine_arguments(checkpoint, settings, draft))
    tokenizer, processor = load_tokenizer(checkpoint), ProcessorConfig.load(checkpoint)
    text = OcrConfig.load(checkpoint).text
    requests = [make_request(page, tokenizer, processor, text.max_position_embeddings) for page in pages]
    for request in requests:
        request.prompt["prompt_token_ids"][:0] = bos
    params = [sampling(request.limit, text.eos_token_id) for request in requests]
    outputs = llm.generate([request.prompt for request in requests], params, use_tqdm=False)
    counts = read_metrics(llm.get_metrics())
    llm.llm_engine.engine_core.shutdown()
    guard = partial(LoopGuard, decode=tokenizer.decode)
    tokens, prompts = {}, {}
    for page, request, output in zip(pages, requests, outputs, strict=True):
        stopper = Stopper(text.eos_token_id, request.limit, guard())
        kept: list[int] = []
        stopper.take(kept, output.outputs[0].token_ids)
        tokens[page.page_id] = tuple(stopper.trim(kept))
        prompts[page.page_id] = len(output.prompt_token_ids)
    return Outcome(tokens, prompts, counts.acceptance)


def agreement(mine: Outcome, other: Outcome, depth: int, dtype: str) -> Agreement:
    """Where the two part."""
    differ = [name for name, tokens in mine.tokens.items() if tokens != other.tokens[name]]
    parted = {name: _parting(mine.tokens[name], other.tokens[name]) for name in differ}
    same = len(mine.tokens) - len(parted)
    equal = mine.prompt_tokens == other.prompt_tokens
    return Agreement(depth, dtype, len(mine.tokens), same, parted, equal, mine.acceptance, other.acceptance)


def _parting(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
