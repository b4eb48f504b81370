"""When is a repetition a loop? One rule, on the text of the repeated unit and how often it stands there.

A page may repeat itself for good reasons: leaders, rules, empty ledger rows, refrains, rows of zeros. What separates
those from a model that ran away is how much is said again how often. The unit's content is its letters and digits
without markup, reduced to its own smallest period; a loop needs about ``64 / sqrt(content)`` copies in prose and
``200 / content ** 0.75`` in table rows, at least four. A unit without content (dots, rules, empty cells) or with
nothing but one repeated figure is a loop only beyond what a sheet of paper holds.
"""

from __future__ import annotations

import math
import re
import unicodedata
from functools import lru_cache

MIN_COUNT = 4
PAGE_ROWS = 150  # no sheet holds this many lines or rows
LINE_CHARS = 600  # no line holds this many characters of leader or rule
LINE_CELLS = 100  # no row holds this many cells
BLANK_CHARS = 2000

_MARKUP = re.compile(
    r"</?(?:table|t[dhr]|thead|tbody|tfoot|col|colgroup|br|hr|p|div|span|b|i|u|em|strong|su[bp]|font|center|li|[uo]l)"
    r"\b[^<>\n]*>|&(?:nbsp|emsp|ensp|thinsp|#160);"
    r"|\\(?:quad|qquad|hline|cline|hspace|vspace|hfill|dotfill|ldots|cdots|dots)\b"
)
_BREAK = re.compile(r"\n|</tr>|<br\s*/?>|\\\\", re.IGNORECASE)
_ROW = re.compile(r"</?t[dhr]\b|\|[^\n]*\||&[^\n]*\\\\", re.IGNORECASE)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")


def is_loop(unit: str, count: int, *, run: str = "", lenience: float = 1.0) -> bool:
    """Whether ``count`` back-to-back copies of ``unit`` are a loop.

    ``run`` is the whole stretch where copies may differ in blank space: a unit that is wrapped over lines anew in each
    copy may be a grid of short entries, so short units need three times the copies, and single letters or figures a
    page of rows. ``lenience`` divides the copies that a unit with something to say needs (never below MIN_COUNT).
    """
    copies = copies_allowed(unit)
    if lenience > 1 and _weight(_content(unit)) > 2:
        copies = max(MIN_COUNT, math.ceil(copies / lenience))
    breaks = run[len(unit) : -len(unit)].count("\n")  # a break at either edge may belong to the text around
    if breaks and unit.strip() and "\n" not in unit.strip():
        content = _content(unit)
        if len(content) <= 2 and _weight(content) <= 2:
            return breaks >= PAGE_ROWS
        if _weight(content) < 8:
            copies *= 3
    return count >= copies


@lru_cache(maxsize=8192)
def copies_allowed(unit: str) -> int:
    """How many back-to-back copies of ``unit`` it takes to call the repetition a loop."""
    unit = _rotate(unit)
    breaks = len(_BREAK.findall(unit))
    content = _content(unit)
    weight = _weight(content)
    if weight == 0 or (breaks and weight <= 2 and content.isdigit()):
        return _filler_copies(unit, breaks)
    if _ROW.search(unit):
        return max(MIN_COUNT + 1, math.ceil(200 / weight**0.75))
    copies = math.ceil(64 / math.sqrt(weight))
    if weight == len(content) <= 4 and unit.isalnum():  # inside one "word": poly-A tails, satellites, 0.3333
        copies = max(copies, math.ceil(300 / len(unit)))
    return max(MIN_COUNT, copies)


def _content(unit: str) -> str:
    """Letters and digits without markup, reduced to the shortest string they repeat."""
    content = "".join(c for c in _MARKUP.sub(" ", unit) if c.isalnum() or unicodedata.category(c)[0] == "M")
    return content[: (content + content).find(content, 1)] if content else ""


def _weight(content: str) -> int:
    """How much is said: one a letter, three an ideograph, kana or syllable."""
    return len(content) + 2 * len(_CJK.findall(content))


def _filler_copies(unit: str, breaks: int) -> int:
    if not unit.strip():
        return math.ceil(BLANK_CHARS / len(unit))
    if breaks:
        return math.ceil(PAGE_ROWS / breaks)
    return max(LINE_CELLS, math.ceil(LINE_CHARS / len(unit)))


def _rotate(unit: str) -> str:
    """The unit turned so that it starts where a reader would start it: a run may begin in the middle of a tag."""
    for mark, skip in (("\n", 1), ("</tr>", 5), ("<", 0), ("\\", 0), ("&", 0), (" ", 1)):
        at = (unit + unit).find(mark)
        if 0 <= at < len(unit):
            return (unit + unit)[at + skip : at + skip + len(unit)]
    return unit
