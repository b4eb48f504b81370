"""Format: the page is written as the reference is: the same kinds of blocks, and no wrapping around them."""

from __future__ import annotations

import re
from functools import lru_cache

from jocr.records import Sample
from jocr.rewards.base import Outcome, term
from jocr.rewards.view import view

TEXT_WEIGHT = 0.25  # paragraphs are cut differently by honest readers; headings, tables and formulas are not
WRAPPER_FACTOR = 0.7

_WRAPPERS = {
    "front matter": re.compile(r"\A\s*---\n.*?\n---\s*$", re.DOTALL | re.MULTILINE),
    "page in a fence": re.compile(r"\A\s*```(?:markdown|md|html|latex)?\s*\n", re.IGNORECASE),
    "document tags": re.compile(r"</?(?:html|body|head|!doctype)\b", re.IGNORECASE),
    "special token": re.compile(r"<\|[^<>|]{1,40}\|>|<｜[^<>｜]{1,40}｜>|</?(?:think|image|s|pad|eos|bos)>"),
    "comment": re.compile(r"<!--"),
}


@term("format")
def format_(prediction: str, reference: Sample) -> Outcome:
    """Sum of the smaller over sum of the larger number of blocks of every kind, times 0.7 for every kind of wrapping
    that the reference does not have (front matter, a fence around the page, document tags, special tokens, comments).
    """
    expected, found = view(reference.markdown).kinds, view(prediction).kinds
    both = both_max = 0.0
    for kind in expected.keys() | found.keys():
        weight = TEXT_WEIGHT if kind == "text" else 1.0
        both += weight * min(expected[kind], found[kind])
        both_max += weight * max(expected[kind], found[kind])
    added = sorted(wrappers(prediction) - wrappers(reference.markdown))
    value = (both / both_max if both_max else 1.0) * WRAPPER_FACTOR ** len(added)
    differing = {k: [expected[k], found[k]] for k in sorted(expected | found) if expected[k] != found[k]}
    return value, {"blocks_differing": differing, "wrappers": added}


@lru_cache(maxsize=256)
def wrappers(markdown: str) -> frozenset[str]:
    """Names of the kinds of wrapping found."""
    return frozenset(name for name, pattern in _WRAPPERS.items() if pattern.search(markdown))
