"""The olmOCR-Bench runner: files, aggregation, output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jocr.errors import ConfigError, UnscoredError
from jocr.evaluation import olmocr_score
from jocr.evaluation.olmocr_bench import run, score
from jocr.evaluation.olmocr_data import load_bench, load_predictions
from jocr.evaluation.olmocr_postprocess import postprocess
from jocr.evaluation.olmocr_score import Rate, overall
from jocr.evaluation.published import OLMOCR_BENCH, OLMOCR_COLUMNS


def line(kind: str, name: str, pdf: str = "c/one.pdf", **fields: Any) -> str:
    return json.dumps({"pdf": pdf, "page": 1, "id": name, "type": kind, **fields}) + "\n"


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Two categories over two pages, one PDF nobody asks about, and a JSONL without tests."""
    root = tmp_path / "bench_data"
    (root / "pdfs/c").mkdir(parents=True)
    for name in ("one", "two_pg2", "silent"):
        (root / f"pdfs/c/{name}.pdf").write_bytes(b"%PDF-")
    (root / "headers_footers.jsonl").write_text(
        line("absent", "h1", text="Page 1") + line("absent", "h2", text="Chapter"), "utf-8"
    )
    texts = line("present", "m1", text="alpha") + line("order", "m2", before="alpha", after="beta")
    texts += line("baseline", "m3", pdf="c/two_pg2.pdf", max_length=5)
    (root / "multi_column.jsonl").write_text(texts, "utf-8")
    (root / "verdicts.jsonl").write_text('{"id": "h1", "passed": true}\n', "utf-8")
    return tmp_path


@pytest.fixture
def pred(tmp_path: Path) -> Path:
    folder = tmp_path / "system" / "c"
    folder.mkdir(parents=True)
    (folder / "one_pg1_repeat1.md").write_text("alpha Page 1 beta", "utf-8")
    (folder / "two_pg2_pg1_repeat1.md").write_text("", "utf-8")
    (folder / "silent_pg1_repeat1.md").write_text("words", "utf-8")
    return tmp_path / "system"


def test_categories_and_baselines(bench: Path) -> None:
    found = load_bench(bench)
    counts = {name: len(checks) for name, checks in found.categories.items()}
    assert counts == {"headers_footers": 2, "multi_column": 3, "baseline": 2}
    assert {c.pdf for c in found.categories["baseline"]} == {"c/one.pdf", "c/silent.pdf"}
    assert found.skipped == ("verdicts.jsonl",)
    assert not found.is_published_set()


def test_scores(bench: Path, pred: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "o/result.json"
    assert run(bench, pred, json_out=out, html=tmp_path / "o/r.html", markdown_out=tmp_path / "o/t.md") == 0
    result = json.loads(out.read_text("utf-8"))
    rates = {name: entry["rate"] for name, entry in result["raw"]["categories"].items()}
    assert rates == {"headers_footers": 0.5, "multi_column": 1.0, "baseline": 1.0}
    assert result["raw"]["overall"]["value"] == pytest.approx(2.5 / 3)
    assert result["raw"]["overall_without_headers_footers"]["value"] == 1.0
    assert result["unscored"] == 0
    assert result["provenance"]["recipe"]["math"] == "mathml"
    failed = [t for t in result["raw"]["tests"] if not t["passed"]]
    assert [t["id"] for t in failed] == ["h1"]
    assert "Page 1" in failed[0]["detail"]
    printed = capsys.readouterr().out
    assert (tmp_path / "o/t.md").read_text("utf-8") in printed
    assert "| system, raw |" in printed
    assert "arXiv 2609.03181" in printed
    html = (tmp_path / "o/r.html").read_text("utf-8")
    assert "h1" in html
    assert "no image: " in html  # the PDF is none
    assert "<script" not in html


def test_missing_pages(bench: Path, pred: Path) -> None:
    (pred / "c/one_pg1_repeat1.md").unlink()
    with pytest.raises(ConfigError, match=r"c/one_pg1_repeat1\.md.*--force"):
        score(bench, pred)
    result, texts = score(bench, pred, force=True)
    assert texts["c/one.pdf", 1] == [""]
    assert result.variants[0].categories["headers_footers"] == Rate(2, 2)
    with pytest.raises(ConfigError, match="no folder"):
        score(bench, pred / "nowhere")


def test_repeats_are_read_in_order_and_the_majority_counts(bench: Path, pred: Path) -> None:
    for n, text in ((2, "alpha beta"), (10, "nothing")):
        (pred / f"c/one_pg1_repeat{n}.md").write_text(text, "utf-8")
    assert load_predictions(pred, [("c/one.pdf", 1)])["c/one.pdf", 1] == ["alpha Page 1 beta", "alpha beta", "nothing"]
    result, _ = score(bench, pred)
    passed = {o.id: o.passed for o in result.variants[0].outcomes}
    assert passed["h1"]
    assert passed["m1"]
    (pred / "c/one_pg1_repeat2.md").unlink()
    result, _ = score(bench, pred)
    passed = {o.id: o.passed for o in result.variants[0].outcomes}
    assert not passed["m1"]  # one of two is no majority


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("more.jsonl", line("absent", "h1", text="x"), "'h1' occurs in"),
        ("more.jsonl", line("absent", "q") + "\n", "text"),
        ("more.jsonl", "{broken\n", r"more\.jsonl:1"),
    ],
)
def test_bad_tests_are_refused(bench: Path, name: str, text: str, match: str) -> None:
    (bench / "bench_data" / name).write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=match):
        load_bench(bench)


