"""The ``baseline`` check: a page is not empty, not looping at its end, and in the expected scripts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jocr.checks.base import PASS, Check, Verdict
from jocr.checks.page import PageText

LONGEST_UNIT = 5  # characters; the benchmark does not see longer loops (jocr.markup.repeats does)
_IMAGE = re.compile(r"!\[[^\[\]\n]*\]\([^()\n]*\)")
_DISALLOWED = re.compile("[\u3040-\u30ff\u4e00-\u9fff\U0001f1e0-\U0001f1ff\U0001f300-\U0001f64f\U0001f680-\U0001f6ff]")


@dataclass(frozen=True, kw_only=True)
class Baseline(Check):
    """Sanity of a whole page.

    With ``max_length`` only the count of letters and digits is judged (for blank pages; images may be left out of it).
    Otherwise the page must hold a letter or digit, must not end in more than ``max_repeats`` copies of a unit of up to
    five characters and, unless switched off, must hold no CJK ideograph, kana or emoji.
    """

    kind = "baseline"
    max_length: int | None = None
    max_length_skips_image_alt_tags: bool = False
    max_repeats: int = 30
    check_disallowed_characters: bool = True

    def prepare(self) -> None:
        self.require((self.max_length or 0) >= 0, "max_length", "must be 0 or more")
        self.require(self.max_repeats >= 1, "max_repeats", "must be 1 or more")

    def run(self, page: PageText) -> Verdict:
        text = page.markdown
        if self.max_length is not None:
            text = _IMAGE.sub("", text) if self.max_length_skips_image_alt_tags else text
            count = sum(map(str.isalnum, text))
            return PASS if count <= self.max_length else Verdict(False, f"{count} letters and digits on a blank page")
        if not any(map(str.isalnum, text)):
            return Verdict(False, "no letter or digit on the page")
        if (loop := self._loop(text)) is not None:
            return Verdict(False, loop)
        if self.check_disallowed_characters and (odd := _DISALLOWED.findall(text)):
            return Verdict(False, f"characters not expected on this page: {''.join(dict.fromkeys(odd))[:20]}")
        return PASS

    def _loop(self, text: str) -> str | None:
        tail = re.sub(r"\s+", " ", text)
        for length in range(1, LONGEST_UNIT + 1):
            unit, count = tail[-length:], 0
            end = len(tail)
            while end >= length and tail.startswith(unit, end - length):
                count, end = count + 1, end - length
            if count > self.max_repeats:
                return f"the page ends in {unit!r} {count} times"
        return None
