import asyncio
import contextlib
import multiprocessing
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.errors import JocrError, MarkupError, UnscoredError
from jocr.markup import katex
from jocr.markup.latex import find_formulas, normalize, presentation, to_mathml, tokenize

SOUP = [
    *r"\{}[]^_&$%~' abx12α≤",
    "\\frac",
    "\\left",
    "\\right.",
    "\\text",
    "\\over",
    "\\sqrt",
    "\\begin{array}",
    "\\\\",
]


def soup() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(SOUP), max_size=30).map("".join)


def test_tokens() -> None:
    assert tokenize(r"\frac{a}{b_1} % note" + "\n" + r"+ \text{if  so} \, x") == [
        "\\frac", "{", "a", "}", "{", "b", "_", "1", "}", "+", "\\text", "{", "i", "f", " ", "s", "o", "}", "\\,", "x",
    ]  # fmt: skip
    assert tokenize(r"\begin {matrix} a \\ b \end{matrix}") == ["\\begin{matrix}", "a", "\\\\", "b", "\\end{matrix}"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\dfrac12", r"\frac{1}{2}"),
        (r"\left( x^{2}_1 \right.", r"(x_1^2"),
        (r"$$ a \quad b $$", "ab"),
        (r"{{a}} \over {b}", r"\frac a b"),
        (r"\lVert x\rVert", r"\| x \|"),
        ("α ≤ β", r"\alpha\le\beta"),
        (r"x^{\prime\prime}", "x''"),
        (r"\mathbf x", r"\mathbf{x}"),
        (r"\begin{array}{c|c} a & b \\[2pt] c\end{array}", r"\begin{array}{ll}a&b\\c\end{array}"),
        (r"a \hspace{2em} b \kern 3pt c", "abc"),
        (r"\mbox{if } x", r"\text{if }x"),
        (r"\sqrt[ 3 ]{x}", r"\sqrt[3]x"),
    ],
)
def test_same_formula_same_spelling(one: str, other: str) -> None:
    assert normalize(one) == normalize(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("X", "x"),
        (r"\Delta", r"\delta"),
        (r"\mathbf{x}", "x"),
        ("x^2", "x_2"),
        (r"\sqrt{x}", "x"),
        (r"\frac{a}{b}", r"\binom{a}{b}"),
        (r"\vec{v}", "v"),
        ("x^{ab}", "x^ab"),
        (r"x \tag{1}", "x"),
        (r"\text{a b}", r"\text{ab}"),
    ],
)
def test_different_formulas_stay_different(one: str, other: str) -> None:
    assert normalize(one) != normalize(other)


@given(soup())
@settings(max_examples=80, deadline=None)
def test_normalize_never_raises_and_settles(latex: str) -> None:
    tokenize(latex)
    once = normalize(latex)
    twice = normalize(once)
    assert normalize(twice) == twice


@pytest.mark.parametrize(
    "deep", ["{" * 50_000, "x^{" * 9000 + "}" * 9000, "a\\over " * 5000, "\\frac" * 5000, "\\sqrt[" * 3000]
)
def test_deep_nesting_is_flattened(deep: str) -> None:
    normalize(deep)


def test_mathml() -> None:
    out = to_mathml(r"\frac{a}{b}")
    assert out.startswith("<math")
    assert "<mfrac><mi>a</mi><mi>b</mi></mfrac>" in out
    assert "annotation" not in out
    assert presentation("x ^ 2") == presentation("x^{2}") == "<mrow><msup><mi>x</mi><mn>2</mn></msup></mrow>"


def test_mathml_errors_are_typed() -> None:
    for bad in (r"\frac{a", r"\nosuchcommand", "x^", "{" * 3000 + "}" * 3000, r"\def\a{\a\a}\a"):
        with pytest.raises(MarkupError):
            to_mathml(bad)
    with pytest.raises(UnscoredError):
        to_mathml("x" * (katex.MAX_CHARS + 1))
    with pytest.raises(UnscoredError):
        to_mathml("\\sum_{i=0}^n x+" * 1200, timeout_s=0.01)
    assert to_mathml("x+y")  # the context lives on


def test_prepare_answers_like_single_calls() -> None:
    katex.prepare(["p+q", "\\frac{p", "p-q"])
    assert "<mo>+</mo>" in to_mathml("p+q")
    with pytest.raises(MarkupError):
        to_mathml("\\frac{p")


@given(soup())
@settings(max_examples=40, deadline=None)
def test_mathml_of_anything(latex: str) -> None:
    with contextlib.suppress(MarkupError, UnscoredError):
        assert to_mathml(latex).endswith("</math>")


def test_mathml_inside_an_event_loop() -> None:
    async def inside() -> str:
        return to_mathml("z+1")

    assert "<mi>z</mi>" in asyncio.run(inside())


def _forked(queue: "multiprocessing.Queue[str]") -> None:
    try:
        to_mathml("forked")
        queue.put("worked")
    except JocrError as error:
        queue.put(str(error))


def test_a_forked_child_says_why_it_cannot() -> None:
    to_mathml("x")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_forked, args=(queue,))
    child.start()
    answer = queue.get(timeout=30)
    child.join(30)
    assert "spawn" in answer


def test_the_interpreter_ends() -> None:
    code = "from jocr.markup.latex import to_mathml; print(to_mathml('x')[:5])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "<math\n", "")


def spans(page: str) -> list[tuple[str, str]]:
    return [(f.kind, f.latex) for f in find_formulas(page)]


def test_find_formulas() -> None:
    page = (
        "Pay $5 and $10 for $x^2$, `$code$` and \\(b\\). $$c\nd$$ \\[e\\] \\$3 $y$\n```\n$no$\n```\n"
        "\\begin{align*}a&=b\\end{align*} $12 per ton, $9 each$"
    )
    assert spans(page) == [
        ("inline", "x^2"),
        ("inline", "b"),
        ("display", "c\nd"),
        ("display", "e"),
        ("inline", "y"),
        ("display", "\\begin{align*}a&=b\\end{align*}"),
    ]
    for span in find_formulas(page):
        assert span.latex in page[span.start : span.end]


@pytest.mark.parametrize(
    "prose", ["costs $5 and then $6 total", "from $1,200 to $3,400", "$5", "US$ 5 and US$ 6", "$ a $"]
)
def test_prices_are_not_formulas(prose: str) -> None:
    assert spans(prose) == []


@pytest.mark.parametrize(
    "page", ["\\(" * 200_000, "$$" * 100_001, "`" * 100_000, "$a" * 50_000, "\\begin{align}" * 50_000]
)
def test_find_formulas_is_linear(page: str) -> None:
    find_formulas(page)
