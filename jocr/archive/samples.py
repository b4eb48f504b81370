"""Which pages a report shows: a fair, repeatable choice out of any number, gathered in pieces and merged.

Within a status the collections take turns: the first page of each, then the second of each; within a turn the lower
rank, a hash of the page's key, comes first. What stands too late in this order in a part of the pages also does in the
whole, since in the whole every place is taken by a page of at most that rank: so parts may be cut before they are
merged, and memory does not grow with the archive.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

PER_STATUS = 200  # candidates kept of each status


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A page that may be shown, and where its rows lie."""

    rank: int
    key: int
    status: str
    collection: str
    unit: str
    part: str  # URI of the manifest part
    row: int  # of the manifest part


def rank(key: int) -> int:
    """48 bits that depend on the page alone."""
    return int.from_bytes(hashlib.blake2b(key.to_bytes(8, "big", signed=True), digest_size=6).digest(), "big")


def reduce(candidates: Iterable[Candidate], limit: int = PER_STATUS) -> list[Candidate]:
    """The first ``limit`` of each status; ``reduce`` of a union of reduced lists is that of all pages."""
    kept: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in _by_turn(candidates):
        if len(kept[candidate.status]) < limit:
            kept[candidate.status].append(candidate)
    return [candidate for status in sorted(kept) for candidate in kept[status]]


def choose(candidates: Iterable[Candidate], limit: int) -> list[Candidate]:
    """At most ``limit`` pages, an even share for each status."""
    queues: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in _by_turn(candidates):
        queues[candidate.status].append(candidate)
    chosen: list[Candidate] = []
    for done, queue in enumerate(sorted(queues.values(), key=len)):
        chosen += queue[: (limit - len(chosen)) // (len(queues) - done)]
    return chosen


def _by_turn(candidates: Iterable[Candidate]) -> list[Candidate]:
    turns: dict[tuple[str, str], int] = defaultdict(int)
    placed = []
    for candidate in sorted(candidates):
        stratum = (candidate.status, candidate.collection)
        placed.append((turns[stratum], candidate))
        turns[stratum] += 1
    return [candidate for _, candidate in sorted(placed)]
