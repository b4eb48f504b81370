"""What a run of the decoder did, counted: tokens per round, acceptance, what a step costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from jocr.decoding.steps import Ran
from jocr.records import Transcript

KEPT = 4096  # round times of one kind that are remembered


@dataclass
class Stats:
    """Running totals of one decoder. Times in seconds; ``times`` by number of pages and depth where all share one."""

    tokens: int = 0
    decode_seconds: float = 0.0
    prefill_seconds: float = 0.0
    encode_seconds: float = 0.0
    pages: int = 0
    times: dict[tuple[int, int], list[float]] = field(default_factory=lambda: defaultdict(list))

    def rounds(self, ran: Ran, tokens: int, seconds: float) -> None:
        """Book a call that committed so many tokens."""
        self.tokens += tokens
        self.decode_seconds += seconds
        depth = len(ran.drafted[0]) if sum(ran.drafted[0]) else 0
        kept = self.times[len(ran.spans), depth]
        same = all(page[:depth] == [ran.rounds] * depth and not any(page[depth:]) for page in ran.drafted)
        if same and len(kept) < KEPT:
            kept.append(seconds / ran.rounds)

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens per second of decoding rounds (prefill and vision not counted)."""
        return self.tokens / self.decode_seconds if self.decode_seconds else 0.0

    def round_seconds(self, pages: int, depth: int) -> float | None:
        """Median time of a round of ``depth`` over ``pages`` pages; None where there was none."""
        kept = self.times.get((pages, depth))
        return median(kept) if kept else None


def tau(pages: Iterable[Transcript]) -> float | None:
    """Mean tokens committed per verify round over many pages; None where nothing was speculated."""
    rounds = accepted = 0
    for page in pages:
        rounds += page.rounds
        accepted += sum(page.accepted)
    return 1.0 + accepted / rounds if rounds else None


def acceptance(pages: Iterable[Transcript]) -> list[float]:
    """Per draft position, the share of tokens proposed there that were accepted."""
    drafted: list[int] = []
    accepted: list[int] = []
    for page in pages:
        grow = len(page.drafted) - len(drafted)
        drafted += [0] * grow
        accepted += [0] * grow
        for i, (d, a) in enumerate(zip(page.drafted, page.accepted, strict=True)):
            drafted[i] += d
            accepted[i] += a
    return [a / d for a, d in zip(accepted, drafted, strict=True) if d]
