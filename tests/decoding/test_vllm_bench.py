"""The arithmetic of tables 7 and 8, over an engine whose clock and acceptance are known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jocr.decoding import vllm_bench
from jocr.decoding.vllm_bench import Bench
from jocr.errors import EngineError
from tests.vllm_plugin.checkpoints import pages, tiny_checkpoint

PREFILL, STEP, ROUND = 0.5, 0.010, 0.015  # seconds: a batch of prompts, a plain step, a verify round


class ClockedEngine:
    """Every verify round commits exactly two tokens; ``short`` ends pages a token early."""

    def __init__(self, depth: int, short: bool = False) -> None:
        self.depth, self.short = depth, short
        self.now, self.drafts, self.batches = 0.0, 0, []

    def generate(self, prompts: list[Any], params: Any, use_tqdm: bool) -> list[Any]:
        rounds = params.max_tokens // 2 if self.depth else params.max_tokens
        self.now += PREFILL + rounds * (ROUND if self.depth else STEP)
        self.drafts += rounds * len(prompts)
        self.batches.append(len(prompts))
        made = [7] * (params.max_tokens - self.short)
        return [SimpleNamespace(outputs=[SimpleNamespace(token_ids=made)]) for _ in prompts]

    def get_metrics(self) -> list[Any]:
        if not self.depth:
            return []
        kept = [self.drafts] + [0] * (self.depth - 1)
        return [
            SimpleNamespace(name="vllm:spec_decode_num_drafts", value=self.drafts),
            SimpleNamespace(name="vllm:spec_decode_num_accepted_tokens_per_pos", values=kept),
        ]


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Bench:
    checkpoint: Path = tiny_checkpoint(tmp_path / "tiny", 0, 0.3)
    made = Bench(checkpoint, pages(3), dtype="float32", report=lambda line: None)
    made.device, made.engines = "cpu", []
    current: list[ClockedEngine] = made.engines

    def engine(depth: int, concurrency: int, eager: bool) -> ClockedEngine:
        current.append(ClockedEngine(depth))
        return current[-1]

    monkeypatch.setattr(made, "_engine", engine)
    monkeypatch.setattr(vllm_bench, "_end", lambda llm: None)
    monkeypatch.setattr(vllm_bench, "perf_counter", lambda: current[-1].now)
    monkeypatch.setattr(vllm_bench, "_cpu_seconds", lambda: current[-1].now * 2)
    monkeypatch.setattr(
        vllm_bench, "sampling",
        lambda tokens, eos: SimpleNamespace(max_tokens=tokens, ignore_eos=False, stop_token_ids=[eos], min_tokens=0),
    )  # fmt: skip
    return made


def test_the_tables_say_what_the_clock_says(bench):
    bench.measure((0, 2), (1, 4), eager=True, tokens=64, rounds=2)
    (plain, drafted), together = bench.alone, bench.together
    assert plain.tokens_per_second == pytest.approx(1 / STEP)  # the prompts' time is subtracted
    assert plain.tokens_per_cpu_second == pytest.approx(0.5 / STEP)
    assert (plain.tau, plain.step_cost, plain.speedup) == (None, None, None)
    assert drafted.tau == 2.0
    assert drafted.conditional == [1.0, 0.0]
    assert drafted.tokens_per_second == pytest.approx(2 / ROUND)
    assert drafted.speedup == pytest.approx(2 * STEP / ROUND)
    assert drafted.step_cost == pytest.approx(ROUND / STEP)
    assert drafted.cpu_step_cost == pytest.approx(ROUND / STEP)
    assert [(row.depth, row.concurrency, row.pages) for row in together] == [(0, 1, 2), (0, 4, 8), (2, 1, 2), (2, 4, 8)]
    four = together[1]
    assert four.pages_per_second == pytest.approx(8 / (2 * (PREFILL + 64 * STEP)))
    assert four.tokens_per_second == pytest.approx(64 * four.pages_per_second)
    assert together[3].speedup == pytest.approx(together[3].tokens_per_second / four.tokens_per_second)
    assert together[3].step_cost is None
    assert max(bench.engines[0].batches) == 4
    assert len(bench.engines) == 2  # one for each depth


def test_a_page_that_ends_early_is_no_measurement(bench, monkeypatch):
    def short(depth: int, concurrency: int, eager: bool) -> ClockedEngine:
        bench.engines.append(ClockedEngine(depth, short=True))
        return bench.engines[-1]

    monkeypatch.setattr(bench, "_engine", short)
    with pytest.raises(EngineError, match="ended before its"):
        bench.measure((0,), (1,), eager=True, tokens=16, rounds=1)
