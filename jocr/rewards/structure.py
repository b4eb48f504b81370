"""Structure: braces, environments and tags close, tables are rectangular, math and code delimiters pair up."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from jocr.markup.latex import tokenize
from jocr.markup.plain_tables import split_plain
from jocr.records import Sample
from jocr.rewards.base import Outcome, term
from jocr.rewards.view import view

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)\b[^<>]*?(/?)>")
_PAIRED = {"table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption", "b", "i", "u", "em", "strong", "sup", "sub",
           "span", "p", "div", "ul", "ol", "li", "a", "figure", "figcaption"}  # fmt: skip
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_DISPLAY = re.compile(r"(?<!\\)\$\$")


@term("structure")
def structure(prediction: str, reference: Sample) -> Outcome | None:
    """(1 - faults the reference does not have / elements) times the share of the reference's elements that exist.

    Elements are formulas, tables and code fences, and one more for all other paired HTML tags together. A page without
    any, on both sides, has nothing to be judged by.
    """
    expected, found = faults(reference.markdown), faults(prediction)
    elements = _elements(reference.markdown), _elements(prediction)
    excess = {kind: n - expected[kind] for kind, n in found.items() if n > expected[kind]}
    if not elements[0] and not elements[1] and not excess:
        return None
    sound = max(0.0, 1 - sum(excess.values()) / max(1, elements[0]))
    covered = min(1.0, elements[1] / elements[0]) if elements[0] else 1.0
    detail = {"faults": excess, "reference_elements": elements[0], "prediction_elements": elements[1]}
    return sound * covered, detail


@lru_cache(maxsize=256)
def faults(markdown: str) -> Counter[str]:
    """Structural faults by kind."""
    page = view(markdown)
    found: Counter[str] = Counter()
    for formula in page.formulas:
        found.update(latex_faults(formula.latex))
    found["ragged table"] = sum(not t.grid.rectangular for t in page.tables)
    found["tag"] = tag_faults(markdown)
    found["display delimiter"] = len(_DISPLAY.findall(markdown)) % 2
    found["display bracket"] = abs(markdown.count("\\[") - markdown.count("\\]"))
    found["code fence"] = len(_FENCE.findall(markdown)) % 2
    return +found


def latex_faults(latex: str) -> Counter[str]:
    r"""Unmatched braces, ``\begin``/``\end`` and ``\left``/``\right`` of one formula."""
    found: Counter[str] = Counter()
    open_environments: list[str] = []
    depth = 0
    for token in tokenize(latex):
        if token == "{":
            depth += 1
        elif token == "}":
            found["brace"] += depth == 0
            depth = max(0, depth - 1)
        elif token.startswith("\\begin{"):
            open_environments.append(token[7:-1])
        elif token.startswith("\\end{"):
            if open_environments and open_environments[-1] == token[5:-1]:
                open_environments.pop()
            else:
                found["environment"] += 1
        elif token in ("\\left", "\\right"):
            found["left minus right"] += 1 if token == "\\left" else -1
    found["brace"] += depth
    found["environment"] += len(open_environments)
    found["left/right"] = abs(found.pop("left minus right", 0))
    return +found


def tag_faults(markdown: str) -> int:
    """Tags of known paired elements that do not close, or close what is not open."""
    stack: list[str] = []
    wrong = 0
    for closing, name, own in _TAG.findall(split_plain(markdown)[1]):  # plain tables are balanced
        tag = name.lower()
        if tag not in _PAIRED or own:
            continue
        if not closing:
            stack.append(tag)
        elif tag in stack[-64:]:
            while (top := stack.pop()) != tag:
                wrong += top not in ("p", "li")
        else:
            wrong += 1
    return wrong + sum(t not in ("p", "li") for t in stack)


@lru_cache(maxsize=256)
def _elements(markdown: str) -> int:
    page = view(markdown)
    tagged = not page.tables and any(name.lower() in _PAIRED for _, name, _ in _TAG.findall(markdown))
    return len(page.formulas) + len(page.tables) + len(_FENCE.findall(markdown)) // 2 + tagged
