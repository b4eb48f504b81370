"""Figures of a run out of its markers: counts, speed over time, cost. No rows are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any

from jocr.archive.cost import Meter
from jocr.archive.ledger import Commit
from jocr.records import STATUSES

STEPS = 120  # points of the speed over time
PAUSE = 300.0  # seconds without a commit that at least make a pause of the run
COLLECTIONS = 500  # listed by name; the rest is one line


@dataclass(frozen=True, slots=True)
class Session:
    """A stretch of work without a pause."""

    start: datetime
    end: datetime
    commits: tuple[Commit, ...]

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()


def counts(commits: Iterable[Commit]) -> dict[str, Any]:
    """Pages by status, by reason and by collection; tokens and seconds."""
    statuses: Counter[str] = Counter(dict.fromkeys(STATUSES, 0))
    reasons: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    collections: dict[str, Counter[str]] = {}
    seconds = {"render_seconds": 0.0, "decode_seconds": 0.0}
    for commit in commits:
        statuses.update(commit.counts)
        reasons.update(commit.reasons)
        totals.update(pages=commit.pages, tokens=commit.tokens, prompt_tokens=commit.prompt_tokens)
        for name, facts in commit.collections.items():
            collections.setdefault(name, Counter()).update(facts)
        seconds["render_seconds"] += commit.render_seconds
        seconds["decode_seconds"] += commit.decode_seconds
    return {
        "counts": dict(statuses),
        "reasons": dict(reasons.most_common()),
        "collections": _largest(collections),
        "totals": {**totals, **{name: round(value, 3) for name, value in seconds.items()}},
    }


def _largest(collections: dict[str, Counter[str]]) -> list[dict[str, Any]]:
    """By pages, descending; beyond ``COLLECTIONS`` added up under the name None."""
    ordered = sorted(collections.items(), key=lambda item: (-item[1]["pages"], item[0]))
    rest: Counter[str] = Counter()
    for _, facts in ordered[COLLECTIONS:]:
        rest.update(facts)
    listed: list[dict[str, Any]] = [{"name": name, **facts} for name, facts in ordered[:COLLECTIONS]]
    return [*listed, {"name": None, "of": len(ordered) - COLLECTIONS, **rest}] if rest else listed


def sessions(commits: Iterable[Commit]) -> list[Session]:
    """Commits in order of time, cut at pauses: ``PAUSE`` and twenty times the usual distance of two commits."""
    timed = sorted((datetime.fromisoformat(commit.created), n, commit) for n, commit in enumerate(commits))
    if not timed:
        return []
    gaps = [(b[0] - a[0]).total_seconds() for a, b in pairwise(timed)]
    longest = max(PAUSE, 20 * median(gaps)) if gaps else PAUSE
    cuts = [0, *(i + 1 for i, gap in enumerate(gaps) if gap > longest), len(timed)]
    return [_session(timed[a:b]) for a, b in pairwise(cuts)]


def _session(timed: Sequence[tuple[datetime, int, Commit]]) -> Session:
    """It began before its first commit, by the time that commit took."""
    first, last = timed[0], timed[-1]
    began = datetime.fromtimestamp(first[0].timestamp() - max(first[2].busy_seconds, 0.001), first[0].tzinfo)
    return Session(began, last[0], tuple(commit for _, _, commit in timed))


def speed(work: Sequence[Session]) -> dict[str, Any]:
    """Pages and tokens per second of working time, and the pages per second over time as (hours worked, value)."""
    seconds = sum(session.seconds for session in work)
    done = [commit for session in work for commit in session.commits]
    pages = sum(commit.pages - commit.carried for commit in done)
    tokens = sum(commit.tokens for commit in done)
    return {
        "seconds": round(seconds, 3),
        "pages_per_second": round(pages / seconds, 4) if seconds else 0.0,
        "tokens_per_second": round(tokens / seconds, 2) if seconds else 0.0,
        "sessions": [[s.start.isoformat(timespec="seconds"), s.end.isoformat(timespec="seconds")] for s in work],
        "over_time": _over_time(work, seconds),
    }


def _over_time(work: Sequence[Session], seconds: float) -> list[list[float]]:
    if not seconds:
        return []
    steps = max(1, min(STEPS, sum(len(session.commits) for session in work) // 2))
    width = seconds / steps
    pages = [0] * steps
    before = 0.0
    for session in work:
        for commit in session.commits:
            at = before + (datetime.fromisoformat(commit.created) - session.start).total_seconds()
            pages[min(steps - 1, int(at / width))] += commit.pages - commit.carried
        before += session.seconds
    return [[round((i + 0.5) * width, 3), round(n / width, 4)] for i, n in enumerate(pages)]


def cost(
    history: Iterable[Commit], meter: Meter, *, pages: int, total: int, decoder_seconds: float | None
) -> dict[str, Any]:
    """What was spent, per million pages, and what the first pages foretold.

    Args:
        history: every commit, superseded ones too.
        meter: price and budget.
        pages: pages with a row.
        total: pages of the manifest.
        decoder_seconds: for which decoders were held; None to add up what they were busy.
    """
    units = [(c.pages - c.carried, c.busy_seconds) for c in sorted(history, key=lambda c: c.created) if c.busy_seconds]
    busy = sum(seconds for _, seconds in units)
    held = busy if decoder_seconds is None else max(busy, decoder_seconds)
    sample: list[tuple[int, float]] = []
    for unit in units:
        if sum(n for n, _ in sample) >= meter.settings.forecast_pages:
            break
        sample.append(unit)
    done = sum(n for n, _ in sample)
    forecast = meter.forecast(done, total, sum(seconds for _, seconds in sample), sample)
    return {
        "decoder_seconds": round(held, 3),
        "busy_seconds": round(busy, 3),
        "counted": "busy" if decoder_seconds is None else "held",
        "money": meter.spent(held),
        "currency": meter.settings.currency,
        "hourly_price": meter.settings.hourly_price,
        "budget": meter.settings.budget,
        "budget_spent": meter.exhausted(held),
        "per_million_pages": meter.per_million(pages, held),
        "forecast": forecast.row() if forecast else None,
    }
