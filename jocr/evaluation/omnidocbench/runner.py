"""``jocr score omnidocbench``: predictions of a folder against annotations, v1.5 or v1.6."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jocr import provenance
from jocr.errors import ConfigError
from jocr.evaluation.omnidocbench import report
from jocr.evaluation.omnidocbench.annotations import Page, load
from jocr.evaluation.omnidocbench.cdm_backends import open_backend
from jocr.evaluation.omnidocbench.pages import PageSamples, Version, score_page
from jocr.evaluation.omnidocbench.results import Cdm, Result, summarise
from jocr.evaluation.omnidocbench.tails import cut_tail, ends_in_loop
from jocr.evaluation.report import render

SUFFIXES = (".md", ".mmd")
WORST = 20  # pages shown in the HTML report


def run(
    data: Path,
    pred: Path,
    *,
    version: str = "1.5",
    json_out: Path | None = None,
    html: Path | None = None,
    markdown_out: Path | None = None,
    cdm: str = "auto",
    images: Path | None = None,
    worst: int = WORST,
) -> int:
    """Score, print the tables beside published numbers, and write the files asked for.

    Args:
        data: the benchmark's annotations.json.
        pred: folder with ``<image stem>.md`` per page.
        version: "1.5" or "1.6".
        json_out, html, markdown_out: files to write.
        cdm: ``auto``, ``katex``, ``none``, a path to a real CDM, or ``command:...`` (``cdm_backends.open_backend``).
        images: folder of page images for the report; default: ``images`` beside ``data``.
        worst: pages in the HTML report.

    Returns:
        0, or 1 where some sample could not be scored (the means then leave it out and the output says so).

    Raises:
        ConfigError: bad annotations, version or folder.
        EngineError: a CDM toolchain was asked for and is broken: CDM(x, x) is not 1.
    """
    result, samples, texts = score(data, pred, version=version, cdm=cdm)
    table = report.markdown(result)
    print(table)
    for line in result.raw.unscored:
        print(f"unscored: {line}")
    if json_out is not None:
        _write(json_out, json.dumps(result.to_json(), indent=1, ensure_ascii=False) + "\n")
    if markdown_out is not None:
        _write(markdown_out, table)
    if html is not None:
        pages = {p.image: p for p in load(data)}
        shown = report.html_report(result, pages, samples, texts, images or data.parent / "images", worst)
        _write(html, render(shown))
    return 1 if result.raw.unscored else 0


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    print(f"written: {path}")


def score(
    data: Path, pred: Path, *, version: str = "1.5", cdm: str = "auto"
) -> tuple[Result, list[PageSamples], dict[str, str]]:
    """The result, the samples of every scored page, and the text scored for each (raw)."""
    if version not in ("1.5", "1.6"):
        raise ConfigError(f"version {version!r}: 1.5 or 1.6")
    checked: Version = "1.5" if version == "1.5" else "1.6"
    pages = load(data)
    texts = _predictions(pages, pred)
    missing = [p.image for p in pages if p.image not in texts]
    if checked == "1.6":
        texts |= dict.fromkeys(missing, "")
    if len(missing) == len(pages):
        raise ConfigError(f"no prediction in {pred} is named after a page, as {pages[0].stem}.md would be")
    backend, reason = open_backend(cdm)
    scored = [p for p in pages if p.image in texts]
    raw = [score_page(p, texts[p.image], checked) for p in scored]
    shortened = {p.image: cut_tail(texts[p.image]) for p in scored}
    changed = [p.image for p in scored if shortened[p.image] != texts[p.image]]
    cut = [
        score_page(p, shortened[p.image], checked) if p.image in changed else r
        for p, r in zip(scored, raw, strict=True)
    ]
    memory = Cdm(backend, latin=checked == "1.6")
    raw_scores = summarise(raw, memory)
    result = Result(
        version=checked,
        pages=len(scored),
        missing=tuple(missing),
        raw=raw_scores,
        cut=summarise(cut, memory) if changed else raw_scores,
        cut_pages=tuple(changed),
        loop_share=sum(ends_in_loop(texts[p.image]) for p in scored) / len(scored),
        fallbacks=tuple(r.image for r in raw if r.fallback),
        spare_tables=sum(r.spare_tables for r in raw),
        cdm=None if backend is None else backend.name,
        cdm_reason=reason,
        notes=_notes(checked, missing),
        provenance=provenance.collect(_recipe(data, pred, checked, cdm)),
    )
    return result, raw, texts


def _predictions(pages: Sequence[Page], pred: Path) -> dict[str, str]:
    """Prediction text by image name. Raises ConfigError for a file that is no UTF-8 text: noise gets no score."""
    if not pred.is_dir():
        raise ConfigError(f"{pred} is no folder of predictions")
    found = {}
    for page in pages:
        names = [page.stem + s for s in SUFFIXES] + [page.image + s for s in SUFFIXES]
        file = next((f for name in names if (f := pred / name).is_file()), None)
        if file is not None:
            try:
                found[page.image] = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"cannot read {file} as UTF-8 text: {error}") from error
    return found


def _notes(version: str, missing: Sequence[str]) -> tuple[str, ...]:
    notes = []
    if missing and version == "1.5":
        notes.append(f"{len(missing)} pages without a prediction are left out, as v1.5 does: this raises the score")
    if missing and version == "1.6":
        notes.append(f"{len(missing)} pages without a prediction are scored as empty")
    if version == "1.6":
        notes.append("v1.6 rules follow their description; only v1.5 is checked against recorded official results")
    return tuple(notes)


def _recipe(data: Path, pred: Path, version: str, cdm: str) -> dict[str, Any]:
    return {"benchmark": "OmniDocBench", "version": version, "data": str(data), "pred": str(pred), "cdm": cdm}
