"""Presentation MathML reduced to what a reader sees: the strict comparison of two equations.

Wrappers, spacing, sizes and upright/italic vanish; structure (roots, fractions, scripts, accents, tables), characters
and marked fonts (bold, blackboard, script, Fraktur) stay. Equal forms mean the same equation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from xml.etree import ElementTree

MAX_TAG = 12  # characters an equation number may have to be taken for one
MAX_DEPTH = 200
_WRAPPERS = frozenset({"math", "semantics", "mrow", "mstyle", "mpadded"})
_SPACES = frozenset({"mspace"})
_FONTS = re.compile("bold|double-struck|script|fraktur|sans-serif|monospace")
_NOT_SHOWN = re.compile(r"[\s\u200b-\u200d\u2060-\u2064\ufeff]+")
_SAME = str.maketrans({"ˉ": "‾", "¯": "‾", "′": "'", "∣": "|", "−": "-", "∗": "*"})
_END = (".", ",", ";")


@lru_cache(maxsize=8192)
def form(mathml: str) -> tuple[tuple[str, ...], str]:
    """The tokens of an equation and its number (empty where it has none).

    ``mathml`` is a whole ``<math>`` element without annotation. A trailing full stop, comma or semicolon is dropped,
    and a "number" of more than MAX_TAG characters stays part of the equation.
    """
    try:
        root = ElementTree.fromstring(mathml)
    except ElementTree.ParseError:
        return ("unreadable", mathml), ""
    body, tag = _untagged(_only(root))
    tokens = [token for part in body for token in _tokens(part, 0)]
    while tokens and tokens[-1] in _END:
        tokens.pop()
    return tuple(tokens), tag


def _untagged(root: ElementTree.Element) -> tuple[list[ElementTree.Element], str]:
    """KaTeX sets a numbered equation as a table of full width: blank, equation, blank, number."""
    if root.tag == "mtable" and root.get("width") == "100%":
        cells = next(root.iter("mtr")).findall("mtd")
        number = _shown("".join(cells[-1].itertext())) if len(cells) == 4 else ""
        if 0 < len(number) <= MAX_TAG:
            return list(cells[1]), number
    return [root], ""


def _tokens(element: ElementTree.Element, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        yield "too deep"
        return
    children = list(element)
    if element.tag in _SPACES:
        return
    if not children:
        font = "+".join(sorted(_FONTS.findall(element.get("mathvariant", ""))))
        yield from (font + char for char in _shown(element.text or ""))
        return
    if element.tag in _WRAPPERS:
        for child in children:
            yield from _tokens(child, depth + 1)
        return
    name, children = _scripts(element.tag, children)
    yield name + ("0" if str(element.get("linethickness", "")).startswith("0") else "")
    for child in children:
        yield from _tokens(child, depth + 1)
        yield ","
    yield "/" + name


def _scripts(name: str, children: list[ElementTree.Element]) -> tuple[str, list[ElementTree.Element]]:
    """``{x_i}^2`` and ``x_i^2`` look alike, and so do both ways of setting limits."""
    name = {"munder": "msub", "munderover": "msubsup"}.get(name, name)
    base = _only(children[0])
    if name == "msup" and base.tag == "msub":
        return "msubsup", [*base, children[1]]
    return name, children


def _only(element: ElementTree.Element) -> ElementTree.Element:
    while element.tag in _WRAPPERS and len(element) == 1:
        element = element[0]
    return element


def _shown(text: str) -> str:
    return _NOT_SHOWN.sub("", text).translate(_SAME)
