"""Every page one row, in order, whatever happens to it; a broken engine leaves nothing behind."""

from __future__ import annotations

import threading

import pytest

from jocr.decoding.fake import FakeDecoder
from jocr.errors import EngineError

from .fakes import FakeLibrary, rows_of, run


def test_every_kind_of_page_has_its_row(tmp_path):
    library = FakeLibrary(
        {
            "a.pdf": ["ink", "blank", "zero_area", "ink", "ink", "ink", "ink", "ink"],
            "b.pdf": "encrypted",
            "c.png": ["ink"],
        }
    )
    decoder = FakeDecoder(script={1: "length", 2: "loop", 3: "error", 4: "empty", 5: "timeout"})
    summary = run(library, tmp_path / "out", decoder=decoder)
    rows = rows_of(tmp_path / "out")
    assert [(r.uri, r.page, r.status, r.reason) for r in rows] == [
        ("a.pdf", 1, "ok", None),
        ("a.pdf", 2, "blank", "blank_page"),
        ("a.pdf", 3, "failed", "zero_area"),
        ("a.pdf", 4, "truncated", "length"),
        ("a.pdf", 5, "loop", "loop"),
        ("a.pdf", 6, "failed", "engine_error"),
        ("a.pdf", 7, "failed", "empty_output"),
        ("a.pdf", 8, "failed", "decode_timeout"),
        ("b.pdf", 1, "failed", "encrypted"),
        ("c.png", 1, "ok", None),
    ]
    assert summary.run["counts"] == {"ok": 2, "blank": 1, "truncated": 1, "loop": 1, "failed": 5}
    assert sum(summary.run["reasons"].values()) == 8
    assert rows[1].detail == "it is blank"
    assert rows[1].stop is None
    assert rows[8].width is None
    assert rows[0].revision == "fake-1"
    assert len(rows[0].prompt_hash) == 16
    assert rows[0].render_seconds == 0.25


def test_documents_and_pages_keep_their_order_however_the_decoder_answers(tmp_path):
    library = FakeLibrary({f"{i:02}.pdf": ["ink"] * (i % 4 + 1) for i in range(12)})
    run(library, tmp_path / "a", decoder=FakeDecoder(batch=7), render={"workers": 3})
    run(library, tmp_path / "b", decoder=FakeDecoder(batch=1))
    places = [(r.uri, r.page) for r in rows_of(tmp_path / "a")]
    assert places == sorted(places)
    assert len(places) == sum(i % 4 + 1 for i in range(12))
    assert [r.row() for r in rows_of(tmp_path / "a")] == [r.row() for r in rows_of(tmp_path / "b")]
    for name in ("00.pdf.md", "03.pdf.md"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_same_file_under_two_names_is_two_documents(tmp_path):
    library = FakeLibrary({"a.pdf": ["ink", "ink"], "b.pdf": ["ink", "ink"]})
    run(library, tmp_path / "out", decoder=FakeDecoder(batch=4))
    rows = rows_of(tmp_path / "out")
    assert [(r.uri, r.page) for r in rows] == [("a.pdf", 1), ("a.pdf", 2), ("b.pdf", 1), ("b.pdf", 2)]
    assert rows[0].page_id == rows[2].page_id
    assert rows[0].markdown == rows[2].markdown != rows[1].markdown


def test_page_selection_applies_to_every_document(tmp_path):
    library = FakeLibrary({"a.pdf": ["ink"] * 4, "b.pdf": ["ink"]})
    summary = run(library, tmp_path / "out", pages="2-3")
    assert [(r.uri, r.page) for r in rows_of(tmp_path / "out")] == [("a.pdf", 2), ("a.pdf", 3)]
    assert not (tmp_path / "out" / "b.pdf.md").exists()
    assert summary.run["documents"][1]["pages"] == {}
    assert summary.run["documents"][0]["pages_in_document"] == 4
    assert library.renders["a.pdf", 0] == 0


def test_a_failure_that_may_pass_is_tried_once_more(tmp_path):
    library = FakeLibrary({"a.pdf": ["flaky", "render_crash"]})
    run(library, tmp_path / "out")
    first, second = rows_of(tmp_path / "out")
    assert (first.status, first.attempts) == ("ok", 2)
    assert (second.reason, second.attempts) == ("render_crash", 1)


def test_rendering_runs_ahead_by_a_bounded_number_of_pages(tmp_path):
    rendered, decoded, ahead = [0], [0], [0]

    def count(ref):
        rendered[0] += 1
        ahead[0] = max(ahead[0], rendered[0] - decoded[0])

    class Slow(FakeDecoder):
        def _one(self, page):
            decoded[0] += 1
            threading.Event().wait(0.002)
            return super()._one(page)

    run(FakeLibrary({"a.pdf": ["ink"] * 120}, count), tmp_path / "out", decoder=Slow(), render={"workers": 2})
    assert rendered[0] == decoded[0] == 120
    assert ahead[0] <= 2 * 4 + 2 + 2  # queue, one page in each renderer's hands, one between queue and decoder


@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_pages_are_rendered_at_once_than_there_are_workers(tmp_path, workers):
    busy, most = [0], [0]
    lock, together = threading.Lock(), threading.Barrier(workers)

    def render(ref):
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        together.wait(30)  # every worker is used
        with lock:
            busy[0] -= 1

    run(FakeLibrary({"a.pdf": ["ink"] * 12}, render), tmp_path / "out", render={"workers": workers})
    assert most[0] == workers


def test_a_page_that_is_slow_to_render_holds_up_no_page_being_decoded(tmp_path):
    """The decoder gives nothing back before it holds eight pages or is told that there are no more; the sixth page is
    not rendered before the first has its row."""
    first_row = threading.Event()

    def render(ref):
        if ref.index == 5:
            assert first_row.wait(30)

    class Watch:
        def opened(self, document):
            pass

        def page(self, number, row):
            first_row.set()

    library = FakeLibrary({"a.pdf": ["ink"] * 9}, render)
    run(library, tmp_path / "out", decoder=FakeDecoder(batch=8), sinks=(Watch(),))
    assert [r.status for r in rows_of(tmp_path / "out")] == ["ok"] * 9


class Forgetful(FakeDecoder):
    def decode(self, pages):
        yield from list(super().decode(pages))[1:]


class Repeating(FakeDecoder):
    def decode(self, pages):
        for transcript in super().decode(pages):
            yield transcript
            yield transcript


@pytest.mark.parametrize(
    ("decoder", "words"),
    [
        (Forgetful(), "no answer for 1"),
        (Repeating(), "twice"),
        (FakeDecoder(script={2: "die"}), "died.*; 2 pages were read, and nothing was written"),
    ],
)
def test_a_broken_engine_stops_the_run_and_leaves_nothing(tmp_path, decoder, words):
    library = FakeLibrary({"a.pdf": ["ink"] * 40})
    before = threading.active_count()
    with pytest.raises(EngineError, match=words):
        run(library, tmp_path / "out", decoder=decoder, render={"workers": 2})
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() == before


def test_a_fault_in_a_render_thread_is_raised_not_swallowed(tmp_path):
    def fault(ref):
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        run(FakeLibrary({"a.pdf": ["ink"] * 9}, fault), tmp_path / "out", render={"workers": 3})
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing(tmp_path):
    class Interrupt:
        def opened(self, document):
            pass

        def page(self, number, row):
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run(FakeLibrary({"a.pdf": ["ink"] * 50}), tmp_path / "out", sinks=(Interrupt(),))
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() == before
