"""The archive's report and its charts: safe, bounded, honest."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from jocr.documents import Origin, transcribed
from jocr.records import STATUSES, DocRef, PageImage, PageRef, Transcript
from jocr.report import archive
from jocr.report.archive import amount, duration, report
from jocr.report.charts import area, bars


def row(text="text", **more):
    ref = PageRef(DocRef("s3://b/<i>.zip", "aa", 1, "pdf"), 0)
    image = PageImage(ref, b"", 100, 200, 1, 2, None, 0, "r", False, "ink")
    made = transcribed(image, Transcript("p", text, (1,), "end", 5, 1.0), Origin("m", "r", "p", "e"))
    return replace(made, **more)


def run(**more):
    forecast = {
        "done": 200,
        "total": 5000,
        "decoder_seconds": 900.0,
        "low": 800.0,
        "high": 1000.0,
        "wall_seconds": 900.0,
        "money": 2.0,
        "money_low": 1.5,
        "money_high": 2.5,
        "currency": "EUR",
        "basis": "how much 9 units differ",
    }
    cost = {
        "decoder_seconds": 950.0,
        "busy_seconds": 950.0,
        "counted": "busy",
        "money": 2.1,
        "currency": "EUR",
        "budget": None,
        "budget_spent": False,
        "gpus_per_decoder": 1.0,
        "forecast": forecast,
        "per_million_pages": {"decoder_seconds": 190_000.0, "money": 420.0},
    }
    speed = {
        "seconds": 9000.0,
        "pages_per_second": 0.5,
        "over_time": [[2250.0, 0.4], [6750.0, 0.6]],
        "pauses": [4000.0],
    }
    return {
        "counts": dict.fromkeys(STATUSES, 0) | {"ok": 5000},
        "reasons": {},
        "pending": 0,
        "manifest": {"pages": 5000},
        "collections": [
            {"name": "<b>x", "pages": 4000, "tokens": 8000, "ok": 4000},
            {"name": None, "of": 7, "pages": 1000, "tokens": 5},
        ],
        "speed": speed,
        "tokens_per_page": {"step": 64, "pages": [3, 0, 9]},
        "attempts": {"1": 4990, "2": 10},
        "documents": {"written": 12},
        "skipped": {"count": 3, "first": [{"name": "<u>", "reason": "not_a_document", "detail": "text"}]},
        "cost": cost,
        **more,
    }


def test_it_says_what_it_should_and_escapes_it():
    html = report(run(), [row(member="in/<x>.pdf", attempts=2, collection="<c>")], lambda row: b"J")
    for text in (
        "GPU-seconds per million pages",
        "190,000",
        "EUR per million pages",
        "1.50 to 2.50 EUR",
        "hours of work",
        "7 more",
        "2 attempts",
        "1 of 5,000 pages shown",
        "Skipped files (3, the first 1)",
        "2 h 30 min",
    ):
        assert text in html, text
    assert not re.search(r"<(b>x|u>|i>\.zip|x>|c>|script)", html)
    assert html.count('class="break"') == 1
    assert "decoder-seconds per" in report(run(cost=run()["cost"] | {"gpus_per_decoder": 0.0}), [], lambda row: None)


def test_without_price_forecast_or_work_it_still_opens():
    bare = run()
    bare["cost"] |= {"money": None, "forecast": None, "per_million_pages": {"decoder_seconds": None, "money": None}}
    bare["speed"] |= {"over_time": [], "seconds": 0.0, "pauses": []}
    bare |= {"tokens_per_page": {"step": 64, "pages": []}, "collections": [], "pending": 5000}
    html = report(bare, [], lambda row: None)
    assert "per million" not in html
    assert "<svg" not in html
    assert "5,000 of 5,000 pages have no row yet" in html


def test_the_file_stays_small_whatever_the_pages_hold(monkeypatch):
    monkeypatch.setattr(archive, "LIMIT", 400_000)
    html = report(run(), (row("# x\n\n" * 20_000) for _ in range(50)), lambda row: b"J" * 60_000)
    assert len(html) < 500_000
    shown = html.count('<section class="page')
    assert 0 < shown < 50
    assert f"{shown} of 5,000 pages shown" in html
    assert "characters more" in html


@pytest.mark.parametrize("top", [0.003, 0.9, 1.0, 7.0, 1234.0, 5e6])
def test_charts_stay_inside_their_frame(top):
    for svg in (
        area([(1.0, top), (3.0, 0.0), (5.0, top / 2)], title="<t>", x="x", y="y"),
        bars([(0, 64, top), (64, 128, 0)], title="t", x="x", y="y"),
    ):
        path = re.search(r' d="([^"]*)"', svg)
        numbers = [float(n) for n in re.findall(r"[\d.]+", path[1])] if path else [0.0]
        numbers += [float(n) for n in re.findall(r'(?:x|y|width|height|x1|y1)="([\d.]+)"', svg)]
        assert all(0 <= n <= 640 for n in numbers)
        assert "<t>" not in svg
        assert "nan" not in svg
    assert area([], title="", x="", y="") == bars([], title="", x="", y="") == ""


def test_words_for_numbers():
    assert [duration(s) for s in (3.21, 245, 11_220)] == ["3.2 s", "4 min 05 s", "3 h 07 min"]
    assert [amount(m) for m in (0.0, 0.0042, 1.5, 1234.5)] == ["0.00", "0.0042", "1.50", "1,234"]
