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
from jocr.errors import EngineError
from jocr.model.config import OcrConfig
from jocr.model.split_draft import write_config
from jocr.model.tokenizer import build_byte_tokenizer, load_tokenizer, save_tokenizer
from jocr.pages.tiles import ProcessorConfig
from jocr.records import PageInput


@dataclass(frozen=True, slots=True)
class SpeedRow:
    """One line of either table. On a machine that does other work beside, the figures by CPU time are the ones to read.

    Attributes:
        mode: ``eager``, ``graphs`` (CUDA) or ``compiled`` (CPU).
        tokens_per_second: table 8: of decoding alone (two output lengths, subtracted); table 7: of the whole run.
        tokens_per_cpu_second: the same by CPU time of this process and the engine's; None on a GPU.
        conditional: acceptance at each position where everything before it was kept.
        step_cost: seconds of a verify round over seconds of a plain step (c); None for depth 0 and in table 7.
        speedup: against depth 0 of the same mode and concurrency.
        cpu_step_cost, cpu_speedup: the same by CPU time.
    """

    mode: str
    depth: int
    concurrency: int
    pages: int
    tokens_per_page: float
    tokens_per_second: float
    tokens_per_cpu_second: float | None
    pages_per_second: float
    tau: float | None
    conditional: list[float]
    step_cost: float | None
    cpu_step_cost: float | None
    speedup: float | None
    cpu_speedup: float | None


@dataclass(frozen=True, slots=True)
class Took:
    """Wall time and CPU time of all processes together, seconds."""

    wall: float
    cpu: float

    def __sub__(self, other: Took) -> Took:
        return Took(self.wall - other.wall, self.cpu - other.cpu)


@dataclass(frozen=True, slots=True)
class StartRow:
    """What starting an engine took: seconds until it takes pages; bytes in main memory of all processes then."""

    mode: str
    depth: int
    seconds: float
    memory: int


