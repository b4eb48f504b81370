"""Whatever stands on a page, a check answers or says that it cannot: nothing else is ever raised."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.checks import Verdict, parse_check, run_checks
from jocr.errors import UnscoredError

ID = {"pdf": "a.pdf", "page": 1}
CHECKS = [
    parse_check({**ID, "id": str(i), **record})
    for i, record in enumerate(
        [
            {"type": "present", "text": "some words", "max_diffs": 2},
            {"type": "absent", "text": "Page 1", "first_n": 30, "case_sensitive": False},
            {"type": "order", "before": "first part", "after": "second part", "max_diffs": 2},
            {"type": "table", "cell": "a", "up": "b", "top_heading": "b", "left_heading": "a", "max_diffs": 1},
            {"type": "math", "math": r"\frac{a}{b}"},
            {"type": "baseline"},
            {"type": "baseline", "max_length": 10, "max_length_skips_image_alt_tags": True},
            {"type": "format", "text": "a", "format": "heading"},
            {"type": "format", "text": "a", "format": "bold"},
            {"type": "format", "text": "a", "format": "italic"},
            {"type": "footnote", "marker": "1", "appears_before_marker": "a b", "appears_after_marker": "c"},
        ]
    )
]
PIECES = st.sampled_from(
    "| |- --- ** * __ _ $ $$ \\( \\) \\[ \\] # ## <table> </table> <tr> </tr> <td> </td> <th> <thead> </thead> "
    "<td rowspan=0> <td colspan=99999999> <td rowspan=-1 colspan=x> <b> </b> <strong> <em> <h1> </h1> <sup>1</sup> "
    "[^1] [^1]: ¹ <!-- --> <! <![CDATA[ <? &amp; &#x110000; &#0; &lt <br> <br /> ![a](b) \\frac{a}{b} \\frac{ \\sqrt { "
    "} ^ & \\\\ \\begin{array} \\end{array} \ud800 \u200b \u202e a b 中 😀".split(" ")
)
PAGES = st.one_of(st.text(), st.lists(st.one_of(PIECES, st.just("\n"), st.just(" ")), max_size=60).map("".join))


@settings(max_examples=150, deadline=None)
@given(PAGES, st.booleans())
def test_any_page_gets_a_verdict(markdown: str, strict: bool) -> None:
    for check in CHECKS:
        try:
            verdicts = run_checks([check], markdown, strict=strict)
        except UnscoredError:
            continue
        assert all(isinstance(verdict, Verdict) for verdict in verdicts)


def test_an_empty_page() -> None:
    verdicts = dict(zip((c.id for c in CHECKS), run_checks(CHECKS, ""), strict=True))
    passed = {CHECKS[int(name)].kind + name for name, verdict in verdicts.items() if verdict.passed}
    assert passed == {"absent1", "baseline6"}


HUGE = {
    "text": "lorem ipsum dolor sit amet " * 40_000,
    "pipes": "|a|b|c|\n" * 30_000,
    "rows": "<table>" + "<tr><td>a</td><td>b</td></tr>" * 15_000 + "</table>",
    "deep tables": "<table><tr><td>" * 3_000 + "a",
    "open cells": "<table><tr>" + "<td>a" * 30_000,
    "wide spans": "<table>" + "<tr><td rowspan=10000 colspan=1000>a</td></tr>" * 500 + "</table>",
    "open comments": "<table>" + "<!--" * 20_000,
    "open tags": "<table>" + "<a " * 20_000,
    "dollars": "$ " * 100_000,
    "open math": "\\(" * 200_000,
    "stars": "*" * 300_000,
    "open stars": "**a " * 100_000 + "*",
    "underscores": "_a" * 200_000,
    "hashes": "# " + " " * 200_000 + "#" * 100_000,
    "images": "![" * 200_000,
    "tags": "<h1><b><i>" * 50_000,
    "one letter": "a" * 500_000,
}


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_page_ends(name: str) -> None:
    """In processor time, since other programs may share the machine: far from quadratic."""
    started = time.process_time()
    for check in CHECKS:
        try:
            run_checks([check], HUGE[name])
        except UnscoredError:
            continue
    assert time.process_time() - started < 30
