import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.markup.text import edit_similarity, normalize_text


def test_normal_form() -> None:
    assert (
        normalize_text("“It’s”\u00a0**bold**<br>and _italic_\n e\u0301 — \u22125\u200b")
        == '"It\'s" bold and italic é - -5'
    )
    assert normalize_text("snake_case_name 3 * 4 * 5 <b>x</b>") == "snake_case_name 3 * 4 * 5 x"


def test_what_must_not_vanish() -> None:
    assert normalize_text("-1.5") != normalize_text("15")
    assert normalize_text("Ab") != normalize_text("ab")


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_identity(s: str) -> None:
    assert edit_similarity(s, s) == 1.0
    normalize_text(s)


def test_edit_similarity() -> None:
    assert edit_similarity("", "") == 1.0
    assert edit_similarity("", "abc") == 0.0
    assert edit_similarity("abcd", "abxd") == pytest.approx(0.75)
