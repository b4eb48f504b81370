"""A page parsed once for all terms; the reference's view is kept over the rollouts of a group."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache

from jocr.markup.blocks import parse_blocks
from jocr.markup.latex import FormulaSpan, find_formulas, normalize, tokenize
from jocr.markup.tables import TableSpan, find_tables
from jocr.markup.text import normalize_text

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,60}>")  # a longer tag hides something in its attributes: it stays as text
MAX_DEPTH = 8  # of nested tables
_TABLE_PART = re.compile(r"<(/?)(table|t[dhr]|thead|tbody|tfoot)\b[^<>]*>", re.IGNORECASE)
_OPEN_TABLE = re.compile(r"<table\b", re.IGNORECASE)
_HIDDEN = [
    re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL),
    re.compile(r"!\[[^\]\n]*\](?:\([^)\n]*\))?"),
    re.compile(r"\\tag\*?\s*\{[^{}]{13,}\}"),
]
_ATTRIBUTES = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)\s([^<>]*)>")
_SPAN = re.compile(r"\b(?:col|row)span\s*=\s*[\"']?\d{1,4}[\"']?", re.IGNORECASE)
_PIPES = re.compile(r"(?<!\\)\||:?-{3,}:?")


class View:
    """What the terms look at. Everything is computed on first use."""

    def __init__(self, markdown: str) -> None:
        self.markdown = markdown

    @cached_property
    def formulas(self) -> list[FormulaSpan]:
        return find_formulas(self.markdown)

    @cached_property
    def formula_tokens(self) -> list[tuple[str, ...]]:
        """Case-sensitive tokens of every formula in one spelling."""
        return [tokens(f.latex) for f in self.formulas]

    @cached_property
    def tables(self) -> list[TableSpan]:
        return find_tables(self.markdown)

    @cached_property
    def table_html(self) -> list[str]:
        return [t.grid.to_html() for t in self.tables]

    @cached_property
    def kinds(self) -> Counter[str]:
        """How many blocks of each kind, headings by level; list items count one each."""
        return Counter(
            f"heading {b.level}" if b.kind == "heading" else b.kind
            for b in parse_blocks(self.markdown)
            if b.kind != "text" or b.text.strip()
        )

    @cached_property
    def text(self) -> str:
        """The page as one line: formulas in one spelling, table marks as blanks, everything else (comments and image
        texts too) as written. Case, punctuation, digits and signs count."""
        out, at = [], 0
        for piece in self._pieces():
            if piece.start >= at:
                out += [self.markdown[at : piece.start], " ", piece.text, " "]
                at = piece.end
        out.append(self.markdown[at:])
        return normalize_text(_TAG.sub(" ", "".join(out)))

    @cached_property
    def shown(self) -> str:
        """The page without what no reader sees or nobody wrote: comments, image texts, attributes other than spans,
        equation tags too long to be numbers. Unit tests look at this, so that none can be met by hiding their text."""
        out = self.markdown
        for pattern in _HIDDEN:
            out = pattern.sub("", out)
        return _shallow(_ATTRIBUTES.sub(_spans_only, out))

    def _pieces(self) -> list[_Piece]:
        pieces = [
            _Piece(t.start, t.end, _PIPES.sub(" ", self.markdown[t.start : t.end]))
            for t in self.tables
            if t.kind == "pipe"
        ]
        inside = [(p.start, p.end) for p in pieces]
        pieces += [
            _Piece(f.start, f.end, spelling(f.latex))
            for f in self.formulas
            if not any(a <= f.start < b for a, b in inside)
        ]
        return sorted(pieces, key=lambda p: p.start)


def _shallow(markdown: str) -> str:
    """Tags inside tables nested deeper than MAX_DEPTH are left out: a page holds no such thing, a bomb does."""
    if len(_OPEN_TABLE.findall(markdown)) <= MAX_DEPTH:
        return markdown
    depth = 0
    out, at = [], 0
    for tag in _TABLE_PART.finditer(markdown):
        opening, table = not tag[1], tag[2].lower() == "table"
        depth += table and opening
        if depth > MAX_DEPTH:
            out.append(markdown[at : tag.start()])
            at = tag.end()
        depth -= table and not opening and depth > 0
    return "".join([*out, markdown[at:]])


def _spans_only(match: re.Match[str]) -> str:
    return "<" + " ".join([match[1], *_SPAN.findall(match[2])]) + ">"


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    end: int
    text: str


@lru_cache(maxsize=256)
def view(markdown: str) -> View:
    return View(markdown)


@lru_cache(maxsize=8192)
def spelling(latex: str) -> str:
    """The formula in one spelling (``jocr.markup.latex.normalize``)."""
    return normalize(latex)


@lru_cache(maxsize=8192)
def tokens(latex: str) -> tuple[str, ...]:
    return tuple(tokenize(spelling(latex)))
