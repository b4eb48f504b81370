"""Plain HTML tables, read by one regular expression: the form most models write and ``Grid.to_html`` gives.

Plain is ``<table>`` / ``<tr>`` / ``<td>`` or ``<th>`` closed in order, no attributes but spans, and cells of text
without tags, entities or control characters. All three readers of HTML tables here (grid, TEDS tree, table check)
understand such a table alike, so they share this one pass and keep their own parsers for everything else.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_TEXT = "[^\\s<>&\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\U000f0000-\U0010ffff]"
_BODY = rf"(?:{_TEXT}+(?: +{_TEXT}+)*)?"
_SPANS = r'(?: rowspan="[1-9]\d{0,2}")?(?: colspan="[1-9]\d{0,2}")?'
PLAIN = re.compile(rf"<table>\s*(?:<tr>\s*(?:<(t[dh]){_SPANS}>{_BODY}</\1>\s*)*</tr>\s*)*</table>")
_PART = re.compile(r'<(?:(tr)|(t[dh])(?: rowspan="(\d+)")?(?: colspan="(\d+)")?)>([^<]*)')
MAX_CHARS = 200_000


class PlainCell(NamedTuple):
    """``tag`` is td or th; blanks inside ``text`` are single unless the author wrote more."""

    tag: str
    rowspan: int
    colspan: int
    text: str


@lru_cache(maxsize=64)
def plain_table(source: str) -> tuple[tuple[PlainCell, ...], ...] | None:
    """The rows of a source that is one plain table and nothing else; None for any other source."""
    if len(source) > MAX_CHARS or not PLAIN.fullmatch(source):
        return None
    rows: list[list[PlainCell]] = []
    for row, tag, rowspan, colspan, text in _PART.findall(source):
        if row:
            rows.append([])
        else:
            rows[-1].append(PlainCell(tag, int(rowspan or 1), int(colspan or 1), text))
    return tuple(map(tuple, rows))


def spanless_table(source: str) -> tuple[tuple[PlainCell, ...], ...] | None:
    """As :func:`plain_table`, None too where a cell spans: then row and place in the row are its position."""
    return None if "span=" in source else plain_table(source)


def split_plain(markup: str) -> tuple[list[str], str]:
    """The plain tables of a page, and the page with ``<>`` in place of each."""
    tables: list[str] = []

    def take(match: re.Match[str]) -> str:
        tables.append(match[0])
        return "<>"

    return tables, PLAIN.sub(take, markup)
