"""From transcripts to rows, and how a document shows the pages it lacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jocr.documents import Origin, assemble, compose, failed, join, judge, transcribed
from jocr.records import REASONS, DocRef, PageFailure, PageImage, PageRef, ParsedPage, Transcript

ORIGIN = Origin("m", "r", "p", "e")
DOC = DocRef("/a.pdf", "ab" * 32, 9, "pdf")


def page(index, text="text", stop="end", **more):
    image = PageImage(PageRef(DOC, index), b"", 10, 20, 1, 2, 72.0, 90, "r 1", False, "ink", 0.5, ("n1", "n2"))
    return transcribed(image, Transcript(f"p{index}", text, (1, 2, 3), stop, 7, 1.5, **more), ORIGIN)


@pytest.mark.parametrize(
    ("text", "stop", "detail", "expected"),
    [
        ("x", "end", "", ("ok", None)),
        (" \n", "end", "", ("failed", "empty_output")),
        ("x", "length", "", ("truncated", "length")),
        ("x", "loop", "period 3", ("loop", "loop")),
        ("", "error", "boom", ("failed", "engine_error")),
        ("", "error", "decode_timeout: 600 s", ("failed", "decode_timeout")),
    ],
)
def test_judge(text, stop, detail, expected):
    status, reason = judge(Transcript("p", text, (), stop, 1, 1.0, detail=detail))
    assert (status, reason) == expected
    assert reason is None or reason in REASONS


def test_row_of_a_transcribed_page():
    row = page(2, rounds=2, drafted=(4, 4), accepted=(3, 1))
    assert (row.page_id, row.page, row.tokens, row.prompt_tokens) == (f"{DOC.sha256}:2", 3, 3, 7)
    assert (row.seconds, row.render_seconds, row.decode_seconds) == (2.0, 0.5, 1.5)
    assert (row.tau, row.acceptance) == (3.0, 0.5)
    assert (row.rotation, row.dpi, row.notes, row.blank_evidence) == (90, 72.0, "n1; n2", "ink")
    assert ParsedPage.from_row(row.row()) == row


def test_rows_of_documents_that_do_not_open_have_an_identity_each():
    rows = [failed(PageFailure(uri, None, None, "open", "encrypted"), ORIGIN) for uri in ("/x", "/y")]
    assert rows[0].page_id != rows[1].page_id
    assert rows[0].page == 1
    known = failed(PageFailure("/x", "cd" * 32, 4, "render", "render_timeout"), ORIGIN)
    assert (known.page_id, known.page) == ("cd" * 32 + ":4", 5)


def test_pages_are_sorted_by_number_never_by_arrival():
    parsed = assemble(DOC, [page(2, "three"), page(0, "one"), page(1, "two")])
    assert [p.page for p in parsed.pages] == [1, 2, 3]
    assert parsed.markdown == "<!-- page 1 -->\n\none\n\n<!-- page 2 -->\n\ntwo\n\n<!-- page 3 -->\n\nthree\n"


def test_two_rows_for_one_page_are_a_fault():
    with pytest.raises(ValueError, match="more than one row"):
        assemble(DOC, [page(0), page(0)])


def test_a_lone_good_page_needs_no_marker():
    assert join([page(0, "text\n")]) == "text\n"


def test_pages_that_are_not_ok_show_why():
    lost = replace(page(1, ""), status="failed", reason="zero_area")
    white = replace(page(2, ""), status="blank", reason="blank_page")
    text = join([page(0, "good", "loop"), lost, white])
    assert "<!-- page 1: loop: the model repeated itself; the good part before the loop is kept -->\n\ngood" in text
    assert "*[Page 2 could not be read: the page has no area.]*" in text
    assert text.endswith("<!-- page 3: blank: the image shows nothing to read -->\n")


def test_spans_point_at_each_pages_own_text():
    broken = failed(PageFailure(DOC.uri, DOC.sha256, 2, "render", "render_crash"), ORIGIN)
    listed, cut, smile = page(0, "één\n\n- a"), page(1, "cut", "length"), page(3, "😀")
    pages = [(listed, "één\n\n- a"), (cut, "cut"), (broken, ""), (smile, "less")]
    markdown, spans = compose(pages)
    assert [markdown[a:b] for a, b in spans] == ["één\n\n- a", "cut", "", "less"]
    assert spans == sorted(spans)
    assert markdown[: spans[2][0]].endswith("died on this page.]*")
    assert compose([(page(0, "only"), "only")]) == ("only\n", [(0, 4)])
    assert compose([])[1] == []
    assert join([p for p, _ in pages]).startswith("<!-- page 1 -->\n\néén")
