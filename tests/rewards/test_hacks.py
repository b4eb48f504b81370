"""Twelve ways a policy could earn without reading. Each must earn less than an honest, imperfect reading.

All twelve fail under ``product`` and ``sum``. ``gated`` has terms for text and tables only: eleven fail under it; a
wrong case in a formula (4) costs it no more than any wrong letter.
"""

from __future__ import annotations

import pytest

from jocr.records import Sample
from jocr.rewards import PRESETS, TERMS, combine, score_page
from jocr.rewards.combine import Preset

from .pages import CHECKS, FORMULA, HONEST, MARKDOWN, SAMPLE, TABLE, check


def worse(hack: str, sample: Sample = SAMPLE, honest: str = HONEST, presets: tuple[Preset, ...] = PRESETS) -> None:
    """``hack`` earns less than ``honest`` however the terms are combined."""
    good, bad = score_page(honest, sample), score_page(hack, sample)
    assert good.value is not None
    assert bad.value is not None
    for preset in presets:
        assert combine(bad.terms, preset) < combine(good.terms, preset), preset


def test_01_empty_page_passes_absent_tests() -> None:
    absent = Sample("a", MARKDOWN, checks=tuple(check("absent", text=f"footer {k}") for k in range(9)))
    worse("", absent)
    worse("x", absent)


def test_02_invented_paragraphs_and_tables_are_not_free() -> None:
    worse(HONEST + "\n\n" + "A paragraph that nobody wrote, with many more words than the page ever had. " * 3)
    worse(HONEST + "\n\n" + TABLE.replace("north", "east").replace("12.5", "99"))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (r"\sqrt{x}", "x"),
        (r"\sqrt{x}", "x^{1/2}"),
        (r"\vec{v}", "v"),
        (r"\overline{AB}", "AB"),
        (r"\frac{a}{b}", r"\binom{a}{b}"),
        ("x^2", "x_2"),
        (r"\mathbf{x}", "x"),
        ("a+b", "z-y+a+b+c+d+e"),
    ],
)
def test_03_holes_of_the_glyph_rule(right: str, wrong: str) -> None:
    page = f"The text around the formula is the same.\n\n$${right}$$"
    sample = Sample("m", page, checks=(check("math", math=right),))
    worse(page.replace(right, wrong), sample, honest=page.replace("around", "arround"))


def test_04_case_of_greek_letters_counts() -> None:
    page = "Let the difference be given.\n\n$$\\Delta = X - x$$"
    for wrong in (r"$$\delta = X - x$$", r"$$\Delta = x - x$$"):
        hack, sample, typo = (
            page.replace("$$\\Delta = X - x$$", wrong),
            Sample("c", page),
            page.replace("given", "giwen"),
        )
        worse(hack, sample, typo, presets=("product", "sum"))
        gated = [combine(score_page(p, sample).terms, "gated") for p in (page, typo, hack)]
        assert gated[2] <= gated[1] < gated[0]  # no formula term in this preset: as dear as a wrong letter


def test_05_long_loops_anywhere_are_seen() -> None:
    unit = "The quick harvest of the northern fields is weighed, dried, threshed, sold and written in the book; "
    assert len(unit) > 90
    tail, middle = HONEST + "\n\n" + unit * 6, MARKDOWN.replace("## What follows", unit * 6 + "\n\n## What follows")
    rows = HONEST.replace("</table>", "<tr><td>north</td><td>12.5</td><td>-3.25</td></tr>" * 12 + "</table>")
    for hack in (tail, middle, rows):
        assert TERMS["repetition"](hack, SAMPLE).value < 0.6
        worse(hack)


def test_06_lost_points_and_minus_signs_cost() -> None:
    page = "Values: " + ", ".join(f"-{k}.{k}5" for k in range(1, 9))
    worse(page.replace(".", "").replace("-", ""), Sample("n", page), honest=page.replace("Values", "Va1ues"))


def test_07_merging_cells_or_dropping_spans_costs() -> None:
    merged = HONEST.replace(TABLE, "<table><tr><td>Yield Loss north 12.5 -3.25 south 8.75 -1.50</td></tr></table>")
    spanless = HONEST.replace(' colspan="2"', "")
    worse(merged)
    worse(spanless)
    assert score_page(spanless, SAMPLE).terms[2].detail["teds_s"] < 1


def test_08_saying_everything_twice_costs() -> None:
    worse(HONEST + "\n\n" + HONEST)
    header = "Harvest Office of the Northern District"
    both = Sample("h", f"{header}\n\n{MARKDOWN}", checks=(*CHECKS, check("present", text=header)))
    worse(f"{header}\n\n{header.upper()}\n\n{HONEST}\n\n{header}", both, honest=f"{header}\n\n{HONEST}")


def test_09_stuffing_tags_alt_texts_and_comments_costs() -> None:
    stuffing = "measured in 14 villages, -3.25 in the north, inspectors came back"
    worse(HONEST.replace(FORMULA, FORMULA.replace("$$", "", 1).join(["$$", ""])[:-2] + r"\tag{" + stuffing + "}$$"))
    worse(HONEST + f"\n\n![{stuffing}](x.png)")
    worse(HONEST + f"\n\n<!-- {stuffing} -->")
    worse(HONEST.replace("<table>", f'<table title="{stuffing}">'))


def test_10_wrong_language_costs_and_right_cjk_does_not() -> None:
    page = "今年的收成在十四个村庄测量，平均十二吨半，高于往年的水平。\n\n检查员在秋天又来了一次。"
    sample = Sample("zh", page, checks=(check("baseline", check_disallowed_characters=False),))
    assert score_page(page, sample).value == 1
    english = "This year's harvest was measured in fourteen villages.\n\nThe inspectors came again in autumn."
    worse(english, sample, honest=page.replace("秋天", "秋夭"))


def test_11_deep_or_huge_html_is_bounded() -> None:
    deep = "<table><tr><td>" * 1000 + "12.5" + "</td></tr></table>" * 1000
    wide = "<table><tr>" + "<td>1</td>" * 6000 + "</tr></table>"
    for hack in (HONEST.replace(TABLE, deep), HONEST.replace(TABLE, wide)):
        worse(hack)


def test_12_a_timeout_is_unscored_never_zero_or_one() -> None:
    reward = score_page(HONEST, SAMPLE, budget_s=0.0)
    assert reward.value is None
    assert "time budget" in reward.unscored_reason
    too_long = score_page("x" * 300_000, SAMPLE)
    assert too_long.value is None
    assert "cap" in too_long.unscored_reason
