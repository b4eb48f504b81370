"""OmniDocBench v1.5 against the results recorded from the official scorer: every vector, pair and page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jocr.evaluation.omnidocbench import score
from jocr.evaluation.omnidocbench.matching import Pair
from jocr.evaluation.omnidocbench.results import Result
from jocr.evaluation.omnidocbench_vectors import FUNCTIONS
from jocr.evaluation.vectors import same

SETS = ("pred_demo", "md_from_annotations")


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    return shared_data / "documents" / "omnidocbench"


@pytest.fixture(scope="module", params=SETS)
def scored(folder: Path, request: pytest.FixtureRequest) -> tuple[Result, dict[str, Any], list[Any], str]:
    name = request.param
    expected = json.loads((folder / f"expected_v15_{name}.json").read_text())
    result, samples, _ = score(folder / "annotations.json", folder / name, version="1.5", cdm="none")
    return result, expected, samples, name


def test_every_recorded_vector(shared_data: Path) -> None:
    lines = (shared_data / "documents/golden/omnidocbench_v15_vectors.jsonl").read_text().splitlines()
    vectors = [json.loads(line) for line in lines]
    wrong = [v for v in vectors if not same(FUNCTIONS[v["fn"]](v["input"]), v["expected"])]
    assert len(vectors) == 51
    assert wrong == []


def test_page_and_pooled_values(scored: tuple[Result, dict[str, Any], list[Any], str]) -> None:
    result, expected, _, _ = scored
    names = {"text_edit": "text_block", "formula_edit": "display_formula", "table_edit": "table"}
    for ours, theirs in {**names, "reading_order": "reading_order"}.items():
        readout = result.raw.metrics[ours]
        assert readout.page == pytest.approx(expected[theirs]["subset"]["edit_page_avg"], abs=1e-9), ours
        assert readout.pooled == pytest.approx(expected[theirs]["subset"]["edit_whole"], abs=1e-9), ours
        pages = {image: v[ours] for image, v in result.raw.per_page.items() if ours in v}
        assert pages == pytest.approx(expected[theirs]["per_page_edit"], abs=1e-9), ours
    subset = expected["table"]["subset"]
    assert result.raw.metrics["teds"].page == pytest.approx(subset["teds_page_avg"], abs=1e-6)
    assert result.raw.metrics["teds_s"].page == pytest.approx(subset["teds_s_page_avg"], abs=1e-6)
    assert result.raw.metrics["teds"].sample == pytest.approx(subset["teds_sample_avg"], abs=1e-6)
    assert result.raw.unscored == ()
    assert result.fallbacks == ()


@pytest.mark.parametrize("scored", ["pred_demo"], indirect=True)  # the only ones whose pairs are recorded
def test_every_matched_pair(scored: tuple[Result, dict[str, Any], list[Any], str]) -> None:
    _, expected, samples, _ = scored
    for kind, field in (("text_block", "text"), ("display_formula", "formulas"), ("table", "tables")):
        ours = {(s.image, p.gt): _as_recorded(p) for s in samples for p in getattr(s, field)}
        theirs = {
            (r["img_id"], tuple(r["gt_idx"])): (
                tuple(i for i in r["pred_idx"] if i != ""),
                r["norm_gt"],
                r["norm_pred"],
            )
            for r in expected[kind]["samples"]
        }
        assert ours == theirs, kind
    orders = {r["img_id"]: (r["gt"], r["pred"]) for r in expected["reading_order"]["samples"]}
    assert {s.image: s.order[:2] for s in samples if s.order} == orders


def _as_recorded(pair: Pair) -> tuple[tuple[int, ...], str, str]:
    return pair.pred, pair.gt_text, pair.pred_text
