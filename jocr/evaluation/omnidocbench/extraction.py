"""Elements of a predicted Markdown page as OmniDocBench cuts them: tables, formulas, code, paragraphs.

The order of the cuts is part of the benchmark. What is cut is replaced by blanks, so offsets of later cuts stay those
of the page. A paragraph's position counts paragraph lengths only (not the blank lines between them): the benchmark's
reading order mixes both, and so does this module.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from jocr.evaluation.omnidocbench.normalise import INLINE_MATH

ISOLATED = "equation_isolated"
INLINE = "equation_inline"

_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_FENCE = re.compile(r"```(?:markdown|html|latex)\n?(.*?)(?:```|\Z)", re.DOTALL)
_FRAME = re.compile(r"</?(?:html|body)\b[^>]*>", re.IGNORECASE)
_LATEX_TABLE = re.compile(r"\\begin\{(table\*?|tabular\*?)\}.*?\\end\{\1\}\n?", re.DOTALL)
_TABLE_TAG = re.compile(r"<(/?)table\b[^>]*>", re.IGNORECASE)
_DISPLAY = re.compile(r"\$\$(.*?)\$\$|(?<!\\)\\\[(.*?)(?<!\\)\\\]", re.DOTALL)
_PIPE_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$")
_RULE_CELL = re.compile(r":?-+:?")
_CODE = re.compile(r"```(\w*)\n?(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Element:
    """One predicted element: ``kind`` names its pool, ``fine`` its finer type (empty where the benchmark has none)."""

    kind: str  # text_all, equation_isolated, html_table, latex_table, code_txt
    content: str
    position: int
    fine: str = ""

    @property
    def category(self) -> str:
        return self.fine or self.kind


def extract(markdown: str) -> dict[str, list[Element]]:
    """Elements by kind, each list in order of position. Nothing raises; an empty page gives an empty dict."""
    page = _Page(_strip(markdown))
    for match in _LATEX_TABLE.finditer(page.text):
        page.cut("latex_table", match.group(0), match.start(), match.end())
    for start, end in _html_tables(page.text):
        page.cut("html_table", page.text[start:end].strip(), start, end)
    for match in _DISPLAY.finditer(page.text):
        body = match.group(1) if match.group(1) is not None else match.group(2)
        if body.strip():
            page.cut(ISOLATED, "\\[" + body.strip().replace("\n", " ") + "\\]", match.start(), match.end())
    for match in INLINE_MATH.finditer(page.text):
        body = match.group(1) if match.group(1) is not None else match.group(2)
        if body.strip():
            page.found.append(Element(ISOLATED, "\\[" + body + "\\]", match.start(), INLINE))
    _pipe_tables(page)
    for match in _CODE.finditer(page.text):
        page.cut("code_txt", match.group(2).strip(), match.start(), match.end(), fine="code_txt")
    page.found.extend(_paragraphs(page.text))
    out: dict[str, list[Element]] = defaultdict(list)
    for element in sorted(page.found, key=lambda e: e.position):
        out[element.kind].append(element)
    return dict(out)


def cells(table_html: str) -> list[str]:
    """Texts of a table's cells, row by row (v1.5 puts those of unmatched tables into the text pool)."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(table_html, "html.parser")
    return [t for cell in soup.find_all(["td", "th"]) if (t := cell.get_text().strip())]


class _Page:
    """The page while it is being cut."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Element] = []

    def cut(self, kind: str, content: str, start: int, end: int, fine: str = "") -> None:
        self.found.append(Element(kind, content, start, fine))
        self.text = self.text[:start] + " " * (end - start) + self.text[end:]


def _strip(text: str) -> str:
    text = _FRAME.sub("", _FENCE.sub(r"\1", _IMAGE.sub("", text)))
    return re.sub(r" {4,}", "    ", re.sub(r"_{4,}", "____", text))


def _html_tables(text: str) -> list[tuple[int, int]]:
    """Extents of outermost tables; an unclosed one is no table."""
    extents, depth, start = [], 0, 0
    for tag in _TABLE_TAG.finditer(text):
        if not tag.group(1):
            start = tag.start() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                extents.append((start, tag.end()))
    return extents


def _pipe_tables(page: _Page) -> None:
    """Runs of at least two pipe rows become tables. The line right above a run belongs to it (as upstream has it)."""
    lines = page.text.split("\n")
    out: list[str] = []
    at = 0
    i = 0
    while i < len(lines):
        end = i
        while end < len(lines) and _PIPE_ROW.match(lines[end]):
            end += 1
        if end - i < 2:
            out.append(lines[i])
            at += len(lines[i]) + 1
            i += 1
            continue
        html = pipe_to_html(lines[i:end])
        page.found.append(Element("html_table", html, at, "md2html_table"))
        if out and out[-1].strip():
            out[-1] = ""
        out.append(" " * len(html))
        at += sum(len(line) + 1 for line in lines[i:end])
        i = end
    page.text = "\n".join(out)


def pipe_to_html(rows: list[str]) -> str:
    """The benchmark's HTML for a pipe table: one ``td`` a cell, spans of one, rule rows dropped."""
    out = ['<table border="1" >']
    for row in rows:
        texts = [c.strip() for c in row.strip().strip("|").split("|")]
        if all(_RULE_CELL.fullmatch(c) for c in texts if c) and any(texts):
            continue
        out.append("    <tr>")
        out.extend(f'      <td colspan="1" rowspan="1">{c}</td>' for c in texts)
        out.append("    </tr>")
    return "\n".join([*out, "</table>"])


def _paragraphs(text: str) -> Iterator[Element]:
    pieces = text.split("\n\n")
    if len(pieces) == 1:
        pieces = text.split("\n")
    at = 0
    for piece in pieces:
        body = "\n".join(line.strip() for line in piece.split("\n") if line.strip())
        if body:
            yield Element("text_all", body, at, "text_block")
        at += len(piece)