class Bench:
    """Measures one checkpoint, with one engine for each depth and mode.

    Args:
        report: is told each figure as it comes.

    Attributes:
        starts: one row for each engine.
        alone, together: the rows of tables 8 and 7 so far; a depth that fails takes none of them away.
    """

    def __init__(self, checkpoint: Path, pages: Sequence[PageInput], *, dtype: str, load_format: str = "auto",
                 draft: Path | None = None, report: Callable[[str], None] = print) -> None:  # fmt: skip
        self.checkpoint, self.dtype, self.load_format, self.draft, self.report = (
            checkpoint, dtype, load_format, draft, report)  # fmt: skip
        text = OcrConfig.load(checkpoint).text
        self.eos, positions = text.eos_token_id, text.max_position_embeddings
        tokenizer, processor = load_tokenizer(checkpoint), ProcessorConfig.load(checkpoint)
        self.requests = [make_request(page, tokenizer, processor, positions) for page in pages]
        self.starts: list[StartRow] = []
        self.alone: list[SpeedRow] = []
        self.together: list[SpeedRow] = []
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        prepare_environment(self.device)

    def measure(self, depths: Sequence[int], concurrencies: Sequence[int], *, eager: bool, tokens: int,
                rounds: int) -> None:  # fmt: skip
        """Rows of table 8 (one page at a time, every depth) and of table 7 (every depth and concurrency).

        Args:
            depths: 0 comes first; the others are held against it.
            tokens: output length of every page.
            rounds: times that each concurrency's worth of pages is decoded.
        """
        for depth in depths:
            llm = self._engine(depth, max(concurrencies), eager)
            self.alone.append(self._alone(llm, depth, eager, tokens, _plain(self.alone, eager, 1)))
            for n in concurrencies:
                plain = _plain(self.together, eager, n)
                self.together.append(self._together(llm, depth, n, eager, tokens, rounds, plain))
            _end(llm)
            del llm

    def _alone(self, llm: Any, depth: int, eager: bool, tokens: int, plain: SpeedRow | None) -> SpeedRow:
        short = max(2, tokens // 8)
        self._run(llm, self.requests[:1], short, 1)  # warms up
        brief = self._run(llm, self.requests, short, 1)
        before = read_metrics(llm.get_metrics())
        long = self._run(llm, self.requests, tokens, 1)
        counts = _since(before, read_metrics(llm.get_metrics()))
        made = len(self.requests) * (tokens - short)
        return self._row(depth, 1, eager, tokens, len(self.requests), made, long - brief, long, counts, plain, True)

    def _together(self, llm: Any, depth: int, n: int, eager: bool, tokens: int, rounds: int,
                  plain: SpeedRow | None) -> SpeedRow:  # fmt: skip
        work = [self.requests[i % len(self.requests)] for i in range(n * rounds)]
        before = read_metrics(llm.get_metrics())
        took = self._run(llm, work, tokens, n)
        counts = _since(before, read_metrics(llm.get_metrics()))
        return self._row(depth, n, eager, tokens, len(work), len(work) * tokens, took, took, counts, plain, False)

    def _row(self, depth: int, n: int, eager: bool, tokens: int, pages: int, made: int, took: Took, whole: Took,
             counts: SpeculationCounts, plain: SpeedRow | None, steps: bool) -> SpeedRow:  # fmt: skip
        """``took`` for ``made`` tokens; ``plain`` is the row at depth 0; ``steps``: whether a step's cost shows."""
        wall, cpu = made / took.wall, made / took.cpu if self.device == "cpu" else None
        gain = wall / plain.tokens_per_second if plain else None
        cpu_gain = cpu / plain.tokens_per_cpu_second if cpu and plain and plain.tokens_per_cpu_second else None
        tau = counts.tau
        cost, cpu_cost = (tau / g if steps and tau and g else None for g in (gain, cpu_gain))
        mode = mode_name(eager)
        self.report(f"{mode}, depth {depth}, {n} at once: {wall:.1f} tokens/s, {pages / whole.wall:.2f} pages/s")
        return SpeedRow(mode, depth, n, pages, tokens, wall, cpu, pages / whole.wall, tau, counts.conditional, cost,
                        cpu_cost, gain, cpu_gain)  # fmt: skip

    def _engine(self, depth: int, concurrency: int, eager: bool) -> Any:
        from vllm import LLM

        settings = VllmSettings(depth, concurrency, self.dtype, eager, load_format=self.load_format)
        begun = perf_counter()
        llm = LLM(**engine_arguments(self.checkpoint, settings, self.draft))
        row = StartRow(mode_name(eager), depth, perf_counter() - begun, _resident())
        self.starts.append(row)
        self.report(f"{row.mode}, depth {depth}: started in {row.seconds:.1f} s, {row.memory / 2**30:.1f} GiB")
        return llm

    def _run(self, llm: Any, requests: Sequence[Request], tokens: int, at_once: int) -> Took:
        """``at_once`` pages are handed in together, the next ones when all have ended: their lengths are equal."""
        params = sampling(tokens, self.eos)
        params.ignore_eos, params.stop_token_ids, params.min_tokens = True, [], tokens
        begun, cpu = perf_counter(), _cpu_seconds()
        for i in range(0, len(requests), at_once):
            outputs = llm.generate([r.prompt for r in requests[i : i + at_once]], params, use_tqdm=False)
            if any(len(o.outputs[0].token_ids) != tokens for o in outputs):
                raise EngineError(f"a page ended before its {tokens} tokens: the speeds would not be comparable")
        return Took(perf_counter() - begun, _cpu_seconds() - cpu)


def _plain(rows: Sequence[SpeedRow], eager: bool, concurrency: int) -> SpeedRow | None:
    """The row at depth 0 that others of its mode and concurrency are held against."""
    mode = mode_name(eager)
    return next((r for r in rows if (r.mode, r.depth, r.concurrency) == (mode, 0, concurrency)), None)


def mode_name(eager: bool) -> str:
    if eager:
        return "eager"
    return "graphs" if torch.cuda.is_available() else "compiled"


def _cpu_seconds() -> float:
    """Of this process and all it started."""
    times = [process.cpu_times() for process in _processes()]
    return float(sum(t.user + t.system for t in times))


def _resident() -> int:
    """Bytes of main memory, of this process and all it started."""
    return int(sum(process.memory_info().rss for process in _processes()))


def _processes() -> list[Any]:
    import psutil

    me = psutil.Process()
    return [me, *me.children(recursive=True)]


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
