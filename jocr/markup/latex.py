"""LaTeX formulas: where they are on a page, their tokens, and one normal form per formula (case-sensitive)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from jocr.markup.katex import to_mathml
from jocr.markup.latex_names import (
    ALIASES,
    DROPPED,
    DROPPED_WITH_ARGUMENT,
    ENVIRONMENTS,
    ONE_ARGUMENT,
    SIZES,
    TEXT,
    TWO_ARGUMENTS,
    UNICODE,
)

__all__ = ["FormulaSpan", "find_formulas", "normalize", "strip_delimiters", "to_mathml", "tokenize"]

MAX_DEPTH = 100  # groups nested deeper are flattened

_TOKEN = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\[a-zA-Z]+\*?|\\.|%[^\n]*(?:\n|$)|\s+|.", re.DOTALL)


def tokenize(latex: str) -> list[str]:
    r"""Tokens as TeX sees them: control sequences, ``\begin{x}``/``\end{x}`` whole, single characters.

    Blanks and comments vanish, except that blanks inside ``\text{...}`` and its kin become one ``" "`` token.
    """
    out: list[str] = []
    text_depth = -1  # brace depth at which the current text group began
    depth = 0
    for token in _TOKEN.findall(latex):
        if token.isspace():
            if text_depth >= 0 and out and out[-1] != " ":
                out.append(" ")
            continue
        if token.startswith("%"):
            continue
        if token == "{":
            if text_depth < 0 and out and out[-1] in TEXT:
                text_depth = depth
            depth += 1
        elif token == "}":
            depth -= 1
            if depth <= text_depth:
                text_depth = -1
        out.append(re.sub(r"\s+", "", token) if token.startswith(("\\begin", "\\end")) and token[-1] == "}" else token)
    return out


_DELIMITERS = (("$$", "$$"), ("$", "$"), ("\\[", "\\]"), ("\\(", "\\)"))


def strip_delimiters(latex: str) -> str:
    """The formula without surrounding blanks and one pair of math delimiters."""
    latex = latex.strip()
    for opener, closer in _DELIMITERS:
        if len(latex) >= len(opener) + len(closer) and latex.startswith(opener) and latex.endswith(closer):
            return latex[len(opener) : -len(closer)].strip()
    return latex


def normalize(latex: str) -> str:
    r"""One spelling per formula: spacing, sizing and style commands dropped, ``\left``/``\right`` dropped, aliases
    and Unicode symbols replaced by their usual command (``\le`` -> ``\leq``, ``α`` -> ``\alpha``), arguments and
    scripts always braced, subscript before superscript, redundant braces removed. Case and fonts are kept. Never
    raises; unbalanced braces are closed or dropped.
    """
    tokens = list(_canonical_tokens(tokenize(strip_delimiters(latex))))
    atoms, _ = _group(tokens, 0, 0, top=True)
    return _join(atoms)


def _canonical_tokens(tokens: list[str]) -> Iterator[str]:
    i, in_text = 0, 0
    while i < len(tokens):
        token = tokens[i]
        i += 1
        if token in DROPPED or token == "~":
            if in_text:
                yield " "
            continue
        if token in SIZES:
            if i < len(tokens) and tokens[i] == ".":
                i += 1
            continue
        if token in DROPPED_WITH_ARGUMENT:
            i = _skip_argument(tokens, i)
            continue
        if token in UNICODE:
            token = UNICODE[token]
        yield from ALIASES.get(token, (token,))


def _skip_argument(tokens: list[str], i: int) -> int:
    if i >= len(tokens) or tokens[i] != "{":
        return i
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j] == "{") - (tokens[j] == "}")
        if depth == 0:
            return j + 1
    return len(tokens)


def _group(tokens: list[str], i: int, depth: int, *, top: bool = False) -> tuple[list[str], int]:
    """Atoms from ``i`` to the closing brace of this group (or the end), and the index after it."""
    atoms: list[str] = []
    while i < len(tokens):
        token = tokens[i]
        if token == "}":
            if not top:
                return _finish(atoms), i + 1
            i += 1
            continue
        if token in ("^", "_"):
            i = _scripts(tokens, i, depth, atoms)
            continue
        if token == "\\over":
            below, i = _group(tokens, i + 1, depth, top=top)
            return ["\\frac{" + _join(_finish(atoms)) + "}{" + _join(below) + "}"], i
        atom, i = _atom(tokens, i, depth)
        atoms += atom
    return _finish(atoms), i


def _atom(tokens: list[str], i: int, depth: int) -> tuple[list[str], int]:
    """One atom (a braced group without redundant braces may give several) and the index after it."""
    token = tokens[i]
    if token == "{" and depth < MAX_DEPTH:
        inside, i = _group(tokens, i + 1, depth + 1)
        return inside, i
    if token in ("{", "}"):
        return [], i + 1
    count = 2 if token in TWO_ARGUMENTS else 1 if token in ONE_ARGUMENT or token in TEXT else 0
    i += 1
    option = ""
    if token == "\\sqrt" and i < len(tokens) and tokens[i] == "[":
        end = next((j for j in range(i, len(tokens)) if tokens[j] == "]"), len(tokens))
        option = "[" + "".join(tokens[i + 1 : end]) + "]"
        i = end + 1
    arguments = []
    for _ in range(count):
        argument, i = _argument(tokens, i, depth)
        arguments.append("{" + argument + "}")
    return [token + option + "".join(arguments)], i


def _argument(tokens: list[str], i: int, depth: int) -> tuple[str, int]:
    if i >= len(tokens) or tokens[i] == "}":
        return "", i
    if tokens[i] in ("^", "_"):
        return "", i
    if depth >= MAX_DEPTH:
        return tokens[i] if tokens[i] not in ("{", "}") else "", i + 1
    atoms, i = _atom(tokens, i, depth + 1)
    return _join(atoms), i


def _scripts(tokens: list[str], i: int, depth: int, atoms: list[str]) -> int:
    """Read a run of scripts and append them in canonical order (subscripts, then superscripts)."""
    found: dict[str, list[str]] = {"_": [], "^": []}
    while i < len(tokens) and tokens[i] in ("^", "_"):
        kind = tokens[i]
        argument, i = _argument(tokens, i + 1, depth)
        found[kind].append(argument)
    superscript = "".join(found["^"])
    primes = len(superscript) - len(superscript.replace("'", "")) if set(superscript) == {"'"} else 0
    if found["_"]:
        atoms.append("_{" + "".join(found["_"]) + "}")
    if primes:
        atoms.append("'" * primes)
    elif found["^"]:
        atoms.append("^{" + superscript + "}")
    return i


def _finish(atoms: list[str]) -> list[str]:
    return atoms


def _join(atoms: list[str]) -> str:
    """Concatenate, with a blank only where a control word would swallow the next letter."""
    out = ""
    for atom in atoms:
        if atom[:1].isalpha() and re.search(r"\\[a-zA-Z]+$", out):
            out += " "
        out += atom
    return out


@dataclass(frozen=True, slots=True)
class FormulaSpan:
    """A formula on a page: ``markdown[start:end]`` with its delimiters, ``latex`` without them."""

    kind: Literal["display", "inline"]
    start: int
    end: int
    latex: str
    delimiter: str  # the opening one: $ $$ \( \[ or \begin{...}


_ENVS = "|".join(re.escape(name) for name in sorted(ENVIRONMENTS, key=len, reverse=True))
_OPENER = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,})|(?P<tick>`+)|\\begin\{(?P<env>"
    + _ENVS
    + r")\}|(?P<tex>\\[\[(])|\\.|(?P<dollars>\${1,2})",
    re.MULTILINE | re.DOTALL,
)
_PRICE = re.compile(r"\d[\d,.]*\s*(?:[-–]\s*)?(?:[A-Za-z]{2,}|per\b|[,;.]\s)")


def find_formulas(markdown: str) -> list[FormulaSpan]:
    r"""Formulas in page order: display (``$$``, ``\[``, ``\begin{equation}`` and kin) and inline (``$``, ``\(``).

    Code (fenced, inline) is skipped. A single dollar opens only before a non-blank and closes only after a non-blank
    and not before a digit, on the same paragraph; "$5 and $10" and other amounts are prose. Linear in the page.
    """
    found: list[FormulaSpan] = []
    missing: set[str] = set()  # closers known not to occur in the rest of the page
    at = 0
    while opener := _OPENER.search(markdown, at):
        at = opener.end()
        if opener["fence"]:
            at = _after_fence(markdown, opener)
        elif opener["tick"]:
            at = _after_ticks(markdown, opener, missing)
        elif opener["env"] or opener["tex"] or opener["dollars"]:
            span = _formula_at(markdown, opener, missing)
            if span:
                found.append(span)
                at = span.end
    return found


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
    return close.end() if "\n\n" not in markdown[opener.end() : close.start()] else opener.end()


def _formula_at(markdown: str, opener: re.Match[str], missing: set[str]) -> FormulaSpan | None:
    if opener["dollars"] == "$":
        return _inline_dollar(markdown, opener.start())
    delimiter = opener[0]
    closer = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}.get(delimiter) or f"\\end{{{opener['env']}}}"
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


_INLINE = re.compile(r"\$(?![\s$])((?:[^$\\\n]|\\[^\n]|\n(?!\s*\n)){1,2000}?)(?<!\s)\$(?![\d$])")


def _inline_dollar(markdown: str, start: int) -> FormulaSpan | None:
    found = _INLINE.match(markdown, start)
    if not found or _PRICE.match(found[1]):
        return None
    return FormulaSpan("inline", start, found.end(), found[1].strip(), "$")
