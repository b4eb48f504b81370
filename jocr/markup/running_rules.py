"""When a line that keeps coming back at the edge of pages is a running line, and when it is the author's.

Each rule refuses one kind of body text that repeats: refrains, salutations, dates of a diary, numbered exercises, forms
that are all alike, speakers' names. What stays in doubt is body.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from jocr.markup.text import normalize_text

LONGEST = 120  # characters of a running line
_PAGE = r"pages?|pag|pg|pp?|seiten?|s|folio|fol|f|página|pagina|стр|с|strona|str|side|sida|sivu|blz|bl|第|頁|页"
_OF = r"of|von|de|sur|di|из|van|av|/"
_CORE = rf"(?:(?i:{_PAGE})\.?\s*)?(?P<n>\d{{1,4}}|[ivxlc]{{1,8}})(?:\s*(?i:{_OF})\s*\d{{1,4}})?(?:\s*(?:页|頁|ページ))?"
_DASH = r"[-–—~·•|*_\s]*"
BARE = re.compile(
    rf"{_DASH}{_CORE}{_DASH}|\[\s*{_CORE.replace('<n>', '<m>')}\s*\]|\(\s*{_CORE.replace('<n>', '<o>')}\s*\)"
)
_NUMBER = re.compile(r"\d+")
_EDGE_ROMAN = re.compile(r"^[ivxlcIVXLC]{1,8}(?=\W)|(?<=[^\w'’])[ivxlcIVXLC]{1,8}$")
_TAG = re.compile(r"</?\w[^<>]*>")
_STRUCTURE = re.compile(
    r"\s*(?:#|>|\||<(?!/?(?:center|div|p|b|i|em|strong|span|sub|sup|header|footer)\b)|!\[|```|~~~|\\|[-*+•]\s+[^\W\d_]|\(?\d{1,4}[.)]\s|\(?\w[.)]\s|(?:[-=_*]\s*){3,}$)"
)
_CAPTION = re.compile(
    r"(?:table|tab|tabelle|tableau|figure|fig|abb|plate|planche|tafel|chart|exhibit)\b", re.IGNORECASE
)
_CONTINUED = re.compile(r"\(?\b(?:continued|cont'?d|fortsetzung|suite|continuación)\b", re.IGNORECASE)
_DATE = re.compile(r"#\W{0,3}[^\W\d_]+\W{1,3}#|[^\W\d_]+\W{1,2}#\W{1,3}#")
_NO = {"no", "nr", "number", "num", "n"}
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True, slots=True)
class Line:
    """One line at an edge of a page."""

    page: int  # index of the page among those given
    bottom: bool
    depth: int  # 0 for the outermost
    start: int  # characters, of the line in its page
    end: int
    text: str  # as a reader sees it
    key: str  # what makes two lines the same: no case, ``#`` for each number
    numbers: tuple[int, ...]
    loose: bool  # a blank line, or nothing, lies between it and the body


def make_line(raw: str, *, page: int, bottom: bool, depth: int, start: int, loose: bool) -> Line | None:
    """The line, or None where it has the form of something that is never a running line: heading, table, list, code."""
    if not is_bare(raw) and (
        _STRUCTURE.match(raw) or raw.count("|") > 1 or "$$" in raw or re.search(r"\S\s{4,}\S|\t", raw)
    ):
        return None
    text = normalize_text(_TAG.sub(" ", raw))
    if not text or len(text) > LONGEST:
        return None
    numbers: list[int] = []

    def take(match: re.Match[str]) -> str:
        numbers.append(int(match[0]) if match[0].isdigit() and len(match[0]) < 10 else roman(match[0]) or 0)
        return "#"

    marked = _EDGE_ROMAN.sub(lambda m: m[0] if roman(m[0]) is None else f"\0{roman(m[0])}", text)
    key = re.sub(r"\0?\d+", lambda m: take(_NUMBER.search(m[0]) or m), marked).casefold()
    return Line(page, bottom, depth, start, start + len(raw), text, key, tuple(numbers), loose)


@lru_cache(maxsize=4096)
def roman(text: str) -> int | None:
    """Value of a Roman numeral below 400 in its usual spelling, else None."""
    values = [_ROMAN.get(c, 0) for c in text.casefold()]
    if not values or 0 in values:
        return None
    total = sum(-v if any(w > v for w in values[i + 1 : i + 2]) else v for i, v in enumerate(values))
    return total if _spell(total) == text.casefold() else None


def _spell(number: int) -> str:
    out = ""
    for value, mark in (
        (100, "c"),
        (90, "xc"),
        (50, "l"),
        (40, "xl"),
        (10, "x"),
        (9, "ix"),
        (5, "v"),
        (4, "iv"),
        (1, "i"),
    ):
        out += mark * (number // value)
        number %= value
    return out


def bare_number(text: str) -> int | None:
    """The page number that is all a line says (``- 12 -``, ``Page 3 of 9``, ``xiv``), or None. Capital Roman numerals
    number the parts of a work, not pages."""
    match = BARE.fullmatch(text.strip())
    found = match and (match["n"] or match["m"] or match["o"])
    if not found:
        return None
    return int(found) if found.isdigit() else roman(found)


def is_bare(text: str) -> bool:
    """Whether a line is a page number and nothing else."""
    return bare_number(text) is not None


def follows_pages(values: Sequence[int], pages: Sequence[int]) -> bool:
    """Whether numbers count with the pages: three quarters of them keep one distance to the page's index."""
    apart = Counter(value - page for value, page in zip(values, pages, strict=True))
    return apart.most_common(1)[0][1] >= max(3, 0.75 * len(values))


