"""What a run of the benchmark yields: typed, JSON-ready, with every readout named."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from jocr.errors import UnscoredError
from jocr.evaluation.omnidocbench.cdm_backends import Backend
from jocr.evaluation.omnidocbench.matching import Pair
from jocr.evaluation.omnidocbench.metrics import Readout, edit_readout, mean, symbols, table_scores, value_readout
from jocr.evaluation.omnidocbench.pages import PageSamples

METRICS = ("text_edit", "formula_edit", "table_edit", "reading_order", "teds", "teds_s")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
LOWER_IS_BETTER = {"text_edit", "formula_edit", "table_edit", "reading_order"}


@dataclass(frozen=True, slots=True)
class Scores:
    """All metrics of one set of predictions. ``metrics`` holds METRICS and the CDM under its backend's name."""

    metrics: dict[str, Readout]
    overall_page: float | None  # of 100; only with the real CDM
    overall_pooled: float | None
    overall_katex_page: float | None  # the same formula with the surrogate in CDM's place; never comparable
    per_page: dict[str, dict[str, float]]
    unscored: tuple[str, ...] = ()  # samples left out of a mean, and why


@dataclass(frozen=True, slots=True)
class Result:
    """One run. ``raw`` scores the files as they are, ``cut`` after the repeated-tail cut."""

    version: str
    pages: int
    missing: tuple[str, ...]  # pages without a prediction file: skipped by v1.5, scored as empty by v1.6
    raw: Scores
    cut: Scores
    cut_pages: tuple[str, ...]  # pages that the cut changed
    loop_share: float  # pages that end in ten or more repeats
    fallbacks: tuple[str, ...]  # pages where matching ran out of time
    spare_tables: int
    cdm: str | None
    cdm_reason: str  # why there is no CDM; empty where there is one
    notes: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Cdm:
    """CDM of formula pairs with a memory, so that the raw and the cut run share their work.

    The best of the annotated alternatives counts; with ``latin`` (v1.6) CJK characters are scored as Latin ones.
    """

    def __init__(self, backend: Backend | None, *, latin: bool = False) -> None:
        self.backend = backend
        self._latin = latin
        self._known: dict[tuple[str, str], float | str] = {}

    def score(self, pair: Pair) -> float:
        """F1 of one pair; 0 where nothing was predicted. Raises UnscoredError."""
        assert self.backend is not None
        if not pair.pred:
            return 0.0
        prediction = formula_source(pair.pred_raw)
        return max(self._one(formula_source(r), prediction) for r in (pair.gt_raw, *pair.alternatives))

    def _one(self, reference: str, prediction: str) -> float:
        assert self.backend is not None
        key = latin_surrogates(reference, prediction) if self._latin else (reference, prediction)
        if key not in self._known:
            try:
                self._known[key] = self.backend.score(*key)
            except UnscoredError as e:
                self._known[key] = str(e)
        value = self._known[key]
        if isinstance(value, str):
            raise UnscoredError(value)
        return value


def formula_source(raw: str) -> str:
    """LaTeX without delimiters; several formulas are stacked."""
    parts = [_bare(line) for line in raw.split("\n\\[")]
    return parts[0] if len(parts) == 1 else "\\begin{gathered}" + r" \\ ".join(parts) + "\\end{gathered}"


def latin_surrogates(reference: str, prediction: str) -> tuple[str, str]:
    """Both formulas with every CJK character replaced by a letter that neither uses: TeX then needs no CJK font."""
    both = reference + prediction
    free = [c for c in string.ascii_letters if c not in both] or list(string.ascii_letters)
    seen: dict[str, str] = {}
    for char in _CJK.findall(both):
        seen.setdefault(char, free[len(seen) % len(free)])
    return _CJK.sub(lambda m: seen[m[0]], reference), _CJK.sub(lambda m: seen[m[0]], prediction)


def _bare(latex: str) -> str:
    return latex.strip().strip("$").strip().removeprefix("\\[").removesuffix("\\]").strip()


def summarise(pages: Sequence[PageSamples], cdm: Cdm) -> Scores:
    """Every metric over ``pages``. What cannot be scored is listed and left out of its mean, never counted as 0."""
    unscored: list[str] = []
    metrics: dict[str, Readout] = {}
    per_page: dict[str, dict[str, float]] = {p.image: {} for p in pages}

    def add(name: str, found: tuple[Readout, dict[str, float]]) -> None:
        metrics[name] = found[0]
        for image, value in found[1].items():
            per_page[image][name] = value

    add("text_edit", edit_readout((p.image, x.gt_text, x.pred_text) for p in pages for x in p.text))
    add("formula_edit", edit_readout((p.image, x.gt_text, x.pred_text) for p in pages for x in p.formulas))
    add("table_edit", edit_readout((p.image, x.gt_text, x.pred_text) for p in pages for x in p.tables))
    add("reading_order", edit_readout((p.image, symbols(p.order[0]), symbols(p.order[1])) for p in pages if p.order))
    full, structure = _tables(pages, unscored)
    add("teds", value_readout(full))
    add("teds_s", value_readout(structure))
    if cdm.backend is not None:
        add(cdm.backend.name, value_readout(_cdm(pages, cdm, unscored)))
    real, surrogate = metrics.get("cdm"), metrics.get("cdm_katex")
    return Scores(
        metrics=metrics,
        overall_page=_overall(metrics, real, "page"),
        overall_pooled=_overall(metrics, real, "pooled"),
        overall_katex_page=_overall(metrics, surrogate, "page"),
        per_page=per_page,
        unscored=tuple(unscored),
    )


def _overall(metrics: dict[str, Readout], cdm: Readout | None, which: str) -> float | None:
    """((1 - text edit) + TEDS + CDM) / 3 of 100; None where one of the three is not there."""
    parts = [getattr(metrics["text_edit"], which), getattr(metrics["teds"], which), cdm and getattr(cdm, which)]
    if any(p is None for p in parts):
        return None
    return mean([100 * (1 - parts[0]), 100 * parts[1], 100 * parts[2]])


def _tables(
    pages: Sequence[PageSamples], unscored: list[str]
) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    full: list[tuple[str, float]] = []
    structure: list[tuple[str, float]] = []
    for page in pages:
        for k, pair in enumerate(page.tables):
            try:
                a, b = table_scores(pair.gt_text, pair.pred_text) if pair.pred else (0.0, 0.0)
            except UnscoredError as e:
                unscored.append(f"{page.image} table {k}: {e}")
                continue
            full.append((page.image, a))
            structure.append((page.image, b))
    return full, structure


def _cdm(pages: Sequence[PageSamples], cdm: Cdm, unscored: list[str]) -> list[tuple[str, float]]:
    out: list[tuple[str, float]] = []
    for page in pages:
        for k, pair in enumerate(page.formulas):
            try:
                out.append((page.image, cdm.score(pair)))
            except UnscoredError as e:
                unscored.append(f"{page.image} formula {k}: {e}")
    return out
