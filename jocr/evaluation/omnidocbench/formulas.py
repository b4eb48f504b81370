r"""v1.6's formula pool: display formulas alone, three ways of matching, the least total edit distance wins.

Formulas of one column or aligned lines are cut into lines on both sides first, so that a parser which writes one
``$$`` per line is not punished. Braces that group nothing and ``cases`` variants are written one way. Implemented from
the published description; the recorded results this project has are v1.5's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jocr.evaluation.omnidocbench.annotations import FORMULA, Block
from jocr.evaluation.omnidocbench.costs import assign, matrix
from jocr.evaluation.omnidocbench.extraction import ISOLATED, Element
from jocr.evaluation.omnidocbench.matching import Pair, quick_match
from jocr.evaluation.omnidocbench.metrics import distance
from jocr.evaluation.omnidocbench.normalise import formula_norm

MAX_PIECES = 12  # the dynamic programme is tried up to this many lines a side
MAX_GROUP = 4

_LINES = re.compile(r"\\begin\{(aligned|align\*?|gathered|gather\*?|split|eqnarray\*?)\}(.*?)\\end\{\1\}", re.DOTALL)
_COLUMN = re.compile(r"\\begin\{array\}\s*\{\s*\|?[lcr]\|?\s*\}(.*?)\\end\{array\}", re.DOTALL)
_LINE_END = re.compile(r"\\\\(?:\[[^\]]*\])?")
_CASES = re.compile(r"\\left\s*\\\{\s*\\begin\{array\}\s*\{[^}]*\}(.*?)\\end\{array\}\s*\\right\s*\.", re.DOTALL)
_BARE_BRACES = re.compile(r"\{\s*\}")


@dataclass(frozen=True, slots=True)
class Piece:
    """One line of a formula, where it came from, and its place in reading order or on the predicted page."""

    source: int
    text: str
    raw: str
    place: int
    alternatives: tuple[str, ...] = ()  # of the whole formula; only where it is one line


def lines(latex: str) -> list[str]:
    """The display lines of a formula: alignment environments and one-column arrays are cut at ``\\\\``."""
    body = latex.strip().strip("$").strip().removeprefix("\\[").removesuffix("\\]").strip()
    body = _CASES.sub(r"\\begin{cases}\1\\end{cases}", body)
    whole = _LINES.fullmatch(body) or _COLUMN.fullmatch(body)
    if whole is None:
        return [body]
    parts = [p.replace("&", " ").strip() for p in _LINE_END.split(whole.group(whole.lastindex or 1))]
    kept = [p for p in parts if p]
    return kept or [body]


def match(blocks: Sequence[Block], predicted: Sequence[Element]) -> list[Pair]:
    """Formula samples of a page: every annotated line is in exactly one of them."""
    gt = _pieces([(b.content, b.order or 0, b.alternatives) for b in blocks])
    pred = _pieces([(e.content, e.position, ()) for e in predicted])
    if not gt:
        return []
    options = [_hungarian(gt, pred), _quick(gt, pred)]
    if pred and max(len(gt), len(pred)) <= MAX_PIECES:
        options.append(_in_order(gt, pred))
    return min(options, key=lambda pairs: sum(distance(p.gt_text, p.pred_text)[0] for p in pairs))


def _pieces(sources: Sequence[tuple[str, int, tuple[str, ...]]]) -> list[Piece]:
    out = []
    for i, (latex, place, alternatives) in enumerate(sources):
        cut = lines(latex)
        for line in cut:
            text = _BARE_BRACES.sub("", formula_norm(line))
            if text:
                out.append(Piece(i, text, line, place, alternatives if len(cut) == 1 else ()))
    return out


def _pair(gt: Sequence[Piece], g: Sequence[int], pred: Sequence[Piece], p: Sequence[int]) -> Pair:
    return Pair(
        gt=tuple(g),
        pred=tuple(p),
        gt_category=FORMULA,
        pred_category=ISOLATED if p else "",
        gt_text="".join(gt[i].text for i in g),
        pred_text="".join(pred[j].text for j in p),
        order=tuple(dict.fromkeys(gt[i].place for i in g)),
        position=pred[p[0]].place if p else None,
        cost=1.0 if not p else 0.0,
        gt_raw="\n".join(gt[i].raw for i in g),
        pred_raw="\n".join(pred[j].raw for j in p),
        alternatives=gt[g[0]].alternatives if len(g) == 1 else (),
    )


def _hungarian(gt: Sequence[Piece], pred: Sequence[Piece]) -> list[Pair]:
    found = dict(assign(matrix([x.text for x in gt], [x.text for x in pred]))) if pred else {}
    return [_pair(gt, [i], pred, [found[i]] if i in found else []) for i in range(len(gt))]


def _quick(gt: Sequence[Piece], pred: Sequence[Piece]) -> list[Pair]:
    pairs, _ = quick_match(
        [Block(FORMULA, x.raw, k) for k, x in enumerate(gt)],
        [Element(ISOLATED, x.raw, k) for k, x in enumerate(pred)],
    )
    return [_pair(gt, p.gt, pred, p.pred) for p in pairs if p.gt]


def _in_order(gt: Sequence[Piece], pred: Sequence[Piece]) -> list[Pair]:
    """Least total distance over alignments that keep both orders and join up to four neighbours on either side."""
    best: dict[tuple[int, int], tuple[float, list[tuple[range, range]]]] = {(0, 0): (0.0, [])}
    for i in range(len(gt) + 1):
        for j in range(len(pred) + 1):
            if (i, j) not in best:
                continue
            cost, steps = best[(i, j)]
            for di, dj in _steps(len(gt) - i, len(pred) - j):
                g, p = range(i, i + di), range(j, j + dj)
                step = distance("".join(gt[k].text for k in g), "".join(pred[k].text for k in p))[0] if di else 0
                key = (i + di, j + dj)
                if key not in best or cost + step < best[key][0]:
                    best[key] = (cost + step, [*steps, (g, p)] if di else steps)
    return [_pair(gt, list(g), pred, list(p)) for g, p in best[(len(gt), len(pred))][1]]


def _steps(rows: int, columns: int) -> list[tuple[int, int]]:
    """One line unmatched on either side, one to one, one to many, many to one."""
    out = [(1, 0)] * (rows > 0) + [(0, 1)] * (columns > 0)
    out += [(1, k) for k in range(1, min(MAX_GROUP, columns) + 1) if rows]
    out += [(k, 1) for k in range(2, min(MAX_GROUP, rows) + 1) if columns]
    return out
