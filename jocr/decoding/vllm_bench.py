"""vLLM's speed on this machine, in the shapes of the paper's tables 7 and 8.

Output lengths are fixed (the end token does not end a page), so random weights of the published size measure speed
honestly. Acceptance is then that of random weights; the cost of a step is not affected by it.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from jocr.decoding.vllm_options import (
    Request,
    VllmSettings,
    engine_arguments,
    make_request,
    prepare_environment,
    sampling,
)
from jocr.decoding.vllm_stats import SpeculationCounts, read_metrics
from jocr.model.config import OcrConfig
from jocr.model.split_draft import write_config
from jocr.model.tokenizer import build_byte_tokenizer, load_tokenizer, save_tokenizer
from jocr.pages.tiles import ProcessorConfig
from jocr.records import PageInput


@dataclass(frozen=True, slots=True)
class SpeedRow:
    """One line of either table.

    Attributes:
        mode: ``eager`` or ``graphs``.
        tokens_per_second: table 8: of decoding alone (two output lengths, subtracted); table 7: of the whole run.
        conditional: acceptance at each position where everything before it was kept.
        step_cost: seconds of a verify round over seconds of a plain step (c); None for depth 0 and in table 7.
        speedup: against depth 0 of the same mode; None in table 7.
    """

    mode: str
    depth: int
    concurrency: int
    pages: int
    tokens_per_page: float
    tokens_per_second: float
    pages_per_second: float
    tau: float | None
    conditional: list[float]
    step_cost: float | None
    speedup: float | None


class Bench:
    """Measures one checkpoint. ``report`` is told what is being measured."""

    def __init__(self, checkpoint: Path, pages: Sequence[PageInput], *, dtype: str, load_format: str = "auto",
                 draft: Path | None = None, report: Callable[[str], None] = print) -> None:  # fmt: skip
        self.checkpoint, self.dtype, self.load_format, self.draft, self.report = (
            checkpoint, dtype, load_format, draft, report)  # fmt: skip
        text = OcrConfig.load(checkpoint).text
        self.eos, positions = text.eos_token_id, text.max_position_embeddings
        tokenizer, processor = load_tokenizer(checkpoint), ProcessorConfig.load(checkpoint)
        self.requests = [make_request(page, tokenizer, processor, positions) for page in pages]
        prepare_environment("cuda" if torch.cuda.is_available() else "cpu")

    def depths(self, depths: Sequence[int], eager: bool, tokens: int = 144, short: int = 16) -> list[SpeedRow]:
        """Table 8: one page at a time, every depth (0 first)."""
        rows: list[SpeedRow] = []
        plain: tuple[float, float] | None = None  # tokens/s, seconds a step
        for depth in depths:
            llm = self._engine(depth, 1, eager)
            self._run(llm, self.requests[:1], short)  # warms up
            brief = self._run(llm, self.requests, short)
            before = read_metrics(llm.get_metrics())
            long = self._run(llm, self.requests, tokens)
            counts = _since(before, read_metrics(llm.get_metrics()))
            _end(llm)
            seconds = long - brief
            speed = len(self.requests) * (tokens - short) / seconds
            tau = counts.tau or 1.0
            step = tau / speed
            plain = plain or (speed, step)
            rows.append(SpeedRow(
                _mode(eager), depth, 1, len(self.requests), tokens, speed, len(self.requests) / long, counts.tau,
                counts.conditional, step / plain[1] if depth else None, speed / plain[0],
            ))  # fmt: skip
            self.report(f"depth {depth} {_mode(eager)}: {speed:.1f} tokens/s")
            del llm
        return rows

    def concurrencies(self, concurrencies: Sequence[int], depth: int, eager: bool, tokens: int = 256,
                      rounds: int = 2) -> list[SpeedRow]:  # fmt: skip
        """Table 7: whole pages, ``rounds`` times as many as are decoded at once."""
        rows = []
        for n in concurrencies:
            llm = self._engine(depth, n, eager)
            work = [self.requests[i % len(self.requests)] for i in range(max(n * rounds, 4))]
            self._run(llm, work[:1], 8)
            before = read_metrics(llm.get_metrics())
            seconds = self._run(llm, work, tokens)
            counts = _since(before, read_metrics(llm.get_metrics()))
            _end(llm)
            rows.append(SpeedRow(
                _mode(eager), depth, n, len(work), tokens, len(work) * tokens / seconds, len(work) / seconds,
                counts.tau, counts.conditional, None, None,
            ))  # fmt: skip
            self.report(f"concurrency {n} depth {depth} {_mode(eager)}: {len(work) / seconds:.2f} pages/s")
            del llm
        return rows

    def _engine(self, depth: int, concurrency: int, eager: bool) -> Any:
        from vllm import LLM

        settings = VllmSettings(depth, concurrency, self.dtype, eager, load_format=self.load_format)
        return LLM(**engine_arguments(self.checkpoint, settings, self.draft))

    def _run(self, llm: Any, requests: Sequence[Request], tokens: int) -> float:
        params = sampling(tokens, self.eos)
        params.ignore_eos, params.stop_token_ids, params.min_tokens = True, [], tokens
        begun = perf_counter()
        outputs = llm.generate([r.prompt for r in requests], params, use_tqdm=False)
        seconds = perf_counter() - begun
        assert all(len(o.outputs[0].token_ids) == tokens for o in outputs)
        return seconds


def _mode(eager: bool) -> str:
    return "eager" if eager or not torch.cuda.is_available() else "graphs"


def _since(before: SpeculationCounts, after: SpeculationCounts) -> SpeculationCounts:
    def difference(a: list[int], b: list[int]) -> list[int]:
        return [x - y for x, y in zip(a, b or [0] * len(a), strict=True)]

    drafted, accepted = difference(after.drafted, before.drafted), difference(after.accepted, before.accepted)
    return SpeculationCounts(after.drafts - before.drafts, drafted, accepted)


def _end(llm: Any) -> None:
    llm.llm_engine.engine_core.shutdown()
    gc.collect()


def dummy_checkpoint(directory: Path, cfg: OcrConfig | None = None) -> tuple[Path, Path]:
    """A checkpoint of the published layout without weights, and its draft: for ``load_format="dummy"``."""
    cfg = cfg or OcrConfig(image_token_id=3)
    draft = directory / "draft"
    draft.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(cfg.to_dict()), encoding="utf-8")
    sizes = {name: getattr(ProcessorConfig(), name) for name in ProcessorConfig.__dataclass_fields__}
    (directory / "processor_config.json").write_text(json.dumps(sizes), encoding="utf-8")
    save_tokenizer(build_byte_tokenizer([], []), directory)
    write_config(cfg, "bfloat16", draft)
    return directory, draft
