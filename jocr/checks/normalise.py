"""The text form in which a check's needle and a page are compared (olmOCR-Bench's rules, observed from its scorer).

Order matters: literal breaks, whitespace, Markdown emphasis, Unicode, then look-alike characters. Emphasis marks vanish
wherever they pair up, so ``snake_case_name`` loses its underscores; needle and page lose them alike.
"""

from __future__ import annotations

import re
import unicodedata

_BREAK = re.compile(r"<br/?>")
_SPACE = re.compile(r"\s+")
_STRONG = (re.compile(r"\*\*(.*?)\*\*"), re.compile(r"__(.*?)__"))
_TAGS = re.compile(r"</?[bi]>")
_EMPHASIS = (re.compile(r"\*(.*?)\*"), re.compile(r"_(.*?)_"))
_LOOKALIKES = str.maketrans(
    {
        "‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "＿": "_",
        "–": "-", "—": "-", "‑": "-", "‒": "-", "−": "-", "\u00b5": "\u03bc",
    }
)  # fmt: skip


def normalise(text: str) -> str:
    """The comparable form of ``text``: one line, no emphasis marks, NFC, plain quotes and hyphens; case is kept."""
    text = _SPACE.sub(" ", _BREAK.sub(" ", text))
    if "*" in text or "_" in text:
        for pattern in _STRONG:
            text = pattern.sub(r"\1", text)
    text = _TAGS.sub("", text)
    if "*" in text or "_" in text:
        for pattern in _EMPHASIS:
            text = pattern.sub(r"\1", text)
    return unicodedata.normalize("NFC", text).translate(_LOOKALIKES)
