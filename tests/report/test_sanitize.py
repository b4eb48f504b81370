"""Whatever a page says, the report holds no script, no link, no outside resource, and balanced tags."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.report.render import to_html
from jocr.report.sanitize import HTML_TAGS, MATH_ATTRIBUTES, MATH_TAGS, NUMBERS, VOID, sanitize


class Inspect(HTMLParser):
    """Collects tags and attributes, and whether they nest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.stack: list[str] = []
        self.balanced = True
        self.feed(html)
        self.close()
        self.balanced &= not self.stack

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        self.balanced &= bool(self.stack) and self.stack.pop() == tag


ALLOWED_TAGS = HTML_TAGS | MATH_TAGS | {"code"}
ALLOWED_ATTRIBUTES = MATH_ATTRIBUTES | NUMBERS | {"class"}


def assert_safe(html):
    seen = Inspect(html)
    assert seen.tags <= ALLOWED_TAGS
    assert seen.attributes <= ALLOWED_ATTRIBUTES
    assert seen.balanced


ATTACKS = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil/x.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><script>1</script></svg>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1)) ![y](http://evil/p.png) <http://evil>",
    "<td onclick=alert(1) style='background:url(http://evil)'>x</td>",
    "<iframe src=//evil></iframe><object data=x></object><embed src=x>",
    "<style>body{background:url(//evil)}</style>",
    "<meta http-equiv=refresh content='0;url=//evil'><base href=//evil>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<form action=//evil><input autofocus onfocus=alert(1)></form>",
    "</section></main></body><script>alert(1)</script>",
    r"$\text{<script>alert(1)</script>}$",
    r"$$\href{javascript:alert(1)}{x}$$",
    r"$\class{x}{y} \style{background:url(//evil)}{z}$",
    "$</math><script>alert(1)</script>$",
    "`<script>alert(1)</script>`",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "<!--><script>alert(1)</script>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\ue0000\ue001 \ue000999999\ue001",
    "<td colspan='1\" onclick=\"alert(1)'>x",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks(attack):
    assert_safe(to_html(attack))
    assert_safe(to_html(f"before {attack} after"))
    assert_safe(to_html(f"<table><tr><td>{attack}</td></tr></table>"))
    assert_safe(sanitize(attack))


PIECES = st.sampled_from(
    [
        *ATTACKS,
        "$",
        "$$",
        "\\(",
        "\\)",
        "\\[",
        "\\]",
        "`",
        "```\n",
        "\n\n",
        "| a | b |\n|---|---|\n",
        "<td",
        ">",
        "<",
        "'",
    ]
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=10).map("".join))
def test_any_text_gives_safe_html(text):
    assert_safe(to_html(text))


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet=st.sampled_from("\\{}_^$&frac abcsqrtlgindoe[]()<>1"), max_size=60))
def test_any_formula_gives_safe_html(latex):
    assert_safe(to_html(f"$${latex}$$ and ${latex}$"))


def test_very_deep_nesting_is_cut():
    assert_safe(sanitize("<div>" * 5000 + "x"))
    assert_safe(to_html("$" + "{" * 3000 + "}" * 3000 + "$"))
    assert_safe(to_html(">" * 2000 + "x"))


def test_text_of_dropped_tags_stays():
    html = to_html("A page about <blink>HTML</blink> and <title>titles</title>, to its end.")
    assert all(word in html for word in ("HTML", "titles", "to its end"))


@pytest.mark.parametrize("declaration", ["<![foo[x]]>", "<![", "<![ bar", "<![CDATA[a]]>", "<!foo [", "<!DOCTYPE ["])
def test_broken_declarations_end_nothing(declaration):
    assert_safe(sanitize(f"<p>before</p>{declaration}<p>after</p>"))
    assert_safe(to_html(f"before\n\n{declaration}\n\nafter"))
    assert "before" in sanitize(f"<p>before</p>{declaration}<p>after</p>")


def test_marked_sections_are_text():
    assert sanitize("<p>a <![foo[x]]> b</p>") == "<p>a &lt;![foo[x]]&gt; b</p>"
