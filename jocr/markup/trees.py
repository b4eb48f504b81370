"""TEDS: tree edit distance between two HTML tables, exact and fast.

The cost model is the one of PubTabNet's TEDS (Zhong et al. 2020) as OmniDocBench uses it: a tree table -> tr -> td,
insert and delete cost 1, a rename costs 1 where tag, colspan or rowspan differ, otherwise the normalised Levenshtein
distance of the cells' tokens (inner tags are one token each, text is one token a character). The distance is Zhang and
Shasha's (1989) dynamic programme, compiled by numba; its values equal apted's.
"""

from __future__ import annotations

import time

import numpy as np

from jocr.errors import ConfigError, MarkupError, UnscoredError
from jocr.markup import zhang_shasha
from jocr.markup.table_trees import PRIVATE, Label, TableTree, parse_table_tree

CELL_OPS_PER_S = 2e9  # character comparisons a second assumed when tables with too much text are refused up front


def teds(
    pred_html: str,
    ref_html: str,
    *,
    structure_only: bool = False,
    max_nodes: int = 4000,
    timeout_s: float = 10.0,
) -> float:
    """TEDS (or, with ``structure_only``, TEDS-S) of the first table in each string, in [0, 1].

    ``th`` counts as ``td`` and ``thead``/``tbody``/``tfoot`` are looked through, as both benchmarks do. A prediction
    without a table scores 0; the score is 1 - distance / max(element counts below the table).

    Raises:
        MarkupError: the reference has no table.
        UnscoredError: a table has more than ``max_nodes`` elements, or the computation would pass ``timeout_s``.
        ConfigError: the packages of the ``eval`` extra are not installed.
    """
    warm_up()
    deadline = time.monotonic() + timeout_s
    ref, pred = parse_table_tree(ref_html), parse_table_tree(pred_html)
    if ref is None:
        raise MarkupError("the reference has no <table>")
    if pred is None:
        return 0.0
    size = max(pred.elements, ref.elements)
    if size > max_nodes:
        raise UnscoredError(f"table of {size} elements, cap {max_nodes}")
    if not size:
        return 1.0
    distance = _distance(pred, ref, structure_only, deadline)
    return min(1.0, max(0.0, 1.0 - distance / size))


def warm_up() -> None:
    """Compile the kernel (or load it from numba's cache) before the first page is scored; safe from any thread."""
    zhang_shasha.kernel()
    try:
        import lxml.html  # noqa: F401
        import rapidfuzz.process  # noqa: F401
    except ImportError as error:
        raise ConfigError("TEDS needs lxml and rapidfuzz: pip install 'jocr[eval]'") from error


def _distance(pred: TableTree, ref: TableTree, structure_only: bool, deadline: float) -> float:
    ids: dict[Label, int] = {}
    label_a, label_b = (np.array([ids.setdefault(x, len(ids)) for x in t.labels], np.int32) for t in (pred, ref))
    text_a, text_b, costs = pred.text, ref.text, np.zeros((1, 1))
    if structure_only:
        text_a, text_b = np.zeros_like(text_a), np.zeros_like(text_b)
    else:
        costs = _content_costs(pred, ref, deadline)
    return zhang_shasha.distance(pred.leftmost, ref.leftmost, label_a, label_b, text_a, text_b, costs, deadline)


def _content_costs(pred: TableTree, ref: TableTree, deadline: float) -> np.ndarray:
    """Normalised Levenshtein distance of every content of ``pred`` to every content of ``ref``: float64."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    ours, theirs = list(pred.contents), list(ref.contents)
    if pred.tags != ref.tags:
        both = {tag: PRIVATE + i for i, tag in enumerate(dict.fromkeys((*pred.tags, *ref.tags)))}
        ours, theirs = (_recode(tree, both) for tree in (pred, ref))
    if sum(map(len, ours)) * sum(map(len, theirs)) / 64 > CELL_OPS_PER_S * max(0.0, deadline - time.monotonic()):
        raise UnscoredError("the cells hold too much text to compare in time")
    rows = []
    for at in range(0, len(ours), 128):
        if time.monotonic() > deadline:
            raise UnscoredError("TEDS passed its time limit")
        rows.append(cdist(ours[at : at + 128], theirs, scorer=Levenshtein.normalized_distance, dtype=np.float64))
    return np.concatenate(rows)


def _recode(tree: TableTree, codes: dict[str, int]) -> list[str]:
    table = {PRIVATE + i: codes[tag] for i, tag in enumerate(tree.tags)}
    return [content.translate(table) for content in tree.contents]
