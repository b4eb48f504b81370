"""Running lines: measured on labelled documents, and never body where a rule says so."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.markup.running_lines import Edges, find_running_lines
from jocr.markup.running_rules import bare_number, roman

from .running_cases import CASES, HELD_OUT, HOSTILE, Case, prose
from .two_page_cases import TWO_PAGES, pairs


def taken(case: Case) -> list[set[int]]:
    """Numbers of the non-blank lines that were found to be running, per page."""
    found = []
    for text, edges in zip(case.pages, find_running_lines(case.pages), strict=True):
        at, numbers = 0, set()
        for number, line in enumerate(text.split("\n")):
            if line.strip() and (at < edges.header_end or at >= edges.footer_start):
                numbers.add(number)
            at += len(line) + 1
        found.append(numbers)
    return found


def score(cases: list[Case]) -> tuple[int, int, int]:
    """Right, wrong and missed lines."""
    right = wrong = missed = 0
    for case in cases:
        for found, true in zip(taken(case), case.running, strict=True):
            right, wrong, missed = right + len(found & true), wrong + len(found - true), missed + len(true - found)
    return right, wrong, missed


def test_precision_and_recall_on_labelled_documents():
    assert len(CASES) >= 60
    assert len(HOSTILE) >= len(CASES) / 2
    right, wrong, missed = score(CASES)
    assert right / (right + wrong) >= 0.99, [c.name for c in CASES if score([c])[1]]
    assert right / (right + missed) >= 0.9, [c.name for c in CASES if score([c])[2]]


def test_held_out_documents():
    right, wrong, missed = score(HELD_OUT)
    assert right / (right + wrong) >= 0.9
    assert right / (right + missed) >= 0.75


def test_documents_of_two_pages():
    right, wrong, missed = score(TWO_PAGES)
    assert right / (right + wrong) >= 0.98, [c.name for c in TWO_PAGES if score([c])[1]]
    assert right / (right + missed) >= 0.8


def test_two_neighbouring_pages_of_longer_documents():
    """Less comes back on two pages, and a header is alone evidence of nothing."""
    for cases in (pairs(CASES), pairs(HELD_OUT)):
        right, wrong, missed = score(cases)
        assert right / (right + wrong) >= 0.99, [c.name for c in cases if score([c])[1]]
        assert right / (right + missed) >= 0.4


def test_a_heading_is_never_a_running_line():
    pages = [f"# THE HISTORY\n\n{prose(i)}\n\n## Notes" for i in range(8)]
    assert all(not edges.cuts(text) for text, edges in zip(pages, find_running_lines(pages), strict=True))


def test_pages_without_text_keep_their_place():
    pages = [f"{prose(i)}\n\n{i + 4}" for i in range(6)]
    pages[3] = ""
    found = find_running_lines(pages)
    assert [edges.cuts(text) for text, edges in zip(pages, found, strict=True)] == [True] * 3 + [False] + [True] * 2
    assert found[3] == Edges(0, 0)


def test_nothing_is_left_empty():
    pages = ["12", "13", "14", "15"]
    assert [edges.body(text) for text, edges in zip(pages, find_running_lines(pages), strict=True)] == pages


def test_body_without_its_edges():
    pages = [f"{i + 7} WAR AND PEACE\n\n{prose(i)}\n\nTolstoy Archive Moscow Edition" for i in range(5)]
    bodies = [edges.body(text) for text, edges in zip(pages, find_running_lines(pages), strict=True)]
    assert bodies == [prose(i) for i in range(5)]


LINES = st.sampled_from(
    ["THE SEA", "12", "xiv", "# THE SEA", "- a", "| a | b |", "Nevermore!", "Page 3", "", "text here", "7."]
)
PAGES = st.lists(st.one_of(st.text(max_size=60), st.lists(LINES, max_size=7).map("\n".join)), max_size=9)


@settings(max_examples=60, deadline=None)
@given(PAGES)
def test_edges_are_whole_lines_within_the_page(pages):
    found = find_running_lines(pages)
    assert len(found) == len(pages)
    for text, edges in zip(pages, found, strict=True):
        assert 0 <= edges.header_end <= edges.footer_start <= len(text)
        assert edges.header_end == 0 or text[: edges.header_end].endswith("\n")
        assert edges.footer_start == len(text) or text[: edges.footer_start].endswith("\n")
        assert bool(edges.body(text).strip()) == bool(text.strip())
        cut = [*text[: edges.header_end].split("\n"), *text[edges.footer_start :].split("\n")]
        assert not any(line.startswith(("#", "- a", "|")) for line in cut)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=80), max_size=2))
def test_short_documents_are_left_alone(pages):
    assert find_running_lines(pages) == [Edges(0, len(text)) for text in pages]


@settings(max_examples=50, deadline=None)
@given(st.integers(3, 12), st.integers(1, 900), st.randoms(use_true_random=False))
def test_page_numbers_are_found_wherever_they_begin(n, first, rng):
    pages = [f"{prose(rng.randrange(10**6))}\n\n{first + i}" for i in range(n)]
    assert [edges.body(text) for text, edges in zip(pages, find_running_lines(pages), strict=True)] == [
        text.rpartition("\n\n")[0] for text in pages
    ]


def test_numbers():
    values = {"- 12 -": 12, "Page 3 of 9": 3, "xiv": 14, "[7]": 7, "(8)": 8, "第5页": 5, "p. 44": 44, "12/50": 12}
    assert {text: bare_number(text) for text in values} == values
    for text in ("XIV", "12.", "$12", "§ 12", "12 a", "civil", "", "12345", "mix"):
        assert bare_number(text) is None, text
    assert [roman(text) for text in ("iv", "XC", "iiii", "mix", "vx", "ccc")] == [4, 90, None, None, None, 300]
