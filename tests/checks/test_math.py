"""The math check: which equations of a page are seen, when two show the same, and what strict closes."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from jocr.checks import boxes as boxes_module
from jocr.checks import parse_check, run_checks
from jocr.checks.formulas import equations
from jocr.checks.glyphs import Glyph, matches
from jocr.checks.math_check import shows
from jocr.checks.render import in_process
from jocr.errors import UnscoredError

HOLES = [
    (r"\sqrt{x}", "x"),
    (r"\sqrt{x}", "x^{1/2}"),
    (r"\overline{AB}", "AB"),
    (r"\vec{v}", "v"),
    (r"\widehat{ABC}", "ABC"),
    (r"\frac{a}{b}", r"\binom{a}{b}"),
    ("x^2", "x_2"),
    (r"\mathbf{x}", "x"),
    ("a+b", "a+b+c+d"),
    ("x", r"\text{any stuffing with x in it}"),
    ("x", r"x \tag{and a long story to stuff}"),
    ("{x a}^b", "x^{a b}"),
    (r"\sqrt{x}y", r"\sqrt{xy}"),
    (r"\notacommand", "x"),
]
HONEST = [
    (r"\frac{a}{b}", r"\dfrac{a}{b}"),
    ("f'(x)", r"f^{\prime}(x)"),
    (r"\lim_{x\to 0} f", r"\lim_{x \rightarrow 0} f"),
    (r"\begin{pmatrix}a&b\\c&d\end{pmatrix}", r"\left(\begin{array}{cc}a&b\\c&d\end{array}\right)"),
    ("x^2", "x^{2},"),
    ("x^2", r"x^2 \tag{3}"),
    (r"\alpha", "α"),
    ("{a}+{b}", "a + b"),
    (r"\mathrm{d}x", "dx"),
    (r"\left( x \right)", "(x)"),
]


@pytest.mark.parametrize(
    ("markdown", "found"),
    [
        (r"\(a\) $b$ \[c\] $$d$$", ["a", "c", "d", "b"]),
        ("from $5 to $6", ["5 to"]),
        ("$$\na\n$$", ["a"]),
        ("$$ $x$", ["$"]),
        (r"\(open $x$", ["x"]),
        ("$", []),
    ],
)
def test_equations_in_the_order_of_their_delimiters(markdown: str, found: list[str]) -> None:
    assert equations(markdown) == found


def test_dollars_can_be_ignored() -> None:
    assert equations(r"$a$ $$b$$ \(c\)", dollar=False) == ["c"]


@pytest.mark.parametrize(("reference", "candidate"), HOLES)
def test_strict_closes_the_known_holes(reference: str, candidate: str) -> None:
    assert not shows(candidate, reference, strict=True)


@pytest.mark.parametrize(("reference", "candidate"), [*HONEST, *((r, r) for r, _ in HOLES[:-1])])
def test_strict_accepts_the_same_picture(reference: str, candidate: str) -> None:
    assert shows(candidate, reference, strict=True)
    assert shows(candidate, reference)


@pytest.mark.parametrize(("reference", "candidate"), [("x_i^2", "{x_i}^2"), (r"\bar{x}", r"\overline{x}")])
def test_strict_forgives_what_the_eye_forgives(reference: str, candidate: str) -> None:
    assert shows(candidate, reference, strict=True)


def test_the_benchmark_rule_has_the_holes() -> None:
    """Parity: the official scorer accepts these, so the default must."""
    accepted = [pair for pair in HOLES if shows(pair[1], pair[0])]
    assert (r"\sqrt{x}", "x") in accepted
    assert ("x^2", "x_2") in accepted
    assert (r"\notacommand", "x") in accepted
    assert ("a+b", "a+b+c+d") in accepted


@pytest.mark.parametrize(
    ("reference", "candidate"),
    [(r"\hat{x}", "x"), (r"\frac{a}{b}", "a/b"), ("x_1+x_2", "x_2+x_1"), (r"\frac{a}{b}", r"\frac{b}{a}")],
)
def test_both_rules_reject(reference: str, candidate: str) -> None:
    assert not shows(candidate, reference)
    assert not shows(candidate, reference, strict=True)


def test_layout_puts_glyphs_where_they_belong() -> None:
    glyphs = {g.char: g for g in in_process(r"\frac{a}{b} + \sum_{i}^{n} x^2").glyphs}
    assert glyphs["a"].y < glyphs["+"].y < glyphs["b"].y
    assert glyphs["n"].y < glyphs["∑"].y < glyphs["i"].y
    assert glyphs["2"].y < glyphs["x"].y
    assert glyphs["2"].height < glyphs["x"].height
    centre = {c: glyphs[c].x + glyphs[c].width / 2 for c in glyphs}
    assert centre["a"] == pytest.approx(centre["b"])
    assert centre["a"] < centre["+"] < centre["∑"] < centre["x"] < centre["2"]
    assert centre["i"] == pytest.approx(centre["n"]) == pytest.approx(centre["∑"])


def test_glyph_matching() -> None:
    a, b = Glyph("a", 0, 0, 10, 30), Glyph("b", 20, 0, 10, 30)
    far, between = Glyph("b", 200, 5, 10, 30), Glyph("c", 10, 0, 5, 30)
    assert matches([a, b], [a, far])
    assert not matches([a, b], [a, between, b])
    assert not matches([a, b], [a, Glyph("b", 20, 5.1, 10, 30)])
    assert not matches([a, b], [Glyph("b", 0, 0, 10, 30), Glyph("a", 20, 0, 10, 30)])
    assert matches([a], [b, Glyph("a", 100, 0, 10, 30)])
    assert not matches([a, a], [a])
    assert matches([], [a])


def test_a_glyph_bomb_is_unscored() -> None:
    with pytest.raises(UnscoredError):
        shows("x" * 2000, "xx")
    assert not shows("x" * 2000, "x + y")
    assert not shows("word " * 5000, "w")


def test_katex_bomb_does_not_raise_anything_else() -> None:
    bomb = r"\def\a{xxxxxxxxxx}\def\b{\a\a\a\a\a\a\a\a}\def\c{\b\b\b\b\b\b\b\b}\c\c\c\c\c\c"
    check = parse_check({"pdf": "a.pdf", "page": 1, "id": "x", "type": "math", "math": "y"})
    assert not run_checks([check], f"$${bomb}$$")[0].passed


def test_no_browser_is_unscored_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes_module.close()
    boxes_module.in_browser.cache_clear()
    shows.cache_clear()
    monkeypatch.setattr(boxes_module, "find_browser", lambda: None)
    check = parse_check({"pdf": "a.pdf", "page": 1, "id": "x", "type": "math", "math": "x^2"})
    with pytest.raises(UnscoredError, match="chromium"):
        run_checks([check], "$x^3$", math="boxes")
    assert run_checks([check], "$x^2$", math="boxes")[0].passed  # the same string needs no browser


def test_no_playwright_is_unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes_module.close()
    monkeypatch.setattr(boxes_module, "find_browser", lambda: "/usr/bin/true")
    monkeypatch.setitem(sys.modules, "playwright", None)
    with pytest.raises(UnscoredError, match="Playwright"):
        boxes_module.in_browser("x^4")


@pytest.mark.slow
def test_a_browser_that_is_none_is_unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("playwright")
    boxes_module.close()
    monkeypatch.setattr(boxes_module, "find_browser", lambda: "/usr/bin/true")
    with pytest.raises(UnscoredError, match="glyph boxes"):
        boxes_module.in_browser("x^5")


@pytest.mark.slow
@pytest.mark.parametrize("latex", [r"\frac{a}{b_1}", r"\sum_{i=1}^n x", r"\lim_{x\to 0} \sin x", r"\hat{x}\tag{1}"])
def test_layout_agrees_with_the_browser(latex: str) -> None:
    pytest.importorskip("playwright")
    if boxes_module.find_browser() is None:
        pytest.skip("no Chromium")
    ours: Any = in_process(latex)
    theirs: Any = boxes_module.in_browser(latex)
    assert ours.compact == theirs.compact
    assert [g.char for g in ours.glyphs] == [g.char for g in theirs.glyphs]
    first = ours.glyphs[0].y + ours.glyphs[0].height / 2, theirs.glyphs[0].y + theirs.glyphs[0].height / 2
    for a, b in zip(ours.glyphs, theirs.glyphs, strict=True):
        assert a.y + a.height / 2 - first[0] == pytest.approx(b.y + b.height / 2 - first[1], abs=1.5)
