"""``jocr score olmocr-bench``: a folder of predictions against the benchmark's tests."""

from __future__ import annotations

import json
from pathlib import Path

from jocr import provenance
from jocr.checks.page import MathBackend
from jocr.errors import ConfigError
from jocr.evaluation.olmocr_data import PageKey, load_bench, load_predictions
from jocr.evaluation.olmocr_postprocess import postprocess
from jocr.evaluation.olmocr_report import Result, Variant, html_report, markdown
from jocr.evaluation.olmocr_score import judge
from jocr.evaluation.report import render

WORST = 20  # pages shown in the HTML report


def run(
    data: Path,
    pred: Path,
    *,
    json_out: Path | None = None,
    html: Path | None = None,
    markdown_out: Path | None = None,
    math: MathBackend = "mathml",
    force: bool = False,
    worst: int = WORST,
) -> int:
    """Score, print the table beside published numbers, and write the files asked for.

    Args:
        data: the benchmark's folder: ``*.jsonl`` and ``pdfs/`` (or their parent with ``bench_data/``).
        pred: the system's folder of ``<pdf stem>_pg<page>_repeat<n>.md``.
        json_out, html, markdown_out: files to write.
        math: ``mathml`` (KaTeX in process) or ``boxes`` (Chromium, as the benchmark's own scorer).
        force: count missing page files as empty instead of refusing.
        worst: pages in the HTML report.

    Returns:
        0, or 1 where some test could not be scored (the rates then leave it out and the output says so).

    Raises:
        ConfigError: unreadable or invalid tests, or missing predictions.
    """
    result, texts = score(data, pred, math=math, force=force)
    table = markdown(result)
    if json_out is not None:
        _write(json_out, json.dumps(result.to_json(), indent=1, ensure_ascii=False) + "\n")
    if markdown_out is not None:
        _write(markdown_out, table)
    if html is not None:
        _write(html, render(html_report(result, texts, worst)))
    print(table)
    for outcome in result.unscored:
        print(f"unscored: {outcome.category} {outcome.id}: {outcome.detail}")
    return 1 if result.unscored else 0


def score(
    data: Path, pred: Path, *, math: MathBackend = "mathml", force: bool = False
) -> tuple[Result, dict[PageKey, list[str]]]:
    """The result, and the raw texts of every page (all repeats)."""
    if math not in ("mathml", "boxes"):
        raise ConfigError(f"math is {math!r}: mathml or boxes")
    bench = load_bench(data)
    texts = load_predictions(pred, bench.pages, force=force)
    raw = judge(bench, texts, math)
    cleaned = {key: [postprocess(text) for text in repeats] for key, repeats in texts.items()}
    post = raw if cleaned == texts else judge(bench, cleaned, math)
    facts = provenance.collect(
        {"data": str(data), "pred": str(pred), "math": math, "force": force, "katex": _katex_version()}
    )
    variants = Variant.of("raw", raw), Variant.of("post-processed", post)
    repeats = max(map(len, texts.values()), default=0)
    return Result(bench, pred.resolve().name, math, repeats, variants, facts), texts


def _katex_version() -> str:
    from jocr.markup.katex import VERSION

    return VERSION


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    print(f"written: {path}")
