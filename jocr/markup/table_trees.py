"""An HTML table as the ordered tree that TEDS compares, flattened to post-order arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from jocr.markup.plain_tables import PlainCell, plain_table

WRAPPERS = ("thead", "tbody", "tfoot")
PRIVATE = 0xF0000  # code points from here on stand for inner tags; such characters of the page itself become tokens too

Label = tuple[str, int, int]  # tag, colspan, rowspan (0, 0 for all but cells)


@dataclass(frozen=True, slots=True)
class TableTree:
    """The n nodes of one table in post-order.

    leftmost: int32 (n,), the index of each node's leftmost leaf. labels: n labels. text: int32 (n,), index of each
    node's content in ``contents`` (0, the empty content, for all but cells). contents: distinct strings, one character
    a token; inner tags are characters ``PRIVATE + i`` for ``tags[i]``. elements: count of elements below the table.
    """

    leftmost: np.ndarray
    labels: tuple[Label, ...]
    text: np.ndarray
    contents: tuple[str, ...]
    tags: tuple[str, ...]
    elements: int


@lru_cache(maxsize=64)
def parse_table_tree(source: str) -> TableTree | None:
    """The first table of ``source``, None where there is none. ``th`` is read as ``td``; ``thead``, ``tbody`` and
    ``tfoot`` are looked through. Never raises."""
    plain = plain_table(source)
    if plain is not None:
        return _plain_tree(plain)
    table = _table(source)
    return None if table is None else _Flattener().flatten(table)


def _plain_tree(rows: tuple[tuple[PlainCell, ...], ...]) -> TableTree:
    leftmost: list[int] = []
    labels: list[Label] = []
    text: list[int] = []
    contents: dict[str, int] = {"": 0}
    for row in rows:
        first = len(labels)
        leftmost += range(first, first + len(row))
        labels += (("td", cell.colspan, cell.rowspan) for cell in row)
        text += (contents.setdefault(cell.text, len(contents)) for cell in row)
        leftmost.append(first)
        labels.append(("tr", 0, 0))
        text.append(0)
    leftmost.append(0)
    labels.append(("table", 0, 0))
    text.append(0)
    arrays = np.array(leftmost, np.int32), np.array(text, np.int32)
    return TableTree(arrays[0], tuple(labels), arrays[1], tuple(contents), (), len(labels) - 1)


def _table(source: str) -> Any | None:
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
    for element in list(table.iter("th", *WRAPPERS)):
        if element.tag == "th":
            element.tag = "td"
        else:
            element.drop_tag()
    return table


class _Flattener:
    """One pass over a table element."""

    def __init__(self) -> None:
        self.leftmost: list[int] = []
        self.labels: list[Label] = []
        self.text: list[int] = []
        self.contents: dict[str, int] = {"": 0}
        self.tags: dict[str, str] = {}

    def flatten(self, table: Any) -> TableTree:
        stack: list[tuple[Any, int]] = [(table, -1)]  # (element, index its first descendant got; -1: not entered yet)
        while stack:
            element, first = stack.pop()
            tag = element.tag
            if tag == "td" and element is not table:
                self._add(len(self.labels), ("td", _span(element, "colspan"), _span(element, "rowspan")), element)
            elif first < 0 and len(element):
                stack.append((element, len(self.labels)))
                stack += [(child, -1) for child in reversed(element)]
            else:
                self._add(first if first >= 0 else len(self.labels), (str(tag), 0, 0), None)
        return TableTree(
            np.array(self.leftmost, np.int32),
            tuple(self.labels),
            np.array(self.text, np.int32),
            tuple(self.contents),
            tuple(self.tags),
            sum(1 for _ in table.iterdescendants()),
        )

    def _add(self, leftmost: int, label: Label, cell: Any | None) -> None:
        self.leftmost.append(leftmost)
        self.labels.append(label)
        content = "" if cell is None else self._content(cell)
        self.text.append(self.contents.setdefault(content, len(self.contents)))

    def _content(self, cell: Any) -> str:
        text = cell.text or ""
        if not len(cell) and (not text or max(text) < chr(PRIVATE)):
            return text
        return "".join(self._symbol(t) if len(t) > 1 or t >= chr(PRIVATE) else t for t in _tokens(cell))

    def _symbol(self, token: str) -> str:
        return self.tags.setdefault(token, chr(PRIVATE + len(self.tags) % (0x110000 - PRIVATE)))


def _span(element: Any, name: str) -> int:
    value = element.get(name)
    if value is None or value == "1":
        return 1
    value = value.strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 7 else 1


def _tokens(cell: Any) -> Iterator[str]:
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
