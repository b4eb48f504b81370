"""Identity is 1, empty is the minimum, more damage never pays, and nothing a model writes makes a term raise."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.records import Sample
from jocr.rewards import PRESETS, TERMS, combine, score_page

from .pages import CHECKS, MARKDOWN, SAMPLE, blocks, check, sentences, tables

quick = settings(max_examples=15, deadline=None)
EPS = 1e-9


def falls(values: list[float]) -> bool:
    return all(later <= earlier + EPS for earlier, later in pairwise(values))


def sample(markdown: str, *checks: dict[str, object]) -> Sample:
    return Sample("s", markdown, checks=checks)


@quick
@given(blocks())
def test_identity_scores_one(parts: list[str]) -> None:
    page = "\n\n".join(parts)
    reward = score_page(page, sample(page, check("present", text=parts[0][:20].strip("#- ") or "x")))
    assert [(t.name, t.value) for t in reward.terms if t.value < 1 and t.name != "unit_tests"] == []
    assert all(combine([t for t in reward.terms if t.name != "unit_tests"], p) == 1 for p in PRESETS)


def test_identity_of_the_checked_page_scores_one() -> None:
    reward = score_page(MARKDOWN, SAMPLE)
    assert reward.value == 1
    assert all(t.applies for t in reward.terms)


@quick
@given(blocks(), st.sampled_from(["", " ", "\n\n", "***", "<table></table>", "$$ $$", "#"]))
def test_empty_scores_the_minimum_in_every_term(parts: list[str], nothing: str) -> None:
    reward = score_page(nothing, sample("\n\n".join(parts), *CHECKS))
    assert [t.name for t in reward.terms if t.applies and t.value > 0] == []
    assert all(combine(reward.terms, p) == 0 for p in PRESETS)


def test_a_blank_page_read_as_blank_is_right() -> None:
    assert score_page("", sample("")).value == 1
    assert score_page("Invented text", sample("")).value < 0.2


@quick
@given(blocks())
def test_losing_more_blocks_never_raises_a_term(parts: list[str]) -> None:
    page = "\n\n".join(parts)
    first, last = parts[0].strip("#- ")[:12], parts[-1].strip("#- ")[:12]
    reference = sample(page, check("absent", text="page 9"), check("order", before=first, after=last))
    rewards = [score_page("\n\n".join(parts[:k]), reference) for k in range(len(parts), -1, -1)]
    for name in TERMS:
        terms = [next(t for t in r.terms if t.name == name) for r in rewards]
        if terms[0].applies:
            assert falls([t.value for t in terms]), name
    for preset in PRESETS:
        assert falls([combine(r.terms, preset) for r in rewards]), preset


@quick
@given(sentences, st.randoms(use_true_random=False))
def test_more_wrong_characters_never_raise_content(text: str, random: object) -> None:
    places = list(range(len(text)))
    random.shuffle(places)  # type: ignore[attr-defined]
    damaged, values = list(text), []
    for place in places:
        values.append(score_page("".join(damaged), sample(text)).terms[0].value)
        damaged[place] = "¤"
    assert values[0] == 1
    assert falls(values)


@quick
@given(sentences, st.lists(sentences, min_size=1, max_size=6))
def test_more_invented_text_never_raises_content_or_the_reward(text: str, invented: list[str]) -> None:
    pages = [" ".join([text, *(s.upper() for s in invented[:k])]) for k in range(len(invented) + 1)]
    rewards = [score_page(p, sample(text)) for p in pages]
    assert falls([r.terms[0].value for r in rewards])
    assert falls([r.value or 0 for r in rewards])


@quick
@given(tables(), st.randoms(use_true_random=False))
def test_more_wrong_cells_never_raise_the_table_term(table: str, random: object) -> None:
    cells = table.split("<td>")
    places = list(range(1, len(cells)))
    random.shuffle(places)  # type: ignore[attr-defined]
    values = []
    for place in [0, *places]:
        if place:
            text, rest = cells[place].split("</td>", 1)
            cells[place] = "¤" * len(text) + "</td>" + rest
        values.append(TERMS["table"]("<td>".join(cells), sample(table)).value)
    assert values[0] == 1
    assert falls(values)
    assert values[-1] < values[0]


@quick
@given(st.lists(st.sampled_from([*"abcxyz", r"\alpha", r"\sum", "+", "="]), min_size=3, max_size=15))
def test_more_wrong_tokens_never_raise_the_formula_term(tokens: list[str]) -> None:
    reference = sample("$$" + " ".join(tokens) + "$$")
    damaged = ["$$" + " ".join([r"\star"] * k + tokens[k:]) + "$$" for k in range(len(tokens) + 1)]
    values = [TERMS["formula"](page, reference).value for page in damaged]
    assert values[0] == 1
    assert falls(values)
    assert values[-1] == 0


def test_more_broken_braces_never_raise_structure() -> None:
    page = " ".join(r"$\frac{a}{b}$ and" for _ in range(6))
    damaged = [page]
    for _ in range(6):
        damaged.append(damaged[-1].replace(r"\frac{a}{b}", r"\frac{a}{b", 1))
    values = [TERMS["structure"](p, sample(page)).value for p in damaged]
    assert values[0] == 1
    assert falls(values)
    assert values[-1] < 0.2


def test_a_longer_loop_never_raises_repetition_or_the_reward() -> None:
    rewards = [score_page(MARKDOWN + "\n\n" + "and so on and so forth, " * k, SAMPLE) for k in range(0, 200, 20)]
    values = [next(t.value for t in r.terms if t.name == "repetition") for r in rewards]
    assert falls(values)
    assert falls([r.value or 0 for r in rewards])
    assert values[-1] < 0.2


NASTY = [
    "<table>", "</table>", "<tr>", "<td colspan=99999999>", '<td rowspan="-1">', "<td rowspan=0>", "</td",
    "<!--", "-->",
    "$", "$$", "\\[", "\\]", "\\(", "\\begin{aligned}", "\\end{array}", "\\frac{", "}", "{", "\\left(", "\\right", "\\",
    "```", "````markdown", "|", "|---|", "| a |\n", "\n", "\n\n", "# ", "- ", "![x](", "<td>", "&amp;", "&#x0;", "\x00",
    "\ud800", "\u202e", "é", "é", "中文", "١٢", "<|im_end|>", "---\n", "%", "&", "\\\\", "^", "_", "a b",
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=8)), max_size=40), st.booleans())
def test_no_malformed_page_raises(pieces: list[str], as_reference: bool) -> None:
    page = "".join(pieces)
    reward = score_page(MARKDOWN, sample(page)) if as_reference else score_page(page, SAMPLE)
    assert reward.unscored_reason == ""
    assert reward.value is not None
    assert 0 <= reward.value <= 1
    assert all(0 <= t.value <= 1 for t in reward.terms)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=8)), max_size=30))
def test_malformed_pages_are_their_own_best_reading(pieces: list[str]) -> None:
    page = "".join(pieces)
    reward = score_page(page, sample(page))
    assert reward.value is not None
    assert reward.value == 1
