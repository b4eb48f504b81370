"""Each kind's rules where the recorded vectors leave them open; expectations were observed at the official scorer."""

from __future__ import annotations

import random
from typing import Any

import pytest
from rapidfuzz import fuzz

from jocr.checks import parse_check, run_checks
from jocr.checks.normalise import normalise
from jocr.checks.text_checks import found, starts
from jocr.errors import UnscoredError

ID = {"pdf": "a.pdf", "page": 1, "id": "x"}


def row(*cells: str) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


PIPES = "|a|b|\n|-|-|\n|c|d|\n|e|f|"


def passes(md: str, **record: Any) -> bool:
    return run_checks([parse_check({**ID, **record})], md)[0].passed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**a\nb** c", "a b c"),
        ("***x***", "x"),
        ("__init__", "init"),
        ("__a_b__", "a_b"),
        ("a * b * c", "a  b  c"),
        ("<b>a</b> <B>b</B> <b class='x'>c</b>", "a <B>b</B> <b class='x'>c"),
        ("x<br>y<br/>z<br />w", "x y z<br />w"),
        ("a‐b‑c‒d–e—f―g−h", "a‐b-c-d-e-f―g-h"),
        ("“a” „b‟ ‘c’ ‚d‛", "\"a\" \"b‟ 'c' 'd‛"),
        ("e\u0301 \u00b5 ＿", "\u00e9 \u03bc _"),
    ],
)
def test_normalised_form(text: str, expected: str) -> None:
    assert normalise(text) == expected


def test_found_is_partial_ratio() -> None:
    """The short cuts give what the plain fuzzy search gives."""
    rng = random.Random(0)
    for _ in range(3000):
        text = "".join(rng.choice("abc ") for _ in range(rng.randint(0, 30)))
        needle = "".join(rng.choice("abc ") for _ in range(rng.randint(1, 12)))
        threshold = 1 - rng.randint(0, 4) / len(needle)
        assert found(needle, text, threshold) == (fuzz.partial_ratio(needle, text) / 100 >= threshold)


