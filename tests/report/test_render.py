"""Formulas become MathML, tables tables; money and code stay what they are."""

from __future__ import annotations

import pytest

from jocr.report.render import LONGEST_FORMULA, to_html


@pytest.mark.parametrize("text", ["$x^2$", r"\(x^2\)", "a $x^2$, b", "<table><tr><td>$x^2$</td></tr></table>"])
def test_inline_formula(text):
    html = to_html(text)
    assert '<math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>' in html


@pytest.mark.parametrize("text", [r"$$\frac{a}{b}$$", "\\[\n\\frac{a}{b}\n\\]", "a\n\n$$\n\\frac{a}{b}\n$$\n\nb"])
def test_display_formula(text):
    assert '<math display="block"><mrow><mfrac>' in to_html(text)


@pytest.mark.parametrize(
    "text",
    ["from $5 to $10", "$5 and $10 and $20", "US$ 5 and US$ 6", r"\$5 and \$6", "5$ or 6$", "`$x$`", "```\n$x$\n```"],
)
def test_money_and_code_are_no_formulas(text):
    html = to_html(text)
    assert "<math" not in html
    assert "$" in html


def test_prices_beside_a_formula():
    html = to_html("It costs $5, or $10 for $n^2$ pieces.")
    assert html.count("<math") == 1
    assert "$5, or $10 for" in html


def test_markdown_inside_a_formula_is_left_alone():
    html = to_html(r"$a_1 * b_2 * c_3$ and *emphasis*")
    assert html.count("<msub>") == 3
    assert "<em>emphasis</em>" in html


def test_aligned_lines_keep_their_rows():
    html = to_html(r"$$\begin{aligned} a &= b \\ c &< d \end{aligned}$$")
    assert html.count("<mtr>") == 2
    assert "&lt;" in html


@pytest.mark.parametrize("latex", [r"\frac{", r"\begin{matrix} a", "}{", "^", "x" * (LONGEST_FORMULA + 1)])
def test_a_formula_that_does_not_convert_shows_its_source(latex):
    html = to_html(f"$${latex}$$")
    assert latex.replace("&", "&amp;") in html or "<math" in html


def test_html_tables_keep_their_spans():
    html = to_html('<table><tr><td colspan="2" rowspan=3 class="x">a</td><td>b<td>c</tr></table>')
    assert '<table><tr><td colspan="2" rowspan="3">a</td><td>b</td><td>c</td></tr></table>' in html


def test_pipe_tables_headings_and_lists():
    html = to_html("# T\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- x\n- y")
    assert "<h1>T</h1>" in html
    assert "<th>a</th>" in html
    assert html.count("<li>") == 2
