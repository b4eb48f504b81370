"""How an olmOCR-Bench result is written: JSON, a Markdown table beside published numbers, HTML of the worst pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jocr.checks import Check
from jocr.checks.page import MathBackend
from jocr.evaluation.olmocr_data import Bench, PageKey
from jocr.evaluation.olmocr_postprocess import RULES
from jocr.evaluation.olmocr_score import HEADERS, Outcome, Overall, Rate, overall, rates
from jocr.evaluation.published import OLMOCR_BENCH, OLMOCR_COLUMNS
from jocr.evaluation.report import PageImages, Report, Table, WorstPage

NOT_PUBLISHED_SET = "These are not the files of the published benchmark: the published rows are no comparison for them."


@dataclass(frozen=True)
class Variant:
    """The scores of one form of the predictions."""

    name: str  # raw | post-processed
    outcomes: Sequence[Outcome]
    categories: Mapping[str, Rate]
    with_headers: Overall | None
    without_headers: Overall | None

    @classmethod
    def of(cls, name: str, outcomes: Sequence[Outcome]) -> Variant:
        found = rates(outcomes)
        return cls(name, outcomes, found, overall(found), overall(found, headers=False))

    def to_json(self) -> dict[str, Any]:
        return {
            "overall": _overall_json(self.with_headers),
            "overall_without_headers_footers": _overall_json(self.without_headers),
            "categories": {name: _rate_json(rate) for name, rate in self.categories.items()},
            "kinds": {name: _rate_json(rate) for name, rate in rates(self.outcomes, "kind").items()},
            "tests": [asdict(outcome) for outcome in self.outcomes],
        }


@dataclass(frozen=True)
class Result:
    """A whole run: both variants, and what they were made of."""

    bench: Bench
    system: str
    math: MathBackend
    repeats: int  # most repeats of any page
    variants: tuple[Variant, Variant]  # raw, post-processed
    provenance: Mapping[str, Any]

    @property
    def unscored(self) -> list[Outcome]:
        return [outcome for outcome in self.variants[0].outcomes if outcome.passed is None]

    def to_json(self) -> dict[str, Any]:
        return {
            "benchmark": "olmocr-bench",
            "system": self.system,
            "published_set": self.bench.is_published_set(),
            "math": self.math,
            "repeats": self.repeats,
            "pages": len(self.bench.pages),
            "post_processing": [sentence for sentence, _ in RULES],
            "unscored": len(self.unscored),
            **{variant.name.replace("-", "_"): variant.to_json() for variant in self.variants},
            "provenance": dict(self.provenance),
        }


def _overall_json(value: Overall | None) -> dict[str, float] | None:
    return None if value is None else {**asdict(value), "half_width": value.half_width}


def _rate_json(rate: Rate) -> dict[str, Any]:
    return {"rate": rate.value, **asdict(rate)}


def columns(result: Result) -> dict[str, str]:
    """Category -> heading: the published eight where they apply, then the rest under their own names."""
    own = [name for name in result.variants[0].categories if name not in OLMOCR_COLUMNS]
    return {**OLMOCR_COLUMNS, **{name: name for name in own}}


def score_table(result: Result) -> Table:
    """Ours, raw and post-processed, above the published rows; all in per cent."""
    names = columns(result)
    head = ["system", *names.values(), "Overall", "without H&F", "source"]
    rows = [_own_row(result, variant, names) for variant in result.variants]
    for entry in OLMOCR_BENCH:
        cells = [_percent(entry.scores.get(name)) for name in names]
        printed = [value for name, value in entry.scores.items() if name != HEADERS]
        without = sum(printed) / len(printed) if HEADERS in entry.scores else None
        known = f"{entry.overall:.1f}", _percent(entry.overall if entry.note == "without H&F" else without)
        if entry.note == "without H&F":
            known = "-", known[1]
        rows.append([entry.system, *cells, *known, entry.source + (f" ({entry.note})" if entry.note else "")])
    return Table("olmOCR-Bench", head, rows, " ".join(notes(result)))


def _own_row(result: Result, variant: Variant, names: Mapping[str, str]) -> list[str]:
    cells = []
    for name in names:
        rate = variant.categories.get(name)
        cells.append(_percent(100 * rate.value if rate and rate.value is not None else None))
    overalls = [
        "-" if value is None else f"{100 * value.value:.1f} ± {100 * value.half_width:.1f}"
        for value in (variant.with_headers, variant.without_headers)
    ]
    return [f"{result.system}, {variant.name}", *cells, *overalls, "this run"]


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def notes(result: Result) -> list[str]:
    """Sentences a reader of the table needs."""
    said = [
        "Overall is the mean of the category rates; ± is half the 95 % bootstrap interval (1,000 draws).",
        f"Formulas are compared by {'Chromium glyph boxes' if result.math == 'boxes' else 'KaTeX in process'}.",
        "Published 'without H&F' values are means of the printed columns.",
    ]
    if not result.bench.is_published_set():
        said.append(NOT_PUBLISHED_SET)
    if result.bench.skipped:
        said.append(f"Files without tests were left out: {', '.join(result.bench.skipped)}.")
    if result.unscored:
        said.append(f"{len(result.unscored)} tests could not be scored and are in no rate.")
    return said


def markdown(result: Result) -> str:
    """The score table as Markdown, a table of counts, and the notes."""
    table = score_table(result)
    counts = [
        [name, str(rate.passed), str(rate.total), str(rate.unscored)]
        for name, rate in result.variants[0].categories.items()
    ]
    parts = [_pipes(table.head, table.rows), _pipes(["category (raw)", "passed", "tests", "unscored"], counts)]
    return "\n\n".join(parts) + "\n\n" + "\n".join(f"- {note}" for note in notes(result)) + "\n"


def _pipes(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def html_report(result: Result, texts: Mapping[PageKey, Sequence[str]], worst: int) -> Report:
    """The pages with the most failed tests (raw), each with its image, its text and every failure."""
    counts = [[n, f"{r.passed} of {r.total}", str(r.unscored)] for n, r in result.variants[0].categories.items()]
    tables = [score_table(result), Table("Categories (raw)", ["category", "passed", "unscored"], counts)]
    pages = _worst_pages(result, texts, worst)
    return Report(f"olmOCR-Bench: {result.system}", tables, pages, result.provenance)


def expected(check: Check) -> str:
    """What a test asks for, as Markdown: the benchmark has no reference text, only such demands."""
    record = {k: v for k, v in check.record().items() if k not in ("pdf", "page", "id", "type", "checked", "url")}
    if latex := record.pop("math", None):
        record = {"math": f"$${latex}$$", **record}
    return f"**{check.kind}**\n" + "\n".join(f"- {name}: {value}" for name, value in record.items())


def _worst_pages(result: Result, texts: Mapping[PageKey, Sequence[str]], worst: int) -> Iterator[WorstPage]:
    by_page: dict[PageKey, list[Outcome]] = defaultdict(list)
    for outcome in result.variants[0].outcomes:
        by_page[outcome.pdf, outcome.page].append(outcome)
    checks = {check.id: check for group in result.bench.categories.values() for check in group}
    failed = {key: [o for o in found if not o.passed] for key, found in by_page.items()}
    ranked = sorted((key for key in failed if failed[key]), key=lambda key: (-len(failed[key]), key))
    with PageImages() as images:
        for key in ranked[:worst]:
            image, why = images.jpeg(result.bench.pdf(key[0]), key[1])
            yield WorstPage(
                name=f"{key[0]}, page {key[1]}",
                score=f"{len(by_page[key]) - len(failed[key])} of {len(by_page[key])} passed",
                failures=[
                    f"{'unscored' if o.passed is None else 'failed'} {o.kind} {o.id}: {o.detail}" for o in failed[key]
                ],
                prediction=texts[key][0],
                reference="\n\n".join(expected(checks[o.id]) for o in failed[key]),
                image=image,
                image_note=why,
            )
