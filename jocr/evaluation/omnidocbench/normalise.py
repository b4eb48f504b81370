"""OmniDocBench's three string normalisations (v1.5 scorer, checked against its recorded vectors).

They decide what an error is: text keeps word characters only, formulas lose fonts, spacing and case, tables become one
line of ``td`` cells. Rewards do not use them; they are lossy on purpose of comparability only.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from html import unescape
from typing import Any

INLINE_MATH = re.compile(r"\$(.*?)\$|\\\((.*?)\\\)")

_NOT_WORD = re.compile(r"[^\w\u4e00-\u9fff]")
_ESCAPED = re.compile(r"\\([\\_&%^])")
_BRACKETS = re.compile(r"\\\[(.+?)(?<!\\)\\\]")
_FORMULA_CUTS = [
    re.compile(p)
    for p in (r"\\tag\{.*?\}", r"\\hspace\{.*?\}", r"\\begin\{.*?\}", r"\\end\{.*?\}", r"\\arraycolsep.*?\}")
]
# Removed as plain substrings, in this order: ``\left`` therefore also shortens ``\leftarrow``, as in the original.
_FORMULA_MACROS = (
    r"\mathbf \mathrm \mathnormal \mathit \mathbb \mathcal \mathscr \mathfrak \mathsf \mathtt \textbf \text \boldmath "
    r"\boldsymbol \operatorname \bm \symbfit \mathbfcal \symbf \scriptscriptstyle \notag \setlength \space "
    r"\thickspace \thinspace \medspace \nobreakspace \negmedspace \quad \qquad \enspace \left \right \displaystyle"
).split()
_TABLE = re.compile(r"<table\b[^>]*>(.*)</table>", re.DOTALL | re.IGNORECASE)
_ATTRIBUTES = [re.compile(rf'( {name}=".*?")') for name in ("style", "height", "width", "align", "class")]
_INNER_TAGS = re.compile(r"</?(?:sup|sub|span|div|p|tbody)\b[^>]*>")


def text_clean(text: str) -> str:
    """Only word characters are left; the two-character sequences ``\\t``, ``\\n``, ``/t`` and ``/n`` go first."""
    for marker in ("\\t", "\\n", "\t", "\n", "/t", "/n"):
        text = text.replace(marker, "")
    return _NOT_WORD.sub("", text)


@lru_cache(maxsize=4096)
def text_norm(text: str) -> str:
    """Inline math with a command or a script becomes Unicode, then ``text_clean``."""
    return text_clean(INLINE_MATH.sub(_inline_unicode, text))


def _inline_unicode(match: re.Match[str]) -> str:
    body = match.group(1) if match.group(1) is not None else match.group(2)
    body = _ESCAPED.sub(r"\1", body)
    if not any(c in body for c in r"\^_"):
        return match.group(0)
    converted = latex_to_unicode(body + " " if body.endswith("\\") else body)
    return match.group(0) if converted is None else converted.strip()


def latex_to_unicode(latex: str) -> str | None:
    """pylatexenc's reading of ``latex``; None where it cannot be parsed."""
    try:
        return str(_converter().latex_to_text(latex))
    except Exception:  # the parser raises many kinds on broken input; the text then stays as it was
        return None


@lru_cache(maxsize=1)
def _converter() -> Any:
    import logging

    from pylatexenc.latex2text import LatexNodes2Text

    logging.getLogger("pylatexenc").setLevel(logging.ERROR)
    return LatexNodes2Text()


@lru_cache(maxsize=4096)
def formula_norm(text: str) -> str:
    """LaTeX without delimiters, environments, fonts, spacing words, blanks and case. Line breaks stay."""
    text = text.strip().strip("$").strip("\n").strip()
    inside = _BRACKETS.search(text)
    if inside:
        text = inside.group(1).strip()
    for cut in _FORMULA_CUTS:
        text = cut.sub("", text)
    text = text.strip(".")
    for macro in (*_FORMULA_MACROS, " ", "$$"):
        text = text.replace(macro, "")
    return text.lower()


@lru_cache(maxsize=512)
def table_norm(text: str) -> str:
    """The first to the last ``table`` of ``text`` on one line inside a fixed frame; no table: an empty frame."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(text, "html.parser")
    for tag in soup.find_all("th"):
        tag.name = "td"
    for tag in soup.find_all(["thead", "span"]):
        tag.unwrap()
    for tag in soup.find_all("math"):
        tag.replace_with(f"${tag.get('alttext', '')}$")
    line = unicodedata.normalize("NFKC", unescape(str(soup)).replace("\n", "")).strip()
    line = "".join(_TABLE.findall(line))
    for attribute in _ATTRIBUTES:
        line = attribute.sub("", line)
    line = re.sub(r">\s+<", "><", re.sub(r"\s+", " ", _INNER_TAGS.sub("", line)))
    return f'<html><body><table border="1" >{line.strip()}</table></body></html>'
