"""Pairing annotated with predicted elements on one page: OmniDocBench's quick match (v1.5), and its plain one.

Quick match, in words: (1) annotated blocks of unscored kinds take the prediction that is plainly theirs out of the
pool; (2) runs of neighbouring predictions are joined where that brings them nearer to one annotated block; (3) one
assignment by normalised edit distance; (4) pairs above 0.7 are undone, and a prediction which contains a left-over
block (window distance below 0.4) takes it too; (5) what is left is paired anyway, as a full error. Predictions that
nobody needs cost nothing. The expected results of the official scorer hold this module to its tie-breaks.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jocr.evaluation.omnidocbench.annotations import FORMULA, TABLE, UNSCORED, Block
from jocr.evaluation.omnidocbench.costs import assign, best_window, matrix, ned
from jocr.evaluation.omnidocbench.extraction import Element
from jocr.evaluation.omnidocbench.joins import Budget, join_predictions
from jocr.evaluation.omnidocbench.normalise import formula_norm, text_norm

PLAIN_HIT = 0.25
UNDO = 0.7
RESCUE = 0.4


@dataclass(frozen=True, slots=True)
class Pair:
    """One scored sample: annotated block(s) against predicted element(s). Empty ``pred`` means nothing was found."""

    gt: tuple[int, ...]  # indices into the page's pool; empty where predictions are left over
    pred: tuple[int, ...]
    gt_category: str
    pred_category: str  # empty where nothing was found
    gt_text: str  # normalised, joined
    pred_text: str
    order: tuple[int, ...]  # annotated reading order of the blocks
    position: int | None  # of the first predicted element
    cost: float  # the matcher's own; the metric is computed anew from the two texts
    gt_raw: str = ""
    pred_raw: str = ""
    blocks: tuple[int, ...] = ()  # indices into the page's ``mixed`` blocks
    alternatives: tuple[str, ...] = ()  # further valid readings of the annotated formula


def normalised(category: str, content: str) -> str:
    return formula_norm(content) if category in (FORMULA, "equation_inline") else text_norm(content)


@dataclass(slots=True)
class _Pool:
    """Both sides after normalisation; elements that normalise to nothing are out, positions shift with them.

    The official scorer looks positions up in the unfiltered list by the filtered index; so does ``position``.
    """

    gt_index: list[int]
    gt: list[str]
    pred: list[str]
    blocks: Sequence[Block]
    elements: Sequence[Element]
    kept: list[int]

    @classmethod
    def of(cls, blocks: Sequence[Block], elements: Sequence[Element]) -> _Pool:
        gt_norm = [normalised(b.category, b.content) for b in blocks]
        pred_norm = [normalised(e.category, e.content) for e in elements]
        gt_index = [i for i, t in enumerate(gt_norm) if t]
        kept = [i for i, t in enumerate(pred_norm) if t]
        return cls(gt_index, [gt_norm[i] for i in gt_index], [pred_norm[i] for i in kept], blocks, elements, kept)

    def pair(self, gt: Sequence[int], pred: Sequence[int], cost: float) -> Pair:
        """``gt`` and ``pred`` are indices into ``self.gt`` and ``self.pred``."""
        blocks = [self.blocks[self.gt_index[i]] for i in gt]
        elements = [self.elements[self.kept[j]] for j in pred]
        return Pair(
            gt=tuple(gt),
            pred=tuple(pred),
            gt_category=blocks[0].category if blocks else "",
            pred_category=elements[0].category if elements else "",
            gt_text="".join(self.gt[i] for i in gt),
            pred_text="".join(self.pred[j] for j in pred),
            order=tuple(b.order for b in blocks if b.order is not None),
            position=self.elements[pred[0]].position if pred else None,
            cost=cost,
            gt_raw="\n".join(b.content for b in blocks),
            pred_raw="\n".join(e.content for e in elements),
            blocks=tuple(self.gt_index[i] for i in gt),
        )


def quick_match(
    blocks: Sequence[Block], elements: Sequence[Element], *, budget_s: float = 30.0
) -> tuple[list[Pair], bool]:
    """Pairs of one page's mixed pool, and whether the time budget ran out and ``simple_match`` took over."""
    pool = _Pool.of(blocks, elements)
    budget = Budget(time.monotonic() + budget_s)
    try:
        return _quick(pool, budget), False
    except TimeoutError:
        return _simple(pool), True


def simple_match(blocks: Sequence[Block], elements: Sequence[Element]) -> list[Pair]:
    """One assignment by normalised edit distance, nothing joined."""
    return _simple(_Pool.of(blocks, elements))


def _simple(pool: _Pool) -> list[Pair]:
    costs = matrix(pool.gt, pool.pred)
    pairs = [pool.pair([r], [c], float(costs[r, c])) for r, c in assign(costs)]
    found = {p.gt[0] for p in pairs}
    return pairs + [pool.pair([i], [], 1.0) for i in range(len(pool.gt)) if i not in found]


