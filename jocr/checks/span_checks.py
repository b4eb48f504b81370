"""Checks on marked-up spans: ``format`` (heading, bold, italic) and ``footnote``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from jocr.checks.base import PASS, Check, Verdict
from jocr.checks.normalise import normalise
from jocr.checks.page import PageText
from jocr.checks.text_checks import found, snippet

_PATTERNS: dict[str, tuple[re.Pattern[str], ...]] = {
    "heading": (
        re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+(.+)$", re.MULTILINE),
        re.compile(r"<h([1-6])\b[^<>]*>(?P<inside>(?:(?!<h[1-6]\b).)*?)</h\1\s*>", re.DOTALL | re.IGNORECASE),
    ),
    "bold": (
        re.compile(r"\*\*([^*]+(?:\*[^*]+)*?)\*\*"),
        re.compile(r"__([^_]+(?:_[^_]+)*?)__"),
        re.compile(r"<(b|strong)>(?P<inside>[^<]*(?:<(?!/?(?:b|strong)>)[^<]*)*)</\1>", re.IGNORECASE),
    ),
    "italic": (
        re.compile(r"(?<!\*)\*([^*]+)\*(?!\*)"),
        re.compile(r"(?<!_)_([^_]+)_(?!_)"),
        re.compile(r"<(i|em)>(?P<inside>[^<]*(?:<(?!/?(?:i|em)>)[^<]*)*)</\1>", re.IGNORECASE),
    ),
}
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
CONTEXT = 200  # characters looked at on either side of a footnote marker


def spans(markdown: str, style: str) -> Iterator[str]:
    """The normalised text of every heading, bold or italic span."""
    for pattern in _PATTERNS[style]:
        for match in pattern.finditer(markdown):
            yield normalise(match["inside"] if "inside" in pattern.groupindex else match[1]).strip()


@dataclass(frozen=True, kw_only=True)
class Format(Check):
    """The text stands in a span of the given style (fuzzy like ``present``)."""

    kind = "format"
    text: str
    format: Literal["heading", "bold", "italic"]
    case_sensitive: bool = True
    needle: str = field(init=False, repr=False, compare=False, default="")

    def prepare(self) -> None:
        needle = normalise(self.text)
        self.require(bool(needle.strip()), "text", "must hold something to look for")
        self.keep("needle", needle if self.case_sensitive else needle.lower())

    def run(self, page: PageText) -> Verdict:
        threshold = 1.0 - self.max_diffs / len(self.needle)
        for span in spans(page.markdown, self.format):
            if span and found(self.needle, span if self.case_sensitive else span.lower(), threshold):
                return PASS
        return Verdict(False, f"{snippet(self.text)} is in no {self.format} span")


@dataclass(frozen=True, kw_only=True)
class Footnote(Check):
    """The marker occurs as ``[^m]`` (not a definition), ``<sup>m</sup>`` or superscript digits, next to the given text.

    ``appears_before_marker`` and ``appears_after_marker`` may be satisfied at different occurrences. Only letters and
    digits count, without case, within twice the text's length of the marker.
    """

    kind = "footnote"
    marker: str
    appears_before_marker: str | None = None
    appears_after_marker: str | None = None

    def prepare(self) -> None:
        self.require(bool(self.marker) and not re.search(r"\s", self.marker), "marker", "must be one word")
        for name in ("appears_before_marker", "appears_after_marker"):
            text = getattr(self, name)
            self.require(text is None or bool(_letters(text)), name, "must hold letters or digits")

    def run(self, page: PageText) -> Verdict:
        places = list(self._places(page.markdown))
        if not places:
            return Verdict(False, f"no marker {self.marker!r} as [^{self.marker}], <sup> or superscript digits")
        before = [page.markdown[max(0, start - CONTEXT) : start] for start, _ in places]
        after = [page.markdown[end : end + CONTEXT] for _, end in places]
        for side, text, contexts in (
            ("before", self.appears_before_marker, before),
            ("after", self.appears_after_marker, after),
        ):
            if text and not any(self._near(text, context, side) for context in contexts):
                return Verdict(False, f"{snippet(text)} is not {side} any marker {self.marker!r}")
        return PASS

    def _places(self, markdown: str) -> Iterator[tuple[int, int]]:
        m = re.escape(self.marker)
        forms = [rf"\[\^{m}\](?!:)", rf"<sup>{m}</sup>"]
        if self.marker.isascii() and self.marker.isdigit():
            forms.append(self.marker.translate(_SUPERSCRIPTS))
        for match in re.finditer("|".join(forms), markdown):
            yield match.span()

    def _near(self, text: str, context: str, side: str) -> bool:
        needle, around = _letters(text), _letters(context)
        reach = 2 * len(needle)
        around = around[-reach:] if side == "before" else around[:reach]
        return bool(around) and found(needle, around, 1.0 - self.max_diffs / len(text))


def _letters(text: str) -> str:
    return "".join(c for c in normalise(text).lower() if c.isalnum())
