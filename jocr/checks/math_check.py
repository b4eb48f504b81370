r"""The ``math`` check: some equation of the page shows the reference equation.

The benchmark's rule is lenient where ink is no glyph: ``\sqrt{x}`` is found in ``x``, ``\vec{v}`` in ``v``,
``\frac{a}{b}`` in ``\binom{a}{b}``, ``x^2`` in ``x_2``, ``\mathbf{x}`` in ``x``, and anything in a longer equation that
holds it. ``strict`` closes these holes: the two must also consist of the same symbols, structures and fonts.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from html import unescape

from rapidfuzz import fuzz

from jocr.checks.base import PASS, Check, Verdict
from jocr.checks.glyphs import matches
from jocr.checks.page import MathBackend, PageText
from jocr.checks.render import Rendered, render
from jocr.checks.text_checks import snippet
from jocr.errors import UnscoredError

MAX_CANDIDATES = 500  # distinct equations of one page that are rendered, the most similar first
MAX_TAG = 12  # characters an equation number may have to be taken for one
_STRUCTURE = re.compile(r"<(msqrt|mroot|mfrac|msubsup|msub|msup|munderover|munder|mover|mtr|mtd|menclose)\b([^>]*)>")
_VARIANT = re.compile(r'mathvariant="((?:bold|double-struck|script|fraktur|sans-serif|monospace)[^"]*)"')
_TEXT = re.compile(r"<[^>]*>")
_NOT_SHOWN = re.compile(r"[\s\u200b-\u200d\u2060-\u2064\ufeff]+")
_TAGGED = re.compile(
    r'<mtable width="100%"><mtr><mtd width="50%"></mtd><mtd>(.*)</mtd>'
    r'<mtd width="50%"></mtd><mtd>(.*?)</mtd></mtr></mtable>',
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Math(Check):
    r"""Some equation of the page equals ``math`` (LaTeX without delimiters) as a string, or shows it when rendered.

    ``ignore_dollar_delimited`` looks at ``\(..\)`` and ``\[..\]`` only. A reference KaTeX refuses is matched by any
    equation KaTeX accepts (the benchmark's rule); with a strict page only by the same string.
    """

    kind = "math"
    math: str
    ignore_dollar_delimited: bool = False

    def prepare(self) -> None:
        self.require(bool(self.math.strip()), "math", "must hold an equation")

    def run(self, page: PageText) -> Verdict:
        wanted = self.math.strip()
        found = list(dict.fromkeys(page.bracket_equations if self.ignore_dollar_delimited else page.equations))
        if wanted in found:
            return PASS
        if not found:
            return Verdict(False, "no equation on the page")
        found.sort(key=lambda latex: -fuzz.ratio(wanted, latex))
        doubts = [f"{len(found)} equations on the page, cap {MAX_CANDIDATES}"] if len(found) > MAX_CANDIDATES else []
        for latex in found[:MAX_CANDIDATES]:
            try:
                if shows(latex, wanted, backend=page.math, strict=page.strict):
                    return PASS
            except UnscoredError as error:
                doubts.append(str(error))
        if doubts:
            raise UnscoredError(f"check {self.id!r}: {doubts[0]}")
        return Verdict(False, f"{snippet(wanted)} not among {len(found)} equation(s); closest {snippet(found[0])}")


@lru_cache(maxsize=8192)
def shows(candidate: str, reference: str, *, backend: MathBackend = "mathml", strict: bool = False) -> bool:
    """Whether the rendered candidate shows the rendered reference.

    Raises:
        UnscoredError: rendering or matching passed its limits, or the browser asked for is not there.
    """
    wanted, offered = render(reference, backend), render(candidate, backend)
    if offered.error or (wanted.error and strict):
        return False
    if not strict:
        return wanted.compact in offered.compact or matches(wanted.glyphs, offered.glyphs)
    return same_parts(offered, wanted) and (
        wanted.compact in offered.compact or matches(wanted.glyphs, offered.glyphs, strict=True)
    )


def same_parts(candidate: Rendered, reference: Rendered) -> bool:
    """Whether both consist of the same characters, structures and marked fonts.

    The candidate may end in one full stop, comma or semicolon more or less and may carry an equation number of its own.
    """
    wanted, wanted_tag = _untagged(reference.mathml)
    offered, offered_tag = _untagged(candidate.mathml)
    if wanted_tag and wanted_tag != offered_tag:
        return False
    structure, characters = _parts(wanted)
    other_structure, other_characters = _parts(offered)
    difference = [*(characters - other_characters).elements(), *(other_characters - characters).elements()]
    return structure == other_structure and (not difference or (len(difference) == 1 and difference[0] in ".,;"))


def _untagged(mathml: str) -> tuple[str, str]:
    """The equation and its number; a "number" too long to be one stays part of the equation."""
    found = _TAGGED.fullmatch(mathml)
    tag = _shown(found[2]) if found else ""
    return (found[1], tag) if found and len(tag) <= MAX_TAG else (mathml, "")


def _parts(mathml: str) -> tuple[Counter[str], Counter[str]]:
    structure = Counter(name + ("0" if 'linethickness="0' in rest else "") for name, rest in _STRUCTURE.findall(mathml))
    structure.update(_VARIANT.findall(mathml))
    return structure, Counter(_shown(mathml))


def _shown(mathml: str) -> str:
    return _NOT_SHOWN.sub("", unescape(_TEXT.sub("", mathml)))
