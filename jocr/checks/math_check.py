r"""The ``math`` check: some equation of the page shows the reference equation.

The benchmark's rule is lenient where ink is no glyph: ``\sqrt{x}`` is found in ``x``, ``\vec{v}`` in ``v``,
``\frac{a}{b}`` in ``\binom{a}{b}``, ``x^2`` in ``x_2``, ``\mathbf{x}`` in ``x``, and anything in a longer equation that
holds it. ``strict`` closes these holes by comparing reduced MathML, symbol by symbol and structure by structure.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz

from jocr.checks.base import PASS, Check, Verdict
from jocr.checks.glyphs import matches
from jocr.checks.mathml_form import form
from jocr.checks.page import MathBackend, PageText
from jocr.checks.render import MAX_CHARS, render
from jocr.checks.text_checks import snippet
from jocr.errors import MarkupError, UnscoredError
from jocr.markup import katex

MAX_CANDIDATES = 500  # distinct equations of one page that are rendered, the most similar first


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
        doubt = f"{len(found)} equations on the page, cap {MAX_CANDIDATES}" if len(found) > MAX_CANDIDATES else ""
        for latex in found[:MAX_CANDIDATES]:
            try:
                if shows(latex, wanted, backend=page.math, strict=page.strict):
                    return PASS
            except UnscoredError as error:
                doubt = doubt or str(error)
        if doubt:
            raise UnscoredError(f"check {self.id!r}: {doubt}")
        return Verdict(False, f"{snippet(wanted)} not among {len(found)} equation(s); closest {snippet(found[0])}")


@lru_cache(maxsize=8192)
def shows(candidate: str, reference: str, *, backend: MathBackend = "mathml", strict: bool = False) -> bool:
    """Whether the rendered candidate shows the rendered reference.

    A candidate of more than MAX_CHARS is prose between two stray dollars and shows nothing.

    Raises:
        UnscoredError: rendering or matching passed its limits, or the browser asked for is not there.
    """
    if len(candidate) > MAX_CHARS >= len(reference):
        return False
    if strict:
        return _same(candidate, reference)
    wanted, offered = render(reference, backend), render(candidate, backend)
    if offered.error:
        return False
    return wanted.compact in offered.compact or matches(wanted.glyphs, offered.glyphs)


def _same(candidate: str, reference: str) -> bool:
    """Equal reduced forms. A number (``tag``) of the reference must be there; one of the candidate's own is allowed."""
    try:
        (tokens, tag), (other_tokens, other_tag) = form(_mathml(reference)), form(_mathml(candidate))
    except MarkupError:
        return False
    return tokens == other_tokens and (not tag or tag == other_tag)


def _mathml(latex: str) -> str:
    """KaTeX's MathML without the namespace, which would stand in every tag's name."""
    return katex.to_mathml(latex).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "", 1)
