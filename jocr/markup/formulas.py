r"""Where the formulas of a Markdown page stand: ``$``, ``$$``, ``\(``, ``\[`` and display environments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from jocr.markup.latex_names import ENVIRONMENTS


@dataclass(frozen=True, slots=True)
class FormulaSpan:
    """A formula on a page: ``markdown[start:end]`` with its delimiters, ``latex`` without them."""

    kind: Literal["display", "inline"]
    start: int
    end: int
    latex: str  # an environment keeps its \begin and \end
    delimiter: str  # the opening one: $ $$ \( \[ or \begin{...}


_CLOSERS = {"$$": "$$", "$": "$", "\\[": "\\]", "\\(": "\\)"}
_ENVS = "|".join(re.escape(name) for name in sorted(ENVIRONMENTS, key=len, reverse=True))
_MATH = r"\\begin\{(?P<env>" + _ENVS + r")\}|(?P<tex>\\[\[(])|\\.|(?P<dollars>\$\$?)"
_CODE = r"^ {0,3}(?P<fence>`{3,}|~{3,})|(?P<tick>`+)|"
_OPENER = re.compile(_CODE + _MATH, re.MULTILINE | re.DOTALL)
_MATH_OPENER = re.compile(_MATH, re.DOTALL)  # for pages without code: several times faster
_INLINE = re.compile(r"\$(?![\s$])((?:[^$\\\n]|\\[^\n]|\n(?!\s*\n)){1,2000}?)(?<!\s)\$(?![\d$])")
_PRICE = re.compile(r"\d[\d,.]*\s*(?:[-–]\s*)?(?:[A-Za-z]{2,}|per\b|[,;.]\s)")


def strip_delimiters(latex: str) -> str:
    """The formula without surrounding blanks and one pair of math delimiters."""
    latex = latex.strip()
    for opener, closer in _CLOSERS.items():
        if len(latex) >= len(opener) + len(closer) and latex.startswith(opener) and latex.endswith(closer):
            return latex[len(opener) : -len(closer)].strip()
    return latex


def find_formulas(markdown: str) -> list[FormulaSpan]:
    r"""Formulas in page order: display (``$$``, ``\[``, ``\begin{equation}`` and kin) and inline (``$``, ``\(``).

    Code (fenced, inline) is skipped. A single dollar opens only before a non-blank and closes only after a non-blank
    and not before a digit, in the same paragraph; "$5 and $10" and other amounts are prose. Linear in the page.
    """
    return list(_find_formulas(markdown))


@lru_cache(maxsize=32)
def _find_formulas(markdown: str) -> tuple[FormulaSpan, ...]:
    found: list[FormulaSpan] = []
    missing: set[str] = set()  # closers known not to occur in the rest of the page
    at = 0
    code = "`" in markdown or "~~~" in markdown
    pattern = _OPENER if code else _MATH_OPENER
    while opener := pattern.search(markdown, at):
        at = opener.end()
        if code and opener["fence"]:
            at = _after_fence(markdown, opener)
        elif code and opener["tick"]:
            at = _after_ticks(markdown, opener, missing)
        elif opener["env"] or opener["tex"] or opener["dollars"]:
            span = _formula_at(markdown, opener, missing)
            if span:
                found.append(span)
                at = span.end
    return tuple(found)


def _after_fence(markdown: str, opener: re.Match[str]) -> int:
    fence = opener["fence"]
    close = re.compile(rf"^ {{0,3}}{re.escape(fence)}{re.escape(fence[0])}*[ \t]*$", re.MULTILINE)
    end = close.search(markdown, opener.end())
    return end.end() if end else len(markdown)


def _after_ticks(markdown: str, opener: re.Match[str], missing: set[str]) -> int:
    ticks = opener["tick"]
    if ticks in missing:
        return opener.end()
    close = re.compile(rf"(?<!`){ticks}(?!`)").search(markdown, opener.end())
    if close is None:
        missing.add(ticks)
        return opener.end()
    return close.end() if markdown.find("\n\n", opener.end(), close.start()) < 0 else opener.end()


def _formula_at(markdown: str, opener: re.Match[str], missing: set[str]) -> FormulaSpan | None:
    delimiter = opener[0]
    if delimiter == "$":
        return _inline_dollar(markdown, opener.start())
    closer = _CLOSERS.get(delimiter) or f"\\end{{{opener['env']}}}"
    if closer in missing:
        return None
    close = markdown.find(closer, opener.end())
    if close < 0:
        missing.add(closer)
        return None
    end = close + len(closer)
    if opener["env"]:
        return FormulaSpan("display", opener.start(), end, markdown[opener.start() : end], delimiter)
    latex = markdown[opener.end() : close].strip()
    if not latex:
        return None
    return FormulaSpan("inline" if delimiter == "\\(" else "display", opener.start(), end, latex, delimiter)


def _inline_dollar(markdown: str, start: int) -> FormulaSpan | None:
    found = _INLINE.match(markdown, start)
    if not found or _PRICE.match(found[1]):
        return None
    return FormulaSpan("inline", start, found.end(), found[1].strip(), "$")