def _quick(pool: _Pool, budget: Budget) -> list[Pair]:
    if not pool.gt or not pool.pred:
        return [pool.pair([i], [], 1.0) for i in range(len(pool.gt))]
    gt_ids, pred_ids = _without_unscored(pool)
    gt, pred = [pool.gt[i] for i in gt_ids], [pool.pred[j] for j in pred_ids]
    matched = _match_lines(gt, pred, budget)
    return [pool.pair([gt_ids[i] for i in g], [pred_ids[j] for j in p], cost) for g, p, cost in matched]


def _without_unscored(pool: _Pool) -> tuple[list[int], list[int]]:
    """Indices left when blocks of unscored kinds are out, with the predictions that are plainly theirs."""
    costs = matrix(pool.gt, pool.pred)
    gone_gt: set[int] = set()
    gone_pred: set[int] = set()
    for i, index in enumerate(pool.gt_index):
        if pool.blocks[index].category not in UNSCORED:
            continue
        gone_gt.add(i)
        j = int(np.argmin(costs[i]))
        if costs[i, j] < PLAIN_HIT:
            gone_pred.add(j)
    return (
        [i for i in range(len(pool.gt)) if i not in gone_gt],
        [j for j in range(len(pool.pred)) if j not in gone_pred],
    )


Match = tuple[list[int], list[int], float]


def _match_lines(gt: list[str], pred: list[str], budget: Budget) -> list[Match]:
    """Groups of annotated lines and predicted lines with their cost; unpaired annotated lines come last."""
    if not gt or not pred:
        return [([i], [], 1.0) for i in range(len(gt))]
    runs = join_predictions(gt, pred, budget)
    costs = matrix(gt, ["".join(pred[j] for j in run) for run in runs])
    chosen: dict[tuple[int, ...], list[int]] = {}
    for r, c in assign(costs):
        if costs[r, c] <= UNDO:
            chosen[tuple(runs[c])] = [r]
    _rescue(gt, pred, chosen, budget)
    out = [(sorted(g), list(p), _cost(gt, pred, sorted(g), p)) for p, g in chosen.items() if g]
    taken_gt = {i for g, _, _ in out for i in g}
    taken_pred = {j for p in chosen for j in p}
    left_gt = [i for i in range(len(gt)) if i not in taken_gt]
    left_pred = [j for j in range(len(pred)) if j not in taken_pred]
    return out + _force(gt, pred, left_gt, left_pred)


def _rescue(gt: list[str], pred: list[str], chosen: dict[tuple[int, ...], list[int]], budget: Budget) -> None:
    """Left-over annotated lines join the first single prediction that contains them."""
    taken = {i for g in chosen.values() for i in g}
    left = [i for i in range(len(gt)) if i not in taken]
    done: set[int] = set()
    for j, text in enumerate(pred):
        hits = []
        for i in left:
            budget.check()
            window = best_window(text, gt[i], RESCUE)
            if window is not None and window < RESCUE:
                hits.append(i)
        if hits:
            chosen.setdefault((j,), []).extend(i for i in hits if i not in done)
            done.update(hits)


def _cost(gt: list[str], pred: list[str], g: Sequence[int], p: Sequence[int]) -> float:
    if len(g) > 1:
        return ned("".join(gt[i] for i in g), pred[p[0]])
    return ned(gt[g[0]], " ".join(pred[j] for j in p))


def _force(gt: list[str], pred: list[str], left_gt: list[int], left_pred: list[int]) -> list[Match]:
    costs = matrix([gt[i] for i in left_gt], [pred[j] for j in left_pred])
    pairs = assign(costs) if left_gt and left_pred else []
    rows = {r for r, _ in pairs}
    forced: list[Match] = [([left_gt[r]], [left_pred[c]], 1.0) for r, c in pairs]
    return forced + [([i], [], 1.0) for k, i in enumerate(left_gt) if k not in rows]


def match_tables(tables: Sequence[Block], predicted: Sequence[Element]) -> tuple[list[Pair], list[Element]]:
    """Table pairs by raw HTML distance, and the predicted tables nobody took."""
    from jocr.evaluation.omnidocbench.normalise import table_norm

    costs = matrix([t.content for t in tables], [e.content for e in predicted])
    found = assign(costs) if tables and predicted else []
    pairs = [_table_pair(tables, i, predicted[j], j, float(costs[i, j])) for i, j in found]
    rows = {i for i, _ in found}
    pairs += [_table_pair(tables, i, None, -1, 1.0) for i in range(len(tables)) if i not in rows]
    columns = {j for _, j in found}
    return [replace(p, gt_text=table_norm(p.gt_raw), pred_text=table_norm(p.pred_raw)) for p in pairs], [
        e for j, e in enumerate(predicted) if j not in columns
    ]


def _table_pair(tables: Sequence[Block], i: int, element: Element | None, j: int, cost: float) -> Pair:
    block = tables[i]
    order = () if block.order is None else (block.order,)
    if element is None:
        return Pair((i,), (), TABLE, "", "", "", order, None, cost, block.content, "")
    return Pair((i,), (j,), TABLE, element.kind, "", "", order, element.position, cost, block.content, element.content)
