"""What a run of the decoder did, counted: tokens per round, acceptance, what a step costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from jocr.records import Transcript


@dataclass
class Stats:
    """Running totals of one decoder. Times in seconds, kept by the depth of the round where all pages share one."""

    tokens: int = 0
    decode_seconds: float = 0.0
    prefill_seconds: float = 0.0
    encode_seconds: float = 0.0
    pages: int = 0
    rounds: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    times: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def round(self, depths: Iterable[int], tokens: int, seconds: float) -> None:
        """Book one round over the pages with these depths."""
        self.tokens += tokens
        self.decode_seconds += seconds
        kinds = set(depths)
        if len(kinds) == 1:
            depth = kinds.pop()
            self.rounds[depth] += 1
            if len(self.times[depth]) < 4096:
                self.times[depth].append(seconds)

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens per second of decoding rounds (prefill and vision not counted)."""
        return self.tokens / self.decode_seconds if self.decode_seconds else 0.0

    def round_seconds(self, depth: int) -> float | None:
        """Median time of a round at ``depth``."""
        return median(self.times[depth]) if self.times.get(depth) else None


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
