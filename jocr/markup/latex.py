"""LaTeX formulas: their tokens, and one normal form per formula (case-sensitive). Where they stand: ``formulas``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jocr.markup.formulas import FormulaSpan, find_formulas, strip_delimiters
from jocr.markup.katex import presentation, to_mathml
from jocr.markup.latex_names import (
    ALIASES,
    COLUMNS,
    DROPPED,
    LENGTHS,
    ONE_ARGUMENT,
    SIZES,
    TEXT,
    TWO_ARGUMENTS,
    UNICODE,
)

__all__ = ["FormulaSpan", "find_formulas", "normalize", "presentation", "strip_delimiters", "to_mathml", "tokenize"]

MAX_DEPTH = 100  # groups nested deeper are flattened

_TOKEN = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\[a-zA-Z]+\*?|\\.|%[^\n]*(?:\n|$)|\s+|.", re.DOTALL)
_WORD_END = re.compile(r"\\[a-zA-Z]+$")


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
        out.append(re.sub(r"\s+", "", token) if token.startswith(("\\begin", "\\end")) else token)
    return out


def normalize(latex: str) -> str:
    r"""One spelling per formula, for comparing; never raises.

    Dropped: spacing, sizing and style commands, ``\left``/``\right``, labels, column settings of arrays, redundant
    braces. Replaced by one spelling: aliases (``\le`` -> ``\leq``, ``\dfrac`` -> ``\frac``) and Unicode symbols (``α``
    -> ``\alpha``). Arguments and scripts are always braced, subscripts come before superscripts, ``\over`` becomes
    ``\frac``. Case, fonts and ``\tag`` are kept. Unbalanced braces are closed or dropped.
    """
    tokens = list(_canonical_tokens(tokenize(strip_delimiters(latex))))
    atoms, _ = _group(tokens, 0, 0, top=True)
    return _join(atoms)


def _canonical_tokens(tokens: list[str]) -> Iterator[str]:
    i = 0
    while i < len(tokens):
        token = tokens[i]
        i += 1
        if token in DROPPED:
            continue
        if token in SIZES:
            i += i < len(tokens) and tokens[i] == "."  # an empty delimiter
        elif token in LENGTHS:
            i = _after_length(tokens, i)
        else:
            yield ALIASES.get(token) or UNICODE.get(token, token)
            if token in COLUMNS:
                i = _after_group(tokens, _after_option(tokens, i))
            elif token == "\\\\":
                i = _after_option(tokens, i)


def _after_group(tokens: list[str], i: int) -> int:
    """The index after the braced group at ``i``; ``i`` where there is none or it is never closed."""
    if i >= len(tokens) or tokens[i] != "{":
        return i
    depth = 0
    for j in range(i, min(len(tokens), i + 200)):
        depth += (tokens[j] == "{") - (tokens[j] == "}")
        if depth == 0:
            return j + 1
    return i


def _after_option(tokens: list[str], i: int) -> int:
    """The index after a length in square brackets, as in ``\\\\[2pt]``."""
    if i < len(tokens) and tokens[i] == "[":
        for j in range(i + 1, min(len(tokens), i + 12)):
            if tokens[j] == "]":
                return j + 1
            if not (tokens[j].isalnum() or tokens[j] in ".-"):
                break
    return i


def _after_length(tokens: list[str], i: int) -> int:
    end = _after_group(tokens, i)
    if end > i:
        return end
    while i < len(tokens) and (tokens[i] in ".-" or tokens[i].isdigit()):
        i += 1
    return i + 2 if "".join(tokens[i : i + 2]) in ("pt", "em", "ex", "mm", "cm", "in", "mu") else i


def _group(tokens: list[str], i: int, depth: int, *, top: bool = False) -> tuple[list[str], int]:
    """Atoms from ``i`` to the closing brace of this group (or the end), and the index after it."""
    atoms: list[str] = []
    while i < len(tokens):
        token = tokens[i]
        if token == "}":
            i += 1
            if not top:
                break
        elif token in ("^", "_"):
            i = _scripts(tokens, i, depth, atoms)
        elif token == "\\over" and depth < MAX_DEPTH:
            below, i = _group(tokens, i + 1, depth + 1, top=top)
            return ["\\frac{" + _join(atoms) + "}{" + _join(below) + "}"], i
        else:
            atom, i = _atom(tokens, i, depth)
            atoms += atom
    return atoms, i


def _atom(tokens: list[str], i: int, depth: int) -> tuple[list[str], int]:
    """One atom (a braced group, its braces being redundant here, may give several) and the index after it."""
    token = tokens[i]
    i += 1
    if token in ("{", "}"):
        return _group(tokens, i, depth + 1) if token == "{" and depth < MAX_DEPTH else ([], i)
    atom = token
    if token == "\\sqrt" and i < len(tokens) and tokens[i] == "[":
        end = next((j for j in range(i, len(tokens)) if tokens[j] == "]"), len(tokens))
        atom += "[" + "".join(tokens[i + 1 : end]) + "]"
        i = end + 1
    for _ in range(2 if token in TWO_ARGUMENTS else token in ONE_ARGUMENT or token in TEXT):
        argument, i = _argument(tokens, i, depth)
        atom += "{" + argument + "}"
    return [atom], i


def _argument(tokens: list[str], i: int, depth: int) -> tuple[str, int]:
    if i >= len(tokens) or tokens[i] in ("}", "^", "_"):
        return "", i
    if depth >= MAX_DEPTH:
        return (tokens[i] if tokens[i] != "{" else ""), i + 1
    atoms, i = _atom(tokens, i, depth + 1)
    return _join(atoms), i


def _scripts(tokens: list[str], i: int, depth: int, atoms: list[str]) -> int:
    """Read a run of scripts and append them in canonical order: subscripts, then superscripts (primes bare)."""
    found: dict[str, list[str]] = {"_": [], "^": []}
    while i < len(tokens) and tokens[i] in ("^", "_"):
        argument, end = _argument(tokens, i + 1, depth)
        found[tokens[i]].append(argument)
        i = end
    if found["_"]:
        atoms.append("_{" + _join(found["_"]) + "}")
    superscript = _join(found["^"])
    if superscript and set(superscript) == {"'"}:
        atoms += superscript
    elif found["^"]:
        atoms.append("^{" + superscript + "}")
    return i


def _join(atoms: list[str]) -> str:
    """Concatenate, with a blank only where a control word would swallow the next letter."""
    out: list[str] = []
    for atom in atoms:
        if out and atom[:1].isalpha() and _WORD_END.search(out[-1][-40:]):
            out.append(" ")
        if atom:
            out.append(atom)
    return "".join(out)
