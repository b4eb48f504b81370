"""Which neighbouring predictions OmniDocBench's quick match reads as one block (its step for split paragraphs)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jocr.evaluation.omnidocbench.costs import best_window, matrix, ned

PLAIN_HIT = 0.25
PART = 0.6  # every joined piece must be found in the annotated line at least this near


@dataclass(slots=True)
class Budget:
    """Raises TimeoutError once ``deadline`` (monotonic seconds) has passed."""

    deadline: float

    def check(self) -> None:
        if time.monotonic() > self.deadline:
            raise TimeoutError("matching passed its time budget")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run of predictions (indices) and its distance to the annotated line that asked for it."""

    run: tuple[int, ...]
    cost: float


def join_predictions(gt: Sequence[str], pred: Sequence[str], budget: Budget) -> list[list[int]]:
    """The predictions in order, as runs of one or more indices.

    Annotated lines with a plain hit, and predictions that are one, stay as they are. Every other annotated line asks
    for its best run among the other predictions; overlapping wishes are settled by ``_settle``.
    """
    hits = np.argwhere(matrix(gt, pred) < PLAIN_HIT)
    fixed_gt, fixed_pred = set(hits[:, 0].tolist()), set(hits[:, 1].tolist())
    free = [j for j in range(len(pred)) if j not in fixed_pred]
    wishes = []
    for i, line in enumerate(gt):
        if i not in fixed_gt and free:
            runs = [_grow(line, pred, j, fixed_pred, budget) for j in free]
            costs = [ned(line, "".join(pred[j] for j in run)) for run in runs]
            best = int(np.argmin(costs))
            wishes.append(Candidate(runs[best], costs[best]))
    joined = {run[0]: run for run in _settle(wishes)}
    out: list[list[int]] = []
    j = 0
    while j < len(pred):
        run = joined.get(j, (j,))
        out.append(list(run))
        j = run[-1] + 1
    return out


def _grow(line: str, pred: Sequence[str], start: int, fixed: set[int], budget: Budget) -> tuple[int, ...]:
    """The run from ``start`` that keeps getting nearer to ``line``."""
    end = start + 1
    while end < len(pred) and end not in fixed:
        budget.check()
        good, more = _may_join(line, pred[start : end + 1])
        if not good:
            break
        end += 1
        if not more:
            break
    return tuple(range(start, end))


def _may_join(line: str, pieces: Sequence[str]) -> tuple[bool, bool]:
    """Whether the last of ``pieces`` belongs to the ones before it, and whether the run may grow further."""
    before, joined = " ".join(pieces[:-1]), " ".join(pieces)
    if ned(line, joined) > ned(line, before):
        return False, False
    windows = [best_window(line, piece, PART) for piece in pieces]
    if any(w is None or w > PART for w in windows[:-1]):
        return False, False
    last = windows[-1]
    if last is None or last >= PART:
        return False, False
    return True, len(joined) <= len(line)


def _settle(wishes: Sequence[Candidate]) -> list[tuple[int, ...]]:
    """Disjoint runs: in every chain of overlapping wishes, the set of compatible ones with the least mean cost."""
    chosen: list[tuple[int, ...]] = []
    for chain in _chains(sorted(wishes, key=lambda w: w.run[0])):
        options = _compatible_sets(chain)
        best = min(options, key=lambda option: sum(w.cost for w in option) / len(option))
        chosen.extend(w.run for w in best)
    return chosen


def _chains(wishes: Sequence[Candidate]) -> list[list[Candidate]]:
    chains: list[list[Candidate]] = []
    for wish in wishes:
        if chains and any(set(wish.run) & set(other.run) for other in chains[-1]):
            chains[-1].append(wish)
        else:
            chains.append([wish])
    return chains


def _compatible_sets(chain: Sequence[Candidate]) -> list[list[Candidate]]:
    """Greedy: a wish joins every set it does not touch; the same run again keeps the cheaper; else it starts a set."""
    sets: list[list[Candidate]] = [[chain[0]]]
    for wish in chain[1:]:
        placed = False
        for group in sets:
            same = [k for k, other in enumerate(group) if other.run == wish.run]
            if same:
                placed = True
                if group[same[0]].cost > wish.cost:
                    group.pop(same[0])
                    group.append(wish)
            elif not any(set(wish.run) & set(other.run) for other in group):
                group.append(wish)
                placed = True
        if not placed:
            sets.append([wish])
    return sets
