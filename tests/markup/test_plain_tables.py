"""Plain tables are read by one regular expression; the general parsers must say the same of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.checks.html_tables import html_tables
from jocr.markup.plain_tables import plain_table, split_plain
from jocr.markup.table_trees import parse_table_tree
from jocr.markup.tables import find_tables, parse_html_table

TEXT = st.text(
    alphabet=st.one_of(st.sampled_from(" ab12.|$\u00a0\u3000漢é\u0301\u200b\ufeff"), st.characters()), max_size=8
)
CELL = st.tuples(
    st.sampled_from(["td", "th"]), st.sampled_from(["", "", ' colspan="2"', ' rowspan="3" colspan="2"']), TEXT
)
GAP = st.sampled_from(["", "", "\n", "\n  "])


@st.composite
def tables(draw: st.DrawFn) -> str:
    """Tables that are plain unless a text holds what plain texts may not."""
    out = "<table>" + draw(GAP)
    for row in draw(st.lists(st.lists(CELL, max_size=4), max_size=4)):
        out += "<tr>" + "".join(f"<{t}{s}>{text}</{t}>{draw(GAP)}" for t, s, text in row) + "</tr>" + draw(GAP)
    return out + "</table>"


def other_way(source: str) -> str:
    """The same table in a form that only the general parsers read."""
    return source.replace("<table>", "<table >")


@given(tables())
@settings(max_examples=150, deadline=None)
def test_all_readers_agree(source: str) -> None:
    general = other_way(source)
    assert plain_table(general) is None
    assert parse_html_table(source) == parse_html_table(general)
    if "\n" not in source:  # blank space between tags is text to neither
        a, b = parse_table_tree(source), parse_table_tree(general)
        assert a is not None
        assert b is not None
        assert (a.labels, a.contents, a.tags, a.elements) == (b.labels, b.contents, b.tags, b.elements)
        assert (a.leftmost == b.leftmost).all()
        assert (a.text == b.text).all()
    page = f"Before a < b.\n\n{source}\n\nbetween\n\n{source}\n"
    assert html_tables(page.replace("<", "&lt;", 1)) == html_tables(other_way(page.replace("<", "&lt;", 1)))
    assert [(t.start, t.end) for t in find_tables(page)] == [
        (t.start - k, t.end - k - 1) for k, t in enumerate(find_tables(other_way(page)))
    ]


@pytest.mark.parametrize(
    "source",
    [
        "<table><tr><td>a</td></tr>",
        "<table><tr><td>a<td>b</tr></table>",
        "<table><tr><td>a &amp; b</td></tr></table>",
        "<table><tr><td>a</th></tr></table>",
        '<table><tr><td rowspan="0">a</td></tr></table>',
        "<table><thead><tr><td>a</td></tr></thead></table>",
        "<table><tr><td><b>a</b></td></tr></table>",
        "<table><tr><td>a</td></tr></table> ",
    ],
)
def test_anything_else_is_left_to_the_parsers(source: str) -> None:
    assert plain_table(source) is None


def test_split_leaves_the_rest_of_the_page() -> None:
    table = "<table><tr><td>a</td></tr></table>"
    assert split_plain(f"x{table}<b>y</b>{table}") == ([table, table], "x<><b>y</b><>")


def test_many_open_tags_take_no_time() -> None:
    assert plain_table("<table>" + "<tr><td>" * 20_000) is None
    assert split_plain("<table><tr>" * 20_000)[0] == []
