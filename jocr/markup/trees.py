"""TEDS: tree edit distance between two HTML tables, exact and fast.

The cost model is the one of PubTabNet's TEDS (Zhong et al. 2020) as OmniDocBench uses it: a tree table -> tr -> td,
insert and delete cost 1, a rename costs 1 where tag, colspan or rowspan differ, otherwise the normalised Levenshtein
distance of the cells' tokens (inner tags are one token each, text is one token a character). The distance is Zhang and
Shasha's (1989) dynamic programme, compiled by numba; its values equal apted's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from jocr.errors import MarkupError, UnscoredError
from jocr.markup import zhang_shasha

_WRAPPERS = {"thead", "tbody", "tfoot"}
_PRIVATE = 0xF0000  # first private-use code point that may stand for an inner tag
_CELL_OPS_PER_S = 2e9  # character comparisons a second assumed when an over-long pair of tables is refused up front


class _Node:
    """A node in post-order building: its label, its content (cells only) and how many children it has."""

    __slots__ = ("children", "label", "tokens")

    def __init__(self, label: tuple[str, int, int], tokens: list[str] | None) -> None:
        self.label = label
        self.tokens = tokens
        self.children: list[_Node] = []


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
    """
    warm_up()
    deadline = time.monotonic() + timeout_s
    ref = _table(ref_html)
    if ref is None:
        raise MarkupError("the reference has no <table>")
    pred = _table(pred_html)
    if pred is None:
        return 0.0
    sizes = [_count(pred), _count(ref)]
    if max(sizes) > max_nodes:
        raise UnscoredError(f"table of {max(sizes)} elements, cap {max_nodes}")
    if not max(sizes):
        return 1.0
    distance = _distance(_tree(pred, structure_only), _tree(ref, structure_only), deadline)
    return min(1.0, max(0.0, 1.0 - distance / max(sizes)))


def warm_up() -> None:
    """Compile the kernel (or load it from numba's cache) before the first page is scored; safe from any thread."""
    zhang_shasha.kernel()


def _table(source: str) -> Any | None:
    """The first ``table`` element, wrappers unwrapped and ``th`` renamed; None where there is none."""
    import lxml.html

    source = source.replace("\x00", "")
    if "<table" not in source.lower():
        return None
    parser = lxml.html.HTMLParser(remove_comments=True, remove_pis=True, encoding="utf-8")
    try:
        root = lxml.html.document_fromstring(source.encode("utf-8", "replace"), parser=parser)
    except (lxml.etree.LxmlError, ValueError):
        return None
    table = root if root.tag == "table" else root.find(".//table")
    if table is None:
        return None
    for element in list(table.iter("th", *_WRAPPERS)):
        if element.tag == "th":
            element.tag = "td"
        else:
            element.drop_tag()
    return table


def _count(table: Any) -> int:
    return sum(1 for _ in table.iterdescendants())


def _span(element: Any, name: str) -> int:
    value = element.get(name, "1").strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 7 else 1


def _tree(table: Any, structure_only: bool) -> _Node:
    """The TEDS tree: cells are leaves that carry tokens; anything else keeps its tag only."""
    root = _Node(("table", 0, 0), None)
    stack = [(table, root)]
    while stack:
        element, node = stack.pop()
        for child in element:
            if child.tag == "td":
                label = ("td", _span(child, "colspan"), _span(child, "rowspan"))
                node.children.append(_Node(label, [] if structure_only else list(_cell_tokens(child))))
            else:
                below = _Node((str(child.tag), 0, 0), None)
                node.children.append(below)
                stack.append((child, below))
    return root


def _cell_tokens(cell: Any) -> Iterator[str]:
    """Characters and inner tags (``<b>``, ``</b>``) of a cell. Text after a nested cell is not counted, as in TEDS."""
    if cell.text:
        yield from cell.text
    stack: list[tuple[Any, bool]] = [(child, False) for child in reversed(cell)]
    while stack:
        element, closing = stack.pop()
        if closing:
            if element.tag != "unk":
                yield f"</{element.tag}>"
            if element.tail and element.tag != "td":
                yield from element.tail
            continue
        yield f"<{element.tag}>"
        if element.text:
            yield from element.text
        stack.append((element, True))
        stack += [(child, False) for child in reversed(element)]


def _post_order(root: _Node) -> tuple[list[_Node], np.ndarray]:
    """Nodes in post-order and, for each, the post-order index of its leftmost leaf: int32 (n,)."""
    nodes: list[_Node] = []
    leftmost: list[int] = []
    stack: list[tuple[_Node, int]] = [(root, -1)]
    while stack:
        node, first = stack.pop()
        if first < 0 and node.children:
            stack.append((node, len(nodes)))
            stack += [(child, -1) for child in reversed(node.children)]
        else:
            leftmost.append(first if first >= 0 else len(nodes))
            nodes.append(node)
    return nodes, np.array(leftmost, np.int32)


def _distance(pred: _Node, ref: _Node, deadline: float) -> float:
    nodes_a, left_a = _post_order(pred)
    nodes_b, left_b = _post_order(ref)
    labels: dict[tuple[str, int, int], int] = {}
    label_a, label_b = (
        np.array([labels.setdefault(n.label, len(labels)) for n in ns], np.int32) for ns in (nodes_a, nodes_b)
    )
    text_a, text_b, costs = _cell_costs(nodes_a, nodes_b, deadline)
    return zhang_shasha.distance(left_a, left_b, label_a, label_b, text_a, text_b, costs, deadline)


def _cell_costs(
    nodes_a: list[_Node], nodes_b: list[_Node], deadline: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Index of each node's distinct content (0 = none) and the float64 cost table between distinct contents."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    symbols: dict[str, str] = {}
    tokens = [n.tokens for n in (*nodes_a, *nodes_b) if n.tokens]
    used = {t for ts in tokens for t in ts if len(t) == 1 and ord(t) >= _PRIVATE}
    free = (chr(code) for code in range(_PRIVATE, 0x110000) if chr(code) not in used)
    for t in (t for ts in tokens for t in ts if len(t) > 1):
        if t not in symbols:
            symbols[t] = next(free)
    index_a, text_a = _distinct(nodes_a, symbols)
    index_b, text_b = _distinct(nodes_b, symbols)
    if sum(map(len, text_a)) * sum(map(len, text_b)) / 64 > _CELL_OPS_PER_S * max(0.0, deadline - time.monotonic()):
        raise UnscoredError("the cells hold too much text to compare in time")
    rows = []
    for at in range(0, len(text_a), 128):
        if time.monotonic() > deadline:
            raise UnscoredError("TEDS passed its time limit")
        rows.append(cdist(text_a[at : at + 128], text_b, scorer=Levenshtein.normalized_distance, dtype=np.float64))
    return index_a, index_b, np.concatenate(rows)


def _distinct(nodes: list[_Node], symbols: dict[str, str]) -> tuple[np.ndarray, list[str]]:
    seen: dict[str, int] = {"": 0}
    index = [seen.setdefault("".join(symbols.get(t, t) for t in n.tokens or ()), len(seen)) for n in nodes]
    return np.array(index, np.int32), list(seen)
