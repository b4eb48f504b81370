"""TEDS computed by the apted package: the reference that the compiled kernel is measured and tested against."""

from __future__ import annotations

from typing import Any

import lxml.html
from apted import APTED, Config
from rapidfuzz.distance import Levenshtein


class _Tree:
    def __init__(self, tag: str, spans: tuple[str, str] = ("", ""), content: list[str] | None = None) -> None:
        self.tag, self.spans, self.content = tag, spans, content or []
        self.children: list[_Tree] = []


class _Costs(Config):
    def rename(self, node1: _Tree, node2: _Tree) -> float:
        if node1.tag != node2.tag or node1.spans != node2.spans:
            return 1.0
        longest = max(len(node1.content), len(node2.content))
        return Levenshtein.distance(node1.content, node2.content) / longest if longest else 0.0


def _tokens(element: Any) -> list[str]:
    out = list(element.text or "")
    for child in element:
        out += [f"<{child.tag}>", *_tokens(child), f"</{child.tag}>", *(child.tail or "")]
    return out


def _tree(element: Any, content: bool) -> _Tree:
    if element.tag == "td":
        spans = (element.get("colspan", "1"), element.get("rowspan", "1"))
        return _Tree("td", spans, _tokens(element) if content else None)
    node = _Tree(str(element.tag))
    node.children = [_tree(child, content) for child in element]
    return node


def teds_by_apted(pred: str, ref: str, structure_only: bool = False) -> float:
    """TEDS of two well-formed tables of ``td`` cells (no ``th``, no ``thead``)."""
    a, b = (lxml.html.fromstring(table) for table in (pred, ref))
    distance = APTED(_tree(a, not structure_only), _tree(b, not structure_only), _Costs()).compute_edit_distance()
    return 1.0 - float(distance) / max(len(a.xpath(".//*")), len(b.xpath(".//*")))
