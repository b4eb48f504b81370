"""Output names and page selection, settled before any compute."""

from __future__ import annotations

import pytest

from jocr.errors import ConfigError
from jocr.parsing.names import LONGEST, output_names, safe_path
from jocr.parsing.plan import PageSelection, Plan, make_plan


def test_names_are_the_source_name_plus_md():
    names = ["a.pdf", "sub/a.pdf", "a.png", "Vol 1 (2) #3 %41.pdf", "বই.pdf", "e\u0301.pdf", "é.pdf"]
    assert output_names([(n, n) for n in names]) == [n + ".md" for n in names]


def test_clashing_names_take_as_much_of_their_place_as_it_needs():
    found = [("/x/one/a.pdf", "a.pdf"), ("/x/two/a.pdf", "a.pdf"), ("/x/b.pdf", "b.pdf")]
    assert output_names(found) == ["one/a.pdf.md", "two/a.pdf.md", "b.pdf.md"]


def test_names_that_cannot_be_told_apart_are_refused():
    with pytest.raises(ConfigError, match="both be written"):
        output_names([("z.zip/a", "a"), ("z.zip//a", "a")])
    with pytest.raises(ConfigError, match="a folder of that name"):
        output_names([("a", "a"), ("a.md/b", "a.md/b")])
    with pytest.raises(ConfigError, match="a folder of that name"):
        output_names([("in/pages.parquet/b", "pages.parquet/b")])
    assert output_names([("in/x/run.json/b", "x/run.json/b")]) == ["x/run.json/b.md"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/../../b", "./x", "..", "", "/", "a\0b"])
def test_no_name_leaves_the_result(name, tmp_path):
    path = safe_path(name)
    assert (tmp_path / path).resolve().is_relative_to(tmp_path.resolve())
    assert not path.startswith("/")
    assert path
    assert "\0" not in path


def test_long_names_are_cut_and_stay_different():
    long = ["ü" * 126 + ".pdf", "ü" * 126 + ".png", "a/" + "x" * 255]
    cut = output_names([(n, n) for n in long])
    assert len(set(cut)) == 3
    assert all(len(part.encode()) <= LONGEST for name in cut for part in name.split("/"))


@pytest.mark.parametrize(
    ("text", "pages", "expected"),
    [
        (None, 3, [1, 2, 3]),
        ("", 2, [1, 2]),
        ("2", 3, [2]),
        ("1-2", 3, [1, 2]),
        ("3-,1", 4, [1, 3, 4]),
        ("1-3, 2-4", 5, [1, 2, 3, 4]),
        ("7-9", 3, []),
    ],
)
def test_page_selection(text, pages, expected):
    assert [i + 1 for i in PageSelection.parse(text).indices(pages)] == expected


@pytest.mark.parametrize("text", ["0", "-3", "3-1", "a", "1,,2", "1-2-3", "1.5", "0-3"])
def test_bad_page_selection(text):
    with pytest.raises(ConfigError, match="counted from 1"):
        PageSelection.parse(text)


def test_nothing_found_is_bad_usage():
    with pytest.raises(ConfigError, match="name at least one"):
        make_plan([], lambda sources: [])
    with pytest.raises(ConfigError, match="nothing found"):
        make_plan(["x"], lambda sources: [])


def test_an_earlier_result_among_the_sources_is_left_out(tmp_path):
    for name in ("a.pdf", "out/a.pdf.md", "out/run.json", "out/b.pdf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"%PDF-1.4")
    plan = make_plan([str(tmp_path)], own={str(tmp_path / "out" / name) for name in ("a.pdf.md", "run.json")})
    assert [d.name for d in plan.documents] == ["a.pdf", "out/b.pdf"]
    assert plan.skipped == ()


def test_a_uri_named_twice_is_parsed_once():
    from jocr.pages.sources import SourceFile

    plan = make_plan(["x"], lambda sources: [SourceFile("a", "a"), SourceFile("a", "a")])
    assert isinstance(plan, Plan)
    assert [d.uri for d in plan.documents] == ["a"]