def test_starts_is_fuzzysearch() -> None:
    """The short cuts find the same first and last place as the plain fuzzy search with all plain occurrences."""
    from fuzzysearch import find_near_matches

    rng = random.Random(1)
    for _ in range(300):
        alphabet = rng.choice(["ab", "abcdefgh"])
        text = "".join(rng.choice(alphabet) for _ in range(rng.randint(0, 60)))
        at = rng.randint(0, len(text))
        needle = (text[at : at + rng.randint(2, 14)] or "ab") + rng.choice(["", "a", "h"])
        edits = rng.randint(0, len(needle) // 2)
        ours = starts(needle, text, edits)
        plain = {match.start for match in find_near_matches(needle, text, max_l_dist=edits)}
        assert bool(ours) == bool(plain)
        if needle in text:
            plain |= {text.find(needle), text.rfind(needle)}
        if plain:
            assert (min(ours), max(ours)) == (min(plain), max(plain)), (needle, text, edits)


@pytest.mark.parametrize(
    ("record", "md", "expected"),
    [
        ({"type": "absent", "text": "q"}, "", True),
        ({"type": "present", "text": "q", "max_diffs": 1}, "", True),
        ({"type": "present", "text": "q", "first_n": 0}, "q", True),
        ({"type": "present", "text": "tail", "last_n": 4}, "aaa tail  ", False),
        ({"type": "present", "text": "ab", "first_n": 1, "last_n": 1}, "axxb", True),
        ({"type": "order", "before": "aa", "after": "aa"}, "aaa", True),
        ({"type": "order", "before": "ab", "after": "ab"}, "ab", False),
    ],
)
def test_text(record: dict[str, Any], md: str, expected: bool) -> None:
    assert passes(md, **record) is expected


@pytest.mark.parametrize(
    ("relation", "md", "expected"),
    [
        ({"cell": "c", "up": "a"}, PIPES, True),
        ({"cell": "c", "up": "a"}, "|a|b|\n| | |\n|c|d|", True),
        ({"cell": "c", "up": "a"}, "|a|b|\n|=|=|\n|c|d|", False),
        ({"cell": "f", "up": "d"}, "|a|b|\n|-|-|\n|c|d|\n|-|-|\n|e|f|", True),
        ({"cell": "d", "top_heading": "a"}, PIPES, False),
        ({"cell": "f", "top_heading": "b"}, PIPES, True),
        ({"cell": "f", "left_heading": "e"}, PIPES, True),
        ({"cell": "c", "left": "a"}, "||a|c|\n|-|-|\n|c|d|", True),
        ({"cell": "1 2"}, "<table><tr><td>1<br>2</td></tr></table>", True),
        ({"cell": "12"}, "<table><tr><td>1<sup>2</sup></td></tr></table>", True),
        ({"cell": "h", "top_heading": "h"}, "<table><tr><td>h<tr><td>x</table>", False),
        ({"cell": "h", "top_heading": "h"}, f"<table>{row('h')}{row('x')}</table>", False),
        ({"cell": "x", "top_heading": "h"}, f"<table>{row('h')}{row('x')}</table>", True),
        ({"cell": "x", "top_heading": "h"}, f"<table>{row('h')}<tr><th>m</th></tr>{row('x')}</table>", False),
        ({"cell": "b", "left": "a"}, f"<table>{row('a', '', 'b')}</table>", False),
        ({"cell": "z", "up": "y"}, f"<table><tr><td colspan=2>w</td><td>y</td></tr>{row('q', 'q', 'z')}</table>", True),
        ({"cell": "a", "max_diffs": 1}, "<table><tr><td>b</td></tr></table>", False),
        ({"cell": "x"}, "<table><tr><td>x<td>y</table>", False),
        ({"cell": "xy"}, "<table><tr><td>x<td>y</table>", True),
    ],
)
def test_table(relation: dict[str, Any], md: str, expected: bool) -> None:
    assert passes(md, type="table", **relation) is expected


def test_a_border_cell_has_no_neighbour() -> None:
    verdict = run_checks([parse_check({**ID, "type": "table", "cell": "a", "up": "z"})], PIPES)[0]
    assert not verdict.passed
    assert "not there" in verdict.detail


@pytest.mark.parametrize(
    ("md", "expected"),
    [
        ("a" * 30, True),
        ("a" * 31, False),
        ("b " + "a\n" * 32, False),
        ("x " + "abcde" * 31, False),
        ("x " + "abcde" * 31 + "q", True),
        ("...", False),
        ("", False),
        ("text あ", False),
        ("text 😀", False),
        ("text 🇫🇷", False),
        ("عربي Кириллица 한글", True),
    ],
)
def test_baseline(md: str, expected: bool) -> None:
    assert passes(md, type="baseline") is expected


@pytest.mark.parametrize(
    ("record", "md", "expected"),
    [
        ({"type": "format", "text": "Two", "format": "heading"}, "# One\n\n### Two\n\nthree", True),
        ({"type": "format", "text": "three", "format": "heading"}, "# One\n\n### Two\n\nthree", False),
        ({"type": "format", "text": "it", "format": "italic"}, "an *it* here", True),
        ({"type": "format", "text": "it", "format": "italic"}, "an **it** here", False),
        ({"type": "format", "text": "it", "format": "bold"}, "an __it__ here", True),
        ({"type": "format", "text": "IT", "format": "bold", "case_sensitive": False}, "an <b>it</b> here", True),
        ({"type": "footnote", "marker": "12"}, "word¹² more", True),
        ({"type": "footnote", "marker": "*"}, "word<sup>*</sup> more", True),
        ({"type": "footnote", "marker": "1", "appears_before_marker": "the word"}, "see The, word<sup>1</sup>", True),
        ({"type": "footnote", "marker": "1", "appears_after_marker": "more"}, "word[^1] more", True),
        ({"type": "footnote", "marker": "1", "appears_after_marker": "word"}, "word[^1] more", False),
    ],
)
def test_spans(record: dict[str, Any], md: str, expected: bool) -> None:
    assert passes(md, **record) is expected


def test_a_search_too_long_is_unscored() -> None:
    check = parse_check({**ID, "type": "order", "before": "a" * 60, "after": "b" + "a" * 60, "max_diffs": 3})
    with pytest.raises(UnscoredError):
        run_checks([check], "a" * 50_000)
