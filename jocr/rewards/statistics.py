"""What to log about rewards during training: are the groups informative, and do floors hide failures?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from jocr.rewards.combine import FLOORS
from jocr.rewards.page import Reward

SAME = 1e-9


def zero_variance_share(groups: Iterable[Sequence[float | None]]) -> float | None:
    """Share of groups whose scored rewards are all equal: they teach nothing. None where no group has two scores."""
    informative = same = 0
    for group in groups:
        scored = [r for r in group if r is not None]
        if len(scored) > 1:
            informative += 1
            same += max(scored) - min(scored) < SAME
    return same / informative if informative else None


def floor_hit_rate(rewards: Iterable[Reward], floors: Mapping[str, float] | None = None) -> dict[str, float]:
    """For each term with a floor: the share of pages it applies to where the floor replaced its value."""
    limits = {**FLOORS, **(floors or {})}
    seen: Counter[str] = Counter()
    hit: Counter[str] = Counter()
    for reward in rewards:
        for t in reward.terms:
            if t.applies and limits.get(t.name, 0.0) > 0:
                seen[t.name] += 1
                hit[t.name] += t.value < limits[t.name]
    return {name: hit[name] / n for name, n in sorted(seen.items())}


def term_means(rewards: Iterable[Reward]) -> dict[str, float]:
    """Mean value of every term over the pages it applies to, the mean reward, and the share of unscored pages."""
    values: dict[str, list[float]] = {}
    unscored = total = 0
    for reward in rewards:
        total += 1
        unscored += reward.value is None
        if reward.value is not None:
            values.setdefault("reward", []).append(reward.value)
        for t in reward.terms:
            if t.applies:
                values.setdefault(t.name, []).append(t.value)
    means = {name: sum(v) / len(v) for name, v in sorted(values.items())}
    return {**means, "unscored": unscored / total} if total else {}