def test_no_tests_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder"):
        load_bench(tmp_path / "none")
    with pytest.raises(ConfigError, match="jsonl"):
        load_bench(tmp_path)


def test_unscored_is_said_and_in_no_rate(
    bench: Path, pred: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from jocr.checks.text_checks import Present

    def refuse(self: object, page: object) -> None:
        raise UnscoredError("out of time")

    monkeypatch.setattr(Present, "run", refuse)
    assert run(bench, pred) == 1
    printed = capsys.readouterr().out
    assert "unscored: multi_column m1: out of time" in printed
    result, _ = score(bench, pred)
    assert result.variants[0].categories["multi_column"] == Rate(2, 2, unscored=1)


def test_the_interval_is_that_of_resampling() -> None:
    """Binomial draws against literal resampling of the tests."""
    categories = {"a": Rate(30, 40), "headers_footers": Rate(5, 10)}
    ours = overall(categories, draws=4000)
    assert ours is not None
    rng = np.random.default_rng(1)
    a, b = np.repeat([1, 0], [30, 10]), np.repeat([1, 0], [5, 5])
    draws = [(rng.choice(a, 40).mean() + rng.choice(b, 10).mean()) / 2 for _ in range(4000)]
    assert ours.value == pytest.approx(0.625)
    assert (ours.low, ours.high) == pytest.approx(tuple(np.percentile(draws, [2.5, 97.5])), abs=0.015)
    assert overall(categories, headers=False).value == 0.75  # type: ignore[union-attr]
    assert overall({"a": Rate(0, 0)}) is None
    assert olmocr_score.overall(categories) == olmocr_score.overall(categories)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\ntitle: x\n---\nbody", "body"),
        ("---\n\nbody\n\n---", "---\n\nbody\n\n---"),
        ("```markdown\nbody\n```", "body"),
        ("<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|> more", "text more"),
        ("a<!-- hidden -->b", "ab"),
        ("a<br />b<BR>c", "a<br>b<br>c"),
        ("Page 3\n\n| a |", "Page 3\n\n| a |"),
    ],
)
def test_post_processing(text: str, expected: str) -> None:
    assert postprocess(text) == expected


def test_both_variants_are_scored(bench: Path, pred: Path) -> None:
    (pred / "c/one_pg1_repeat1.md").write_text("---\nfoot: Page 1\n---\nalpha beta", "utf-8")
    result, _ = score(bench, pred)
    raw, post = result.variants
    assert raw.categories["headers_footers"] == Rate(1, 2)
    assert post.categories["headers_footers"] == Rate(2, 2)


def test_published_rows_are_consistent() -> None:
    """A printed overall is the mean of the printed columns, where all are there."""
    for entry in OLMOCR_BENCH:
        assert entry.source
        assert entry.scores.keys() <= OLMOCR_COLUMNS.keys()
        if len(entry.scores) == len(OLMOCR_COLUMNS):
            assert sum(entry.scores.values()) / 8 == pytest.approx(entry.overall, abs=0.11), entry.system


def test_the_real_sample(shared_data: Path, tmp_path: Path) -> None:
    """69 real tests of 13 pages: 62 pass, as at the official scorer; every page gets a baseline test."""
    root = shared_data / "documents/olmocr_bench"
    expected = [json.loads(text) for text in (root / "expected_verdicts.jsonl").read_text("utf-8").splitlines()]
    result, _ = score(root, root / "pred_olmocr_pipeline")
    raw = {o.id: o.passed for o in result.variants[0].outcomes}
    assert [raw[e["id"]] for e in expected] == [e["passed"] for e in expected]
    assert result.variants[0].categories["tests"] == Rate(62, 69)
    assert result.variants[0].categories["baseline"] == Rate(12, 12)
