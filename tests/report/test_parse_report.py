"""The report file: self-contained, honest about what it leaves out, and with a fair choice of pages."""

from __future__ import annotations

from collections import Counter

import pytest

from jocr.documents import Origin, blank, failed, transcribed
from jocr.records import DocRef, PageFailure, PageImage, PageRef, Transcript
from jocr.report.parse import choose, report

ORIGIN = Origin("fake", "r1", "p1", "e1")


def image(name="<b>.pdf", is_blank=False):
    ref = PageRef(DocRef(f"/scans/{name}", "aa", 1, "pdf"), 0)
    return PageImage(ref, b"", 100, 200, 1, 2, None, 0, "fake", is_blank, "white")


def pages():
    text = "# Title\n\n$$x^2$$\n\n<script>alert(1)</script>"
    yield transcribed(image(), Transcript("p", text, (1, 2), "end", 5, 1.0, 2, (4, 4), (2, 1)), ORIGIN)
    yield blank(image("blank.pdf", True), ORIGIN)
    yield failed(PageFailure("/scans/<i>x.pdf", None, None, "open", "encrypted", "needs <one>"), ORIGIN)


def run_info(**counts):
    return {
        "counts": {"ok": 1, "blank": 1, "truncated": 0, "loop": 0, "failed": 1, **counts},
        "reasons": {"blank_page": 1, "encrypted": 1},
        "speed": {"seconds": 2.0, "pages_per_second": 1.5, "tokens_per_second": 20.0, "tau": 2.5},
        "documents": [{"name": "<b>.pdf", "pages": {"ok": 1}}, {"name": "n.pdf", "pages": {}}],
        "skipped": [{"uri": "/x/<u>.txt", "reason": "not_a_document", "detail": "text"}],
        "hardware": {"cpu": "X", "cores": 2},
        "model": "fake",
    }


def test_report_is_complete_and_safe():
    html = report(run_info(), pages(), lambda row: b"JPEG" if row.width else None)
    assert "<script" not in html
    assert "<b>.pdf" not in html
    assert "<i>x.pdf" not in html
    assert "<u>.txt" not in html
    assert "&lt;i&gt;x.pdf" in html
    assert html.count('src="data:image/jpeg;base64,SlBFRw=="') == 2
    assert "http:" not in html.replace('http-equiv="', "")
    assert "Content-Security-Policy" in html
    assert "<math" in html
    assert "the document needs a password (needs &lt;one&gt;)" in html
    assert "tokens per verify round" in html
    assert "3 of 3 pages shown" in html
    assert "no page selected" in html
    assert 'class="show-truncated"' not in html


def test_report_says_how_much_it_shows():
    assert "3 of 500 pages shown" in report(run_info(ok=498), pages(), lambda row: None)


@pytest.mark.parametrize("limit", [1, 2, 5, 10, 99, 1000])
def test_choice_is_fair_and_within_its_limit(limit):
    statuses = ["ok"] * 300 + ["failed"] * 4 + ["blank"] * 60 + ["ok"] * 100
    chosen = choose(statuses, limit)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(limit, len(statuses))
    counts = Counter(statuses[i] for i in chosen)
    if limit >= 10:
        assert counts["failed"] >= 3
        assert counts["blank"] >= 3
        assert counts["ok"] >= 3


def test_choice_of_few_takes_all():
    assert choose(["ok", "failed"], 10) == [0, 1]
    assert choose([], 10) == []
    assert choose(["ok"] * 5, 0) == []
