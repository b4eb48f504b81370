"""Unit tests of a synthetic page, in the olmOCR-Bench form, made from its reference alone.

Every test holds on the reference itself. Texts asked for occur once on the page, so that a test cannot be met by
another place. The same page always gets the same tests.
"""

from __future__ import annotations

import random
import re
import zlib
from itertools import pairwise
from typing import Any

from jocr.synth.page import SynthPage

_ROW = re.compile(r"<tr>(.*?)</tr>")
_CELL = re.compile(r'<td(?: colspan="(\d+)")?>(.*?)</td>')
_MARK = re.compile(r"^(#{1,6} |- |\d+\. )")
_INLINE = re.compile(r"\$[^$ ][^$]*\$")
_WORDS = 7  # of a line asked for


def checks_for(page: SynthPage, pdf: str = "synth.pdf", number: int = 1) -> list[dict[str, Any]]:
    """Tests of types present, order, table and math for one page.

    Args:
        page: the page; only ``markdown`` is read.
        pdf, number: what the tests name as their file and page (``number`` counts from 1).

    Returns dicts with the keys of the benchmark's JSONL (``pdf``, ``page``, ``id``, ``type`` and those of the type);
    a page may have none of a type, and a page of nothing but unusable text has none at all.
    """
    rng = random.Random(zlib.crc32(page.markdown.encode()))
    texts = [t for t in (_line(rng, block, page.markdown) for block in _text_blocks(page.markdown)) if t]
    found = [{"type": "present", "text": text} for text in texts]
    found += [{"type": "order", "before": a, "after": b} for a, b in pairwise(texts)]
    for table in re.findall(r"<table>.*?</table>", page.markdown):
        found += _table_checks(rng, table)
    found += [{"type": "math", "math": latex} for latex in re.findall(r"\$\$(.*?)\$\$", page.markdown)]
    stem = pdf.rpartition("/")[2].removesuffix(".pdf")
    return [
        {"pdf": pdf, "page": number, "id": f"{stem}_pg{number}_{test['type']}_{i}", **test}
        for i, test in enumerate(found)
    ]


def _text_blocks(markdown: str) -> list[str]:
    """Headings, paragraphs and list items without their marks, in reading order."""
    blocks = [b for b in markdown.split("\n\n") if not b.startswith(("<table>", "$$"))]
    return [_MARK.sub("", line) for block in blocks for line in block.split("\n")]


def _line(rng: random.Random, text: str, page: str) -> str:
    """A few neighbouring words of ``text``, free of formulas, that occur once on the page; empty if there are none."""
    pieces = [piece.split() for piece in _INLINE.split(text)]
    words = max(pieces, key=len)
    for _ in range(5):
        start = rng.randrange(max(1, len(words) - _WORDS + 1))
        line = " ".join(words[start : start + _WORDS])
        if len(line) >= 4 and page.count(line) == 1 and any(c.isalnum() for c in line):
            return line
    return ""


def _grid(table: str) -> list[list[tuple[str, int]]]:
    """Per row the texts of its cells with the number of columns each spans."""
    return [[(text, int(span or 1)) for span, text in _CELL.findall(row)] for row in _ROW.findall(table)]


def _table_checks(rng: random.Random, table: str) -> list[dict[str, Any]]:
    """Up to three cells with the neighbours they have."""
    rows = _grid(table)
    if any(span > 1 for row in rows for _, span in row):
        rows = [row for row in rows if all(span == 1 for _, span in row)]
        return [_relation(row, c) for row in rows[:1] for c in range(1) if _usable(table, row[c][0])]
    cells = [(r, c) for r, row in enumerate(rows) for c, (text, _) in enumerate(row) if _usable(table, text)]
    checks = []
    for r, c in rng.sample(cells, min(3, len(cells))):
        check = _relation(rows[r], c)
        column = [row[c][0] for row in rows]
        check |= {k: column[i] for k, i in (("up", r - 1), ("down", r + 1)) if 0 <= i < len(rows) and column[i]}
        if r > 1 and column[0]:
            check["top_heading"] = column[0]
        if c > 1 and rows[r][0][0]:
            check["left_heading"] = rows[r][0][0]
        checks.append(check)
    return [check for check in checks if len(check) > 2]


def _relation(row: list[tuple[str, int]], c: int) -> dict[str, Any]:
    sides = {k: row[i][0] for k, i in (("left", c - 1), ("right", c + 1)) if 0 <= i < len(row) and row[i][0]}
    return {"type": "table", "cell": row[c][0], **sides}


def _usable(table: str, text: str) -> bool:
    """Whether a cell can be told from all others of its table."""
    return bool(text) and table.count(f">{text}<") == 1
