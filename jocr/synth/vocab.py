"""Pieces of structure that deserve one token each in a small tokenizer: tags, LaTeX commands, Markdown marks.

All of them occur in references written by this package; a tokenizer of 256 bytes, a few control tokens and these keeps
tables and formulas short.
"""

from __future__ import annotations

from jocr.synth.math_layout import BIG, BINARY, FUNCTIONS, GREEK, RELATIONS, SYMBOLS

TABLE_TOKENS = ["<table>", "</table>", "<tr>", "</tr>", "<td>", "</td>", '<td colspan="2">', '<td colspan="3">']
MARK_TOKENS = ["\n\n", "$$", "# ", "## ", "\n- "]
MATH_TOKENS = ["\\frac{", "}{", "\\sqrt{", "^{", "_{", "\\bar{", "\\lim_{", "\\sum_{", "\\prod_{", "\\int_{", "}^{"]

_commands = [*BINARY, *RELATIONS, *SYMBOLS, "\\int"]
STRUCTURE_TOKENS: list[str] = [
    *TABLE_TOKENS,
    *MARK_TOKENS,
    *MATH_TOKENS,
    *(c for c in _commands if c.startswith("\\")),
    *("\\" + name for name in (*FUNCTIONS, *GREEK)),
]
"""Each is one token; longest match wins, so a token may be the beginning of another."""

assert set(BIG) == {"\\sum", "\\prod", "\\int"}
