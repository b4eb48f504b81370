"""The text form in which a check's needle and a page are compared (olmOCR-Bench's rules, observed from its scorer).

Order matters: literal breaks, whitespace, Markdown emphasis, Unicode, then look-alike characters. Emphasis marks vanish
wherever they pair up, so ``snake_case_name`` loses its underscores; needle and page lose them alike.
"""

from __future__ import annotations

import re
import unicodedata

_TAGS = re.compile(r"</?[bi]>")
_LOOKALIKES = {
    "‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "＿": "_",
    "–": "-", "—": "-", "‑": "-", "‒": "-", "−": "-", "\u00b5": "\u03bc",
}  # fmt: skip


def normalise(text: str) -> str:
    """The comparable form of ``text``: one line, no emphasis marks, NFC, plain quotes and hyphens; case is kept."""
    text = _one_line(text.replace("<br>", " ").replace("<br/>", " "))
    text = _unpaired(_unpaired(text, "**"), "__")
    if "<" in text:
        text = _TAGS.sub("", text)
    text = _unpaired(_unpaired(text, "*"), "_")
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text)
    for odd, plain in _LOOKALIKES.items():
        if odd in text:
            text = text.replace(odd, plain)
    return text


def _one_line(text: str) -> str:
    """Every run of whitespace as one blank, also at the ends."""
    words = " ".join(text.split())
    if not words:
        return " " if text else ""
    return (" " if text[0].isspace() else "") + words + (" " if text[-1].isspace() else "")


def _unpaired(text: str, mark: str) -> str:
    """``text`` without its marks, taken in pairs from the left; the last of an odd number stays."""
    parts = text.split(mark)
    if len(parts) % 2:
        return "".join(parts)
    return "".join(parts[:-1]) + mark + parts[-1]
