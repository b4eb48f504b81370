"""vLLM's own counters of speculation, kept per draft position."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class SpeculationCounts:
    """Totals of one engine. ``accepted[i]`` counts drafts whose first i + 1 tokens were all kept."""

    drafts: int = 0
    drafted: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)

    def add(self, drafts: int, drafted: list[int], accepted: list[int]) -> None:
        """Book one step of the engine."""
        self.drafts += drafts
        for total, more in ((self.drafted, drafted), (self.accepted, accepted)):
            total.extend([0] * (len(more) - len(total)))
            for i, n in enumerate(more):
                total[i] += n

    @property
    def tau(self) -> float | None:
        """Mean tokens committed per verify round; None where nothing was drafted."""
        return 1.0 + sum(self.accepted) / self.drafts if self.drafts else None

    @property
    def acceptance(self) -> list[float]:
        """Share of proposals kept at each position."""
        return [a / d for a, d in zip(self.accepted, self.drafted, strict=True) if d]

    @property
    def conditional(self) -> list[float]:
        """Share kept at each position where everything before it was kept."""
        before = [self.drafts, *self.accepted]
        return [a / b for a, b in zip(self.accepted, before, strict=False) if b]


def stat_logger(counts: SpeculationCounts) -> Any:
    """A factory of vLLM stat loggers that book into ``counts``."""
    from vllm.v1.metrics.loggers import StatLoggerBase

    class Counting(StatLoggerBase):
        def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
            pass

        def record(self, scheduler_stats: Any, iteration_stats: Any, *args: Any, **kwargs: Any) -> None:
            step = getattr(scheduler_stats, "spec_decoding_stats", None)
            if step is None:
                return
            accepted = list(step.num_accepted_tokens_per_pos)
            per_position = getattr(step, "num_draft_tokens_per_pos", None)
            counts.add(step.num_drafts, list(per_position or [step.num_drafts] * len(accepted)), accepted)

        def log_engine_initialized(self) -> None:
            pass

    return Counting


def read_metrics(metrics: list[Any]) -> SpeculationCounts:
    """The same counts out of ``LLM.get_metrics()``."""
    by_name = {m.name: m for m in metrics}
    if "vllm:spec_decode_num_drafts" not in by_name:
        return SpeculationCounts()
    drafts = int(by_name["vllm:spec_decode_num_drafts"].value)
    accepted = [int(v) for v in by_name["vllm:spec_decode_num_accepted_tokens_per_pos"].values]
    return SpeculationCounts(drafts, [drafts] * len(accepted), accepted)
