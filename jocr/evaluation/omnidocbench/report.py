"""How an OmniDocBench result is written: tables beside published numbers, and the worst pages with what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jocr.evaluation.omnidocbench.annotations import Page
from jocr.evaluation.omnidocbench.costs import ned
from jocr.evaluation.omnidocbench.matching import Pair
from jocr.evaluation.omnidocbench.metrics import Readout
from jocr.evaluation.omnidocbench.pages import PageSamples
from jocr.evaluation.omnidocbench.results import LOWER_IS_BETTER, Result, Scores
from jocr.evaluation.published import OMNIDOCBENCH_COLUMNS, OMNIDOCBENCH_V15, OMNIDOCBENCH_V16, Published
from jocr.evaluation.report import PageImages, Report, Table, WorstPage

SHOWN_FAILURES = 12


def score_table(result: Result) -> Table:
    """Ours, page means, raw and with tails cut, above the published rows. Edit distances as they are, the rest in %."""
    head = ["system", *OMNIDOCBENCH_COLUMNS.values(), "cdm_katex", "source"]
    rows = [_own_row("raw", result.raw), _own_row("tails cut", result.cut)]
    published = OMNIDOCBENCH_V15 if result.version == "1.5" else OMNIDOCBENCH_V16
    rows += [_published_row(p) for p in published]
    return Table(f"OmniDocBench v{result.version}, page-level means", head, rows, " ".join(notes(result)))


def _own_row(name: str, scores: Scores) -> list[str]:
    cells = [_number(scores.overall_page, 2)]
    for column in list(OMNIDOCBENCH_COLUMNS)[1:]:
        readout = scores.metrics.get(column)
        cells.append(_shown(column, readout.page if readout else None))
    surrogate = scores.metrics.get("cdm_katex")
    return [f"this run, {name}", *cells, _shown("cdm_katex", surrogate.page if surrogate else None), "this run"]


def _published_row(entry: Published) -> list[str]:
    cells = [f"{entry.overall:.2f}"]
    for column in list(OMNIDOCBENCH_COLUMNS)[1:]:
        value = entry.scores.get(column)
        cells.append(_number(value, 3 if column in LOWER_IS_BETTER else 2))
    return [entry.system, *cells, "-", entry.source + (f" ({entry.note})" if entry.note else "")]


def _shown(metric: str, value: float | None) -> str:
    """Edit distances with three decimals, scores in per cent."""
    if metric in LOWER_IS_BETTER:
        return _number(value, 3)
    return _number(None if value is None else 100 * value, 2)


def _number(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"


def readout_table(result: Result) -> Table:
    """Every metric in every readout, raw and cut."""
    rows = []
    for name, scores in (("raw", result.raw), ("tails cut", result.cut)):
        for metric, r in scores.metrics.items():
            arrow = "lower" if metric in LOWER_IS_BETTER else "higher"
            counts = [str(r.pages), str(r.samples)]
            rows.append([metric, name, *(_number(v, 5) for v in _values(r)), *counts, f"{arrow} is better"])
        for label, value in _overalls(scores):
            rows.append([label, name, _number(value[0], 2), _number(value[1], 2), "-", "-", "-", "higher is better"])
    head = ["metric", "predictions", "page mean", "pooled", "sample mean", "pages", "samples", ""]
    return Table("All readouts", head, rows)


def _values(r: Readout) -> tuple[float | None, float | None, float | None]:
    return r.page, r.pooled, r.sample


def _overalls(scores: Scores) -> Iterator[tuple[str, tuple[float | None, float | None]]]:
    if scores.overall_page is not None:
        yield "overall", (scores.overall_page, scores.overall_pooled)
    if scores.overall_katex_page is not None:
        yield "overall with cdm_katex (not comparable)", (scores.overall_katex_page, None)


def notes(result: Result) -> list[str]:
    """Sentences a reader of the tables needs."""
    said = [
        "Overall = ((1 - text edit) + TEDS + CDM) / 3 of 100, page means; it needs the real CDM.",
        "cdm_katex is a surrogate (KaTeX boxes in Chromium) and comparable to no published CDM.",
        f"{len(result.cut_pages)} pages changed by the tail cut; {100 * result.loop_share:.1f} % end in a loop.",
        *(f"{n}." for n in result.notes),
    ]
    if result.cdm is None:
        said.append(f"CDM is unscored: {result.cdm_reason}.")
    if result.spare_tables:
        said.append(f"{result.spare_tables} predicted tables answer no annotated one; this benchmark lets them pass.")
    if result.fallbacks:
        said.append(f"Matching ran out of time on {len(result.fallbacks)} pages, which the plain matcher took over.")
    if result.raw.unscored:
        said.append(f"{len(result.raw.unscored)} samples are unscored and in no mean.")
    return said


def markdown(result: Result) -> str:
    """Both tables as Markdown, then the notes."""
    parts = [_pipes(t) for t in (score_table(result), readout_table(result))]
    return "\n\n".join(parts) + "\n\n" + "\n".join(f"- {note}" for note in notes(result)) + "\n"


def _pipes(table: Table) -> str:
    lines = [table.head, ["---"] * len(table.head), *table.rows]
    return f"**{table.title}**\n\n" + "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def html_report(
    result: Result,
    pages: Mapping[str, Page],
    samples: Sequence[PageSamples],
    texts: Mapping[str, str],
    images: Path,
    worst: int,
) -> Report:
    """The pages that lose most, each with its image, prediction, reference and worst samples."""
    shown = _worst_pages(result, pages, samples, texts, images, worst)
    title = f"OmniDocBench v{result.version}"
    return Report(title, [score_table(result), readout_table(result)], shown, result.provenance)


def _worst_pages(
    result: Result,
    pages: Mapping[str, Page],
    samples: Sequence[PageSamples],
    texts: Mapping[str, str],
    images: Path,
    worst: int,
) -> Iterator[WorstPage]:
    loss = {s.image: page_loss(result.raw.per_page[s.image]) for s in samples}
    ranked = sorted((s for s in samples if loss[s.image] > 0), key=lambda s: (-loss[s.image], s.image))
    with PageImages() as renderer:
        for found in ranked[:worst]:
            image, why = renderer.jpeg(images / found.image)
            values = result.raw.per_page[found.image]
            yield WorstPage(
                name=found.image,
                score=", ".join(f"{k} {v:.3f}" for k, v in values.items()),
                failures=failures(found),
                prediction=texts[found.image],
                reference=reference_markdown(pages[found.image]),
                image=image,
                image_note=why,
            )


def page_loss(values: Mapping[str, float]) -> float:
    """Mean loss over the metrics of a page (1 - score where higher is better); 0 on a page without any."""
    losses = [v if k in LOWER_IS_BETTER else 1 - v for k, v in values.items()]
    return sum(losses) / len(losses) if losses else 0.0


def failures(page: PageSamples) -> list[str]:
    """The worst samples of a page as sentences, the largest edit distances first."""
    scored: list[tuple[float, str]] = []
    for kind, pairs in (("text", page.text), ("formula", page.formulas), ("table", page.tables)):
        for pair in pairs:
            edit = ned(pair.gt_text, pair.pred_text)
            if edit > 0:
                scored.append((edit * len(pair.gt_text), _sentence(kind, pair, edit)))
    out = [s for _, s in sorted(scored, key=lambda x: -x[0])[:SHOWN_FAILURES]]
    if page.order is not None and page.order[2] > 0:
        out.append(f"reading order: edit {page.order[2]:.3f}; annotated {page.order[0]}, predicted {page.order[1]}")
    return out


def _sentence(kind: str, pair: Pair, edit: float) -> str:
    expected = _short(pair.gt_raw)
    if not pair.pred:
        return f"{kind} ({pair.gt_category}) not found: {expected}"
    return f"{kind} ({pair.gt_category}) edit {edit:.3f}: expected {expected}, found {_short(pair.pred_raw)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 160 else line[:157] + "...")


def reference_markdown(page: Page) -> str:
    """The annotated blocks in reading order, for the eye."""
    blocks: list[Any] = [b for b in (*page.mixed, *page.tables) if b.order is not None]
    return "\n\n".join(b.content for b in sorted(blocks, key=lambda b: b.order))
