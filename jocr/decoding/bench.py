"""Decoding measured: greedy and speculative, each depth, batch 1 and 8, in alternating repeats of the same pages.

All configurations run in turn in every repeat, so that other work on the machine hits them alike; medians are kept.
Wall time is that of ``decode`` as a whole: image decoding, vision, prefill and all rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, process_time

import torch

from jocr.decoding.engine import TorchDecoder
from jocr.decoding.stats import Stats, acceptance, tau
from jocr.records import PageInput, Transcript

Depth = int | str
DEPTHS: tuple[Depth, ...] = (0, 1, 2, 3, 4, "auto")
MakeDecoder = Callable[[Depth, int], TorchDecoder]
"""(depth, batch) -> a decoder; the ones of one batch size may share weights."""


def use_threads(count: int) -> None:
    """Threads within one operation, for the whole process."""
    torch.set_num_threads(count)


@dataclass(frozen=True)
class BenchRow:
    """One line of the table and of the JSON. ``kind`` is a kind of page or ``all``; times are medians over repeats."""

    model: str
    batch: int
    depth: str
    kind: str
    pages: int
    tokens: int
    seconds: float  # wall time of all pages of the kind
    cpu_seconds: float  # CPU time of the same
    tokens_per_second: float  # of that wall time
    decode_tokens_per_second: float  # of the rounds alone, by the work they took (``Steps.clock``)
    tau: float | None
    acceptance: list[float]  # per draft position
    step_cost: float | None  # median round / median plain round, full batch
    identical: bool  # every page's tokens equal those of greedy at batch 1
    speedup: float  # wall time against greedy at the same batch size
    cpu_speedup: float  # CPU time against greedy: what it would be on a machine of one's own
    decode_speedup: float  # the same for the rounds alone


@dataclass
class Measured:
    """One configuration on one kind of page, over the repeats."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    decode_seconds: list[float] = field(default_factory=list)
    pages: dict[str, Transcript] = field(default_factory=dict)

    def add(self, decoder: TorchDecoder, inputs: Sequence[PageInput]) -> None:
        before = decoder.stats.decode_seconds
        begun, worked = perf_counter(), process_time()
        done = list(decoder.decode(inputs))
        self.seconds.append(perf_counter() - begun)
        self.cpu_seconds.append(process_time() - worked)
        self.decode_seconds.append(decoder.stats.decode_seconds - before)
        self.pages = {t.page_id: t for t in done}

    @property
    def tokens(self) -> int:
        return sum(len(t.tokens) for t in self.pages.values())


Key = tuple[int, str, str]  # batch, depth, kind


def measure(make: MakeDecoder, kinds: Mapping[str, Sequence[PageInput]], *, name: str,
            depths: Sequence[Depth] = DEPTHS, batches: Sequence[int] = (1, 8), repeats: int = 3,
            report: Callable[[str], None] = lambda text: None) -> list[BenchRow]:  # fmt: skip
    """Measure every depth (the first must be 0) at every batch size on every kind of page."""
    results: dict[Key, Measured] = {}
    stats: dict[tuple[int, str], Stats] = {}
    for batch in batches:
        decoders = {str(depth): make(depth, batch) for depth in depths}
        stats |= {(batch, depth): decoder.stats for depth, decoder in decoders.items()}
        for repeat in range(repeats + 1):  # the first one warms up and is not kept
            report(f"batch {batch}, repeat {repeat} of {repeats}")
            for kind, inputs in kinds.items():
                for depth, decoder in list(decoders.items())[:: -1 if repeat % 2 else 1]:  # no one is always first
                    measured = Measured() if repeat == 0 else results.setdefault((batch, depth, kind), Measured())
                    measured.add(decoder, inputs if repeat else inputs[:1])
    return [
        _row(name, batch, str(depth), kind, kinds, results, stats)
        for batch in batches for depth in depths for kind in (*kinds, "all")
    ]  # fmt: skip


def _row(name: str, batch: int, depth: str, kind: str, kinds: Mapping[str, Sequence[PageInput]],
         results: Mapping[Key, Measured], stats: Mapping[tuple[int, str], Stats]) -> BenchRow:  # fmt: skip
    parts = list(kinds) if kind == "all" else [kind]
    mine = [results[batch, depth, part] for part in parts]
    plain = [results[batch, "0", part] for part in parts]
    first = [results[min(b for b, _, _ in results), "0", part] for part in parts]
    tokens, done = sum(m.tokens for m in mine), [t for m in mine for t in m.pages.values()]
    seconds, cpu, rounds = _medians(mine)
    plain_seconds, plain_cpu, plain_rounds = _medians(plain)
    identical = all(
        m.pages[i].tokens == f.pages[i].tokens for m, f in zip(mine, first, strict=True) for i in f.pages
    )  # fmt: skip
    return BenchRow(
        name, batch, depth, kind, len(done), tokens, seconds, cpu, tokens / seconds, tokens / rounds if rounds else 0.0,
        tau(done), acceptance(done), _step_cost(batch, depth, stats), identical, plain_seconds / seconds,
        plain_cpu / cpu, plain_rounds / rounds if rounds else 1.0,
    )  # fmt: skip


def _medians(parts: Sequence[Measured]) -> tuple[float, float, float]:
    """Sums over kinds of page of the median wall, CPU and round times."""
    return (
        sum(median(m.seconds) for m in parts),
        sum(median(m.cpu_seconds) for m in parts),
        sum(median(m.decode_seconds) for m in parts),
    )


def _step_cost(batch: int, depth: str, stats: Mapping[tuple[int, str], Stats]) -> float | None:
    """Round at ``depth`` over plain round, both over ``batch`` pages; None for ``auto`` or where never measured."""
    plain = stats[batch, "0"].round_seconds(batch, 0)
    mine = stats[batch, depth].round_seconds(batch, int(depth)) if depth != "auto" else None
    return mine / plain if mine and plain else None