def counted(lines: Sequence[Line]) -> bool | None:
    """True where one number of equal lines counts with the pages and the rest stand still; False where all stand
    still; None where a number moves otherwise, which no running line does."""
    pages = [line.page for line in lines]
    moving = 0
    for values in zip(*(line.numbers for line in lines), strict=True):
        if Counter(values).most_common(1)[0][1] >= 0.75 * len(values):
            continue
        if not follows_pages(values, pages):
            return None
        moving += 1
    return None if moving > 1 else moving == 1


def looks_running(line: Line, *, counts: bool, times: int) -> bool:
    """Whether the wording may be a running line's.

    Args:
        line: one of the equal lines.
        counts: a number in it counts with the pages.
        times: how often it came.
    """
    text, words = line.text, re.findall(r"[^\W\d_]+", line.text)
    letters = "".join(words)
    cased = letters.lower() != letters.upper()
    if len(letters) < (4 if cased else 2) or _CAPTION.match(text) or _CONTINUED.search(text):
        return False
    if _DATE.fullmatch(line.key) or (counts and _is_label(line.key, words)):
        return False
    if counts:
        return True
    capitals = cased and letters.upper() == letters
    if text[-1] in ",;:、，；：" or (text[-1] in ".!?。！？…\"'" and not capitals):
        return False
    if len(words) == 1 and text[-1] == ".":  # who speaks, in a play
        return False
    if not cased or capitals:
        return True
    heavy = [word for word in words if len(word) > 3]
    if len(heavy) >= (3 if line.bottom else 2) and all(word[0].isupper() for word in heavy):
        return True
    return times >= 8 and len(words) >= 3 and letters[0].isupper() and not line.bottom


def _is_label(key: str, words: Sequence[str]) -> bool:
    """``Exercise 12``, ``§ 12``, ``Letter no. 4``: a label and then its number; ``12 Preface`` is none."""
    if key.lstrip("[(- ").startswith("#"):
        return False
    return len(words) <= 1 or (len(words) == 2 and (words[1].casefold() in _NO or not "".join(words).isupper()))


def is_template(pages: Sequence[str]) -> bool:
    """Whether the bodies of pages repeat too, as forms do: three or more of a page's lines, or the labels they begin
    with, come back on most pages."""
    seen: Counter[str] = Counter()
    for text in pages:
        seen.update(set(labels(text)))
    return sum(times >= max(3, 0.7 * len(pages)) for times in seen.values()) >= 3


def labels(text: str) -> Iterable[str]:
    """What the lines and table rows of a page begin with, up to a colon; numbers are all alike."""
    for line in re.split(r"\n|<tr[^<>]*>", text):
        line = _TAG.sub("|", line) if "<" in line else line
        cells = [cell.strip() for cell in line.split("|") if cell.strip()] if "|" in line else [line.strip()]
        label = cells[0].partition(":")[0].strip() if cells else ""
        label = _NUMBER.sub("#", unicodedata.normalize("NFC", label).casefold())
        if 2 <= len(label) <= 60 and any(c.isalpha() for c in label):
            yield label
