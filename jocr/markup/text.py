"""Text comparison: one normal form of what a reader sees, and edit similarity on it."""

from __future__ import annotations

import re
import unicodedata

_MAP = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),
        "\u00b5": "\u03bc",
        "\uff3f": "_",
        "\u2026": "...",
    }
)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_BOLD = re.compile(r"(\*\*|__)(?=\S)([^\n]*?\S)\1")
_ITALIC = re.compile(r"(?<![\w*])([*_])(?=\S)([^\n*_]*?\S)\1(?![\w*])")
_TAGS = re.compile(r"</?(?:b|i|u|em|strong|span)\b[^<>]*>", re.IGNORECASE)


def normalize_text(s: str) -> str:
    """Canonical form for comparing prose: NFC, one kind of quote, dash and blank, no emphasis marks, no invisible
    characters. Case, punctuation, digits and accents stay: a lost minus sign or decimal point must cost something.
    """
    if "<" in s:
        s = _TAGS.sub("", _BREAK.sub(" ", s))
    if "**" in s or "__" in s:
        s = _BOLD.sub(r"\2", s)
    s = _ITALIC.sub(r"\2", s)
    if not s.isascii():
        s = unicodedata.normalize("NFC", s).translate(_MAP)
    return " ".join(s.split())


def edit_distance(a: str, b: str) -> int:
    """Levenshtein distance in characters."""
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.distance(a, b, score_hint=max(len(a), len(b)) // 16)


def edit_similarity(a: str, b: str) -> float:
    """1 - NED: 1 - Levenshtein / max length, in [0, 1]; two empty strings are equal (1.0). Nothing is normalised."""
    longest = max(len(a), len(b))
    return 1.0 - edit_distance(a, b) / longest if longest else 1.0
