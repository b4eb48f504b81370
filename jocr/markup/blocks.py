"""A Markdown page as ordered blocks. The blocks partition the page: joining their texts gives the page back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from jocr.markup.latex import find_formulas
from jocr.markup.tables import find_tables

BlockKind = Literal["text", "heading", "list", "table", "formula", "code", "image"]


@dataclass(frozen=True, slots=True)
class Block:
    """``markdown[start:end] == text``, blank lines after the block included.

    ``level``: 1-6 for a heading, the indent depth of the first item for a list (0-based), None otherwise.
    """

    kind: BlockKind
    text: str
    start: int
    end: int
    level: int | None = None

    @property
    def content(self) -> str:
        """The text without surrounding blank space; for headings without the marks."""
        body = self.text.strip()
        if self.kind == "heading":
            return _HEADING_MARKS.sub("", body).strip()
        return body


_HEADING_MARKS = re.compile(r"^#{1,6}(?=\s|$)|[ \t]+#+[ \t]*$|\n[ \t]*(?:=+|-+)[ \t]*$")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_ITEM = re.compile(r"([ \t]*)(?:[-*+•]|\(?\d{1,9}[.)]|\(?[a-zA-Z][.)])[ \t]+\S")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_IMAGE = re.compile(r"[ \t]*(?:!\[[^\]]*\]\([^)]*\)|<img\b[^<>]*>)[ \t]*$", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def parse_blocks(markdown: str) -> list[Block]:
    """All blocks in page order; never raises. A page of blank space only is one empty text block."""
    return list(_parse(markdown)) if markdown else []


@lru_cache(maxsize=32)
def _parse(markdown: str) -> tuple[Block, ...]:
    fixed = _fixed_extents(markdown)
    pieces: list[tuple[int, BlockKind, int | None]] = []  # (start, kind, level): a block ends where the next starts
    at = 0
    for start, end, kind in [*fixed, (len(markdown), len(markdown), "text")]:
        pieces += _line_blocks(markdown, at, start)
        if end > start:
            pieces.append((start, kind, None))
        at = end
    if not pieces:
        pieces = [(0, "text", None)]
    pieces[0] = (0, *pieces[0][1:])
    ends = [piece[0] for piece in pieces[1:]] + [len(markdown)]
    return tuple(Block(k, markdown[a:b], a, b, level) for (a, k, level), b in zip(pieces, ends, strict=True))


def _fixed_extents(markdown: str) -> list[tuple[int, int, BlockKind]]:
    """Code fences, tables and display formulas that stand on lines of their own; disjoint, in order."""
    extents: list[tuple[int, int, BlockKind]] = [(a, b, "code") for a, b in _fences(markdown)]
    extents += [(span.start, span.end, "table") for span in find_tables(markdown)]
    extents += [
        (f.start, f.end, "formula")
        for f in find_formulas(markdown)
        if f.kind == "display" and _alone(markdown, f.start, f.end)
    ]
    extents.sort(key=lambda e: (e[0], -e[1]))
    out: list[tuple[int, int, BlockKind]] = []
    for extent in extents:
        if not out or extent[0] >= out[-1][1]:
            out.append(extent)
    return out


def _alone(markdown: str, start: int, end: int) -> bool:
    before = markdown[markdown.rfind("\n", 0, start) + 1 : start]
    newline = markdown.find("\n", end)
    after = markdown[end : newline if newline >= 0 else len(markdown)]
    return not before.strip() and len(after.strip()) <= 2


def _fences(markdown: str) -> Iterator[tuple[int, int]]:
    fence, start, at = "", 0, 0
    for line in markdown.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence, start = mark[1], at
        elif fence and mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
            yield start, at + len(line)
            fence = ""
        at += len(line)
    if fence:
        yield start, at


def _line_blocks(markdown: str, start: int, end: int) -> Iterator[tuple[int, BlockKind, int | None]]:
    """Headings, lists, images and paragraphs of ``markdown[start:end]`` as (start, kind, level)."""
    open_kind: BlockKind | None = None  # the block that the next non-blank line may continue
    pending: tuple[int, BlockKind, int | None] | None = None  # a one-line paragraph that an underline makes a heading
    at = start
    blank = False
    for line in markdown[start:end].splitlines(keepends=True):
        here, at = at, at + len(line)
        if not line.strip():
            blank = True
            if pending:
                yield pending
                pending = None
            continue
        underline = _SETEXT.match(line)
        if pending and underline:
            yield pending[0], "heading", 1 if underline[1][0] == "=" else 2
            pending, open_kind, blank = None, None, False
            continue
        kind, level = _line_kind(line, open_kind, blank)
        continues = kind == open_kind and kind in ("text", "list") and (kind == "list" or not blank)
        if pending:
            yield pending
            pending = None
        if not continues:
            if kind == "text":
                pending = (here, kind, level)
            else:
                yield here, kind, level
        open_kind, blank = kind, False
    if pending:
        yield pending


def _line_kind(line: str, open_kind: BlockKind | None, blank: bool) -> tuple[BlockKind, int | None]:
    heading = _ATX.match(line)
    if heading:
        return "heading", len(heading[1])
    if _IMAGE.match(line):
        return "image", None
    item = _ITEM.match(line)
    if item and not _RULE.match(line):
        return "list", len(item[1].expandtabs(4)) // 2
    if open_kind == "list" and (not blank or line[:2] in ("  ", "\t")):
        return "list", None
    return "text", None
