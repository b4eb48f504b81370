"""Scoring one page: pools, matching and the samples that every metric is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from jocr.evaluation.omnidocbench import fallbacks, formulas
from jocr.evaluation.omnidocbench.annotations import FORMULA, TEXT, Page
from jocr.evaluation.omnidocbench.extraction import INLINE, ISOLATED, Element, cells, extract
from jocr.evaluation.omnidocbench.latex_tables import latex_table_to_html
from jocr.evaluation.omnidocbench.matching import Pair, match_tables, quick_match
from jocr.evaluation.omnidocbench.metrics import reading_order
from jocr.evaluation.omnidocbench.normalise import latex_to_unicode, text_clean, text_norm

Version = Literal["1.5", "1.6"]
BUDGET_S = {"1.5": 30.0, "1.6": 300.0}


@dataclass(frozen=True, slots=True)
class PageSamples:
    """The scored pairs of one page. ``fallback``: matching ran out of time and the plain matcher took over."""

    image: str
    text: tuple[Pair, ...]
    formulas: tuple[Pair, ...]
    tables: tuple[Pair, ...]
    order: tuple[list[int], list[int], float] | None
    fallback: bool = False
    spare_tables: int = 0  # predicted tables without an annotated one: free in this benchmark
    notes: tuple[str, ...] = field(default=())


def score_page(page: Page, markdown: str, version: Version) -> PageSamples:
    """Match ``markdown`` against ``page`` by the rules of ``version``. Nothing in a prediction makes this raise."""
    found = extract(markdown)
    tables = sorted(
        [*found.get("html_table", []), *(_as_html(e) for e in found.get("latex_table", []))], key=lambda e: e.position
    )
    table_pairs, spare = match_tables(page.tables, tables)
    pool = mixed_pool(found)
    if version == "1.5" and page.tables:
        pool += [Element("text_all", c, e.position, "text_block") for e in spare for c in cells(e.content)]
    if version == "1.6":
        return _v16(page, found, pool, table_pairs, len(spare))
    pairs, fallback = quick_match(page.mixed, pool, budget_s=BUDGET_S["1.5"])
    text, formula_pairs = _split(pairs)
    return PageSamples(
        page.image, tuple(text), tuple(formula_pairs), tuple(table_pairs), reading_order(text), fallback, len(spare)
    )


def mixed_pool(found: dict[str, list[Element]]) -> list[Element]:
    """Paragraphs, code and display formulas by position, then inline formulas: the pool for text and formulas."""
    elements = [*found.get("text_all", []), *found.get("code_txt", []), *found.get(ISOLATED, [])]
    placed = sorted((e for e in elements if e.fine != INLINE), key=lambda e: e.position)
    return placed + [e for e in elements if e.fine == INLINE]


def _as_html(element: Element) -> Element:
    return replace(element, content=latex_table_to_html(element.content))


def _split(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Text samples and formula samples. An annotated formula found as text is a text sample, read as Unicode."""
    text, display = [], []
    for pair in pairs:
        if pair.gt_category in TEXT:
            text.append(pair)
        elif pair.gt_category == FORMULA and pair.pred_category not in ("", ISOLATED, INLINE):
            text.append(replace(pair, gt_text=as_text(pair.gt_raw)))
        elif pair.gt_category == FORMULA:
            display.append(pair)
    return text, display


def as_text(latex: str) -> str:
    """A formula normalised as text: LaTeX to Unicode, then word characters only."""
    body = latex.strip().strip("$")
    body = body.removeprefix("\\[").removesuffix("\\]").strip()
    converted = latex_to_unicode(body)
    return text_clean(body if converted is None else converted)


def _v16(
    page: Page, found: dict[str, list[Element]], pool: list[Element], tables: list[Pair], spare: int
) -> PageSamples:
    pairs, fallback = quick_match(page.mixed, pool, budget_s=BUDGET_S["1.6"])
    text, _ = _split(pairs)
    text = [_same_alphabet(p) for p in text]
    page_text = [text_norm(e.content) for e in pool if e.fine != INLINE]
    text = [fallbacks.better_text(p, page_text) for p in text]
    found_as_text = {i for p in text for i in p.blocks}
    blocks = [b for i, b in enumerate(page.mixed) if b.category == FORMULA and i not in found_as_text]
    display = [e for e in found.get(ISOLATED, []) if e.fine != INLINE]
    formula_pairs = formulas.match(blocks, display)
    order = reading_order([*text, *formula_pairs, *tables])
    return PageSamples(page.image, tuple(text), tuple(formula_pairs), tuple(tables), order, fallback, spare)


def _same_alphabet(pair: Pair) -> Pair:
    """Text against a formula: both sides are read as text (v1.6's cross-category renormalisation)."""
    if pair.gt_category in TEXT and pair.pred_category in (ISOLATED, INLINE):
        return replace(pair, pred_text=as_text(pair.pred_raw))
    return pair
