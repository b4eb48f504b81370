"""Tables on a Markdown page: where they stand, and HTML or pipe tables as a grid of cells with spans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from jocr.errors import MarkupError
from jocr.markup.grid import Cell, Grid
from jocr.markup.html_tables import parse_html_table

__all__ = ["Cell", "Grid", "TableSpan", "find_tables", "parse_html_table", "parse_pipe_table"]

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"[^\n]+")
_PIPE_SPLIT = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TableSpan:
    """A table found on a page: ``markdown[start:end]`` is its source."""

    kind: Literal["html", "pipe"]
    start: int
    end: int
    grid: Grid


def parse_pipe_table(lines: str) -> Grid:
    """A pipe table as a grid; row 0 is the head when a delimiter row (``|---|``) follows it; short rows stay ragged.

    Raises:
        MarkupError: no line holds a pipe.
    """
    rows: list[list[str]] = []
    headed = False
    for line in lines.splitlines():
        if not _PIPE_SPLIT.search(line):
            continue
        if len(rows) == 1 and not headed and "-" in line and _DELIMITER.fullmatch(line):
            headed = True
        else:
            rows.append(_pipe_cells(line))
    if not rows:
        raise MarkupError("no pipe table in these lines")
    cells = tuple(Cell(t, r, c, 1, 1, headed and r == 0) for r, row in enumerate(rows) for c, t in enumerate(row))
    return Grid(cells, len(rows), max(map(len, rows)))


def _pipe_cells(line: str) -> list[str]:
    parts = _PIPE_SPLIT.split(line.strip())
    if len(parts) > 1 and not parts[0].strip():
        parts = parts[1:]
    if len(parts) > 1 and not parts[-1].strip():
        parts = parts[:-1]
    return ["\n".join(map(str.strip, _BREAK.split(part.replace("\\|", "|")))).strip() for part in parts]


def find_tables(markdown: str) -> list[TableSpan]:
    """All HTML tables (nested ones: the outermost) and pipe tables outside code fences, in page order.

    An HTML table that is never closed ends at its last row or cell tag. A pipe table needs a delimiter row as its
    second line, or at least two lines that begin and end with a pipe.
    """
    return list(_find_tables(markdown))


def _blanked(text: str) -> str:
    """As many blanks and the same line breaks."""
    return _LINE.sub(lambda m: " " * len(m[0]), text)


@lru_cache(maxsize=32)
def _find_tables(markdown: str) -> tuple[TableSpan, ...]:
    masked = _FENCE.sub(lambda m: _blanked(m[0]), markdown)
    spans = [TableSpan("html", a, b, parse_html_table(markdown[a:b])) for a, b in _html_extents(masked)]
    pieces, at = [], 0
    for span in spans:
        pieces += [masked[at : span.start], _blanked(masked[span.start : span.end])]
        at = span.end
    masked = "".join([*pieces, masked[at:]])
    spans += [TableSpan("pipe", a, b, parse_pipe_table(markdown[a:b])) for a, b in _pipe_extents(masked)]
    return tuple(sorted(spans, key=lambda s: s.start))


_TABLE_EDGE = re.compile(r"<(/?)table(?=[\s/>])[^<>]*>", re.IGNORECASE)
_PART_TAG = re.compile(r"</?(?:t[dhr]|thead|tbody|tfoot)(?=[\s/>])[^<>]*>", re.IGNORECASE)


def _html_extents(text: str) -> list[tuple[int, int]]:
    extents, depth, start = [], 0, 0
    for tag in _TABLE_EDGE.finditer(text):
        if not tag[1]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                extents.append((start, tag.end()))
    if depth:
        last = max((m.end() for m in _PART_TAG.finditer(text, start)), default=0)
        if last:
            extents.append((start, last))
    return extents


def _pipe_extents(text: str) -> Iterator[tuple[int, int]]:
    run: list[tuple[int, int]] = []
    at = 0
    for line in [*text.splitlines(keepends=True), ""]:
        if _PIPE_SPLIT.search(line):
            run.append((at, at + len(line.rstrip("\r\n"))))
        else:
            if len(run) > 1 and _is_pipe_table([text[a:b] for a, b in run]):
                yield run[0][0], run[-1][1]
            run = []
        at += len(line)


def _is_pipe_table(lines: list[str]) -> bool:
    if "-" in lines[1] and _DELIMITER.fullmatch(lines[1]):
        return True
    return all(line.strip().startswith("|") and line.strip().endswith("|") for line in lines)
