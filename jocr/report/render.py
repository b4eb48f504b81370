"""A page's Markdown as safe HTML, with formulas as MathML and tables as tables."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from html import escape

from markdown_it import MarkdownIt

from jocr.markup.formulas import find_formulas
from jocr.report.sanitize import sanitize

MARK = "\ue000{}\ue001"
MARKED = re.compile("\ue000(\\d+)\ue001")
ENVIRONMENT = re.compile(r"\\(begin|end)\{(aligned|gathered|alignedat|eqnarray\*?)\}")
LONGEST_FORMULA = 5000  # characters; beyond, the source is shown


def to_html(markdown: str) -> str:
    """HTML of one page.

    Currency (``$5 and $10``) and code are left alone. A formula that cannot be converted shows its source.
    """
    text, formulas = _lift(markdown.replace("\ue000", "").replace("\ue001", ""))
    html = sanitize(_markdown().render(text))
    return MARKED.sub(lambda m: formulas[int(m[1])] if int(m[1]) < len(formulas) else "", html)


def _lift(markdown: str) -> tuple[str, list[str]]:
    """The page with a mark in the place of each formula, so that Markdown cannot touch it; and the formulas."""
    formulas: list[str] = []
    pieces: list[str] = []
    at = 0
    for span in find_formulas(markdown):
        pieces += [markdown[at : span.start], MARK.format(len(formulas))]
        formulas.append(formula(span.latex, display=span.kind == "display"))
        at = span.end
    return "".join([*pieces, markdown[at:]]), formulas


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough").disable(["image", "link"])


def formula(latex: str, *, display: bool) -> str:
    """MathML of ``latex``, sanitised; where the converter gives up, its source as code."""
    from latex2mathml.converter import convert

    source = f'<code class="formula">{escape(latex.strip())}</code>'
    if len(latex) > LONGEST_FORMULA:
        return source
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mathml = convert(_escaped(latex.strip()), display="block" if display else "inline")
    except Exception:  # the converter raises many kinds, IndexError and RecursionError among them: source is shown
        return source
    safe = sanitize(mathml)
    return safe if safe.startswith("<math") else source


def _escaped(latex: str) -> str:
    """What the converter does not do itself: escape ``<`` in text, know ``aligned``."""
    latex = latex.replace("<", r"\lt ").replace(">", r"\gt ")
    return ENVIRONMENT.sub(lambda m: f"\\{m[1]}{{{'matrix' if m[2] == 'gathered' else 'align*'}}}", latex)
