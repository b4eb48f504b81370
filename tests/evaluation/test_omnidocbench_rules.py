"""The benchmark's rules on small pages: what is cut, what is matched, what costs and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.evaluation.omnidocbench.annotations import Block, Page, parse_page
from jocr.evaluation.omnidocbench.extraction import extract
from jocr.evaluation.omnidocbench.formulas import lines, match
from jocr.evaluation.omnidocbench.latex_tables import latex_table_to_html
from jocr.evaluation.omnidocbench.metrics import table_scores
from jocr.evaluation.omnidocbench.normalise import formula_norm, table_norm, text_norm
from jocr.evaluation.omnidocbench.pages import Version, score_page
from jocr.evaluation.omnidocbench.tails import cut_tail, ends_in_loop

FIRST = "The harvest of the year was measured in fourteen villages of the north"
SECOND = "Inspectors came back in autumn with the same scales and wrote it down"
BOTH: tuple[Version, Version] = ("1.5", "1.6")


def page(*blocks: tuple[str, str, int | None], relations: list[dict[str, object]] | None = None) -> Page:
    fields = {"table": "html", "equation_isolated": "latex"}
    dets = [
        {"category_type": kind, "ignore": False, "order": order, "anno_id": i, fields.get(kind, "text"): content}
        for i, (kind, content, order) in enumerate(blocks)
    ]
    return parse_page(
        {"layout_dets": dets, "page_info": {"image_path": "x.jpg"}, "extra": {"relation": relations or []}}
    )


def edits(samples: object) -> list[float]:
    from jocr.evaluation.omnidocbench.costs import ned

    return [ned(p.gt_text, p.pred_text) for p in samples.text]  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", BOTH)
def test_invented_paragraphs_are_free_and_missing_ones_cost(version: Version) -> None:
    wanted = page(("text_block", FIRST, 1), ("text_block", SECOND, 2))
    extra = score_page(wanted, f"{FIRST}\n\nSomething nobody ever wrote on this page at all\n\n{SECOND}", version)
    assert edits(extra) == [0, 0]
    missing = score_page(wanted, SECOND, version)
    assert sorted(edits(missing)) == [0, 1]
    assert missing.order == ([1, 2], [2], 0.5)


@pytest.mark.parametrize("version", BOTH)
def test_an_empty_page_is_all_error(version: Version) -> None:
    wanted = page(
        ("text_block", FIRST, 1), ("equation_isolated", "$$x$$", 2), ("table", "<table><tr><td>1</td></tr></table>", 3)
    )
    found = score_page(wanted, "", version)
    assert edits(found) == [1]
    assert [p.pred_text for p in found.formulas] == [""]
    assert [p.pred for p in found.tables] == [()]


def test_headers_take_their_prediction_out_of_the_pool() -> None:
    wanted = page(("header", "Harvest report 1921", None), ("text_block", FIRST, 1))
    found = score_page(wanted, f"Harvest report 1921\n\n{FIRST}", "1.5")
    assert [(p.gt_text, p.pred_text) for p in found.text] == [(text_norm(FIRST), text_norm(FIRST))]


def test_a_paragraph_cut_in_two_is_joined_again() -> None:
    whole = page(("text_block", f"{FIRST} {SECOND}", 1))
    found = score_page(whole, f"{FIRST}\n\n{SECOND}", "1.5")
    assert [p.pred for p in found.text] == [(0, 1)]
    assert edits(found) == [0]


def test_two_blocks_written_as_one_are_both_found() -> None:
    wanted = page(("text_block", FIRST, 1), ("text_block", SECOND, 2))
    found = score_page(wanted, f"{FIRST} {SECOND}", "1.5")
    assert [p.gt for p in found.text] == [(0, 1)]
    assert edits(found) == [0]


def test_truncated_blocks_are_one_and_a_middle_one_counts_twice() -> None:
    def link(a: int, b: int) -> dict[str, object]:
        return {"source_anno_id": a, "target_anno_id": b, "relation_type": "truncated"}

    wanted = page(("text_block", "one", 2), ("text_block", "two", 3), ("text_block", "three", 5),
                  relations=[link(0, 1), link(1, 2)])  # fmt: skip
    assert [(b.content, b.order) for b in wanted.mixed] == [("onetwotwothree", 2)]


def test_a_display_formula_written_as_text_is_scored_as_text() -> None:
    wanted = page(("equation_isolated", "$$x^2 + y = 14 \\alpha$$", 1), ("text_block", FIRST, 2))
    found = score_page(wanted, f"x^2 + y = 14 α\n\n{FIRST}", "1.5")
    assert found.formulas == ()
    assert edits(found) == [0, 0]


def test_spare_tables_are_free() -> None:
    table = "<table><tr><td>a</td><td>b</td></tr></table>"
    found = score_page(page(("table", table, 1)), f"{table}\n\n<table><tr><td>zz</td></tr></table>", "1.5")
    assert len(found.tables) == 1
    assert found.spare_tables == 1
    assert table_scores(found.tables[0].gt_text, found.tables[0].pred_text) == (1.0, 1.0)


def test_v16_reads_one_formula_per_line() -> None:
    aligned = r"$$\begin{aligned} a &= b + c \\ d &= e - f \end{aligned}$$"
    wanted = page(("equation_isolated", aligned, 1))
    separate = "$$a = b + c$$\n\n$$d = e - f$$"
    new = score_page(wanted, separate, "1.6")
    assert [(p.gt_text, p.pred_text) for p in new.formulas] == [("a=b+c", "a=b+c"), ("d=e-f", "d=e-f")]
    old = score_page(wanted, separate, "1.5")
    assert [p.gt_text == p.pred_text for p in old.formulas] == [False]


def test_v16_formula_matching_keeps_every_line_once() -> None:
    blocks = [Block("equation_isolated", f"$$x_{k} = {k} + y$$", k) for k in range(4)]
    pairs = match(blocks, extract("$$x_0 = 0 + y \\quad x_1 = 1 + y$$\n\n$$x_3 = 3 + y$$")["equation_isolated"])
    assert sorted(i for p in pairs for i in p.gt) == [0, 1, 2, 3]
    assert [p.pred_text for p in pairs if p.gt == (3,)] == [formula_norm("x_3=3+y")]


def test_v16_gives_long_paragraphs_a_second_chance() -> None:
    whole = " ".join(f"{FIRST} number {k}." for k in range(8))
    other = " ".join(f"Advertisement {k} speaks of soap, boots and lamps." for k in range(14))
    new, old = (score_page(page(("text_block", whole, 1)), f"{other} {whole}", v) for v in ("1.6", "1.5"))
    assert 0.35 < edits(old)[0] <= 0.7
    assert edits(new)[0] < 0.02


def test_v16_counts_formulas_and_tables_in_the_reading_order() -> None:
    table = "<table><tr><td>a</td><td>b</td></tr></table>"
    wanted = page(("text_block", FIRST, 1), ("table", table, 2), ("equation_isolated", "$$a=b$$", 3))
    markdown = f"{table}\n\n$$a=b$$\n\n{FIRST}"
    assert score_page(wanted, markdown, "1.5").order == ([1], [1], 0.0)
    order = score_page(wanted, markdown, "1.6").order
    assert order is not None
    assert sorted(order[1]) == [1, 2, 3]
    assert order[2] > 0


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\begin{aligned}a&=b\\c&=d\end{aligned}", ["a =b", "c =d"]),
        (r"\begin{array}{l}a\\b\end{array}", ["a", "b"]),
        (r"\begin{array}{ll}a&b\\c&d\end{array}", [r"\begin{array}{ll}a&b\\c&d\end{array}"]),
        (r"\begin{pmatrix}a\\b\end{pmatrix}", [r"\begin{pmatrix}a\\b\end{pmatrix}"]),
        (r"\left\{\begin{array}{l}a\\b\end{array}\right.", [r"\begin{cases}a\\b\end{cases}"]),
    ],
)
def test_formula_lines(latex: str, expected: list[str]) -> None:
    assert lines(f"$${latex}$$") == expected


def test_pipe_tables_and_latex_tables_become_html() -> None:
    pipes = extract("| a | b |\n|:--|--:|\n| 1 |  |\n\nafter")
    assert table_norm(pipes["html_table"][0].content).count("<td") == 4
    latex = r"\begin{tabular}{|l|c|}\hline \multicolumn{2}{c}{Head} \\ \hline \multirow{2}{*}{x} & 1 \\"
    latex += r" & 2\% \\ \end{tabular}"
    html = latex_table_to_html(latex)
    assert html == (
        '<table><tr><td colspan="2">Head</td></tr><tr><td rowspan="2">x</td><td>1</td></tr><tr><td>2%</td></tr></table>'
    )
    wanted = page(("table", html, 1))
    assert table_scores(*(lambda p: (p.gt_text, p.pred_text))(score_page(wanted, latex, "1.5").tables[0])) == (1, 1)


def test_tail_cut_keeps_one_unit_and_leaves_short_pages_alone() -> None:
    unit = "and so it went on for ever, "
    body = "".join(f"Sentence number {k} of a long page. " for k in range(250))
    assert cut_tail(body + unit * 40) == body + unit
    assert cut_tail(body) == body
    assert cut_tail("short " + unit * 40) == "short " + unit * 40
    assert ends_in_loop("short " + unit * 40)
    assert not ends_in_loop("short" + "." * 400)
    assert not ends_in_loop(body)


NASTY = ["<table>", "</table>", "<tr>", "<td>", "$$", "$", "\\[", "\\]", "\\(", "\\)", "```", "|", "\n\n", "\n", "a b",
         "\\begin{tabular}{", "\\end{tabular}", "\\frac{", "\\begin{aligned}", "}", "{", "![", "](x)",
         "\x00", "\\"]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=6)), max_size=30), st.sampled_from(BOTH))
def test_no_prediction_raises(pieces: list[str], version: Version) -> None:
    wanted = page(
        ("text_block", FIRST, 1),
        ("equation_isolated", "$$x^2$$", 2),
        ("table", "<table><tr><td>1</td></tr></table>", 3),
    )
    found = score_page(wanted, "".join(pieces), version)
    assert all(0 <= e <= 1 for e in edits(found))
    for pair in found.tables:
        assert 0 <= table_scores(pair.gt_text, pair.pred_text)[0] <= 1
