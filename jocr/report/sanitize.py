"""HTML from a page may hold anything a model can be made to write. Only what is listed here comes out again."""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser

VOID = {"br", "hr"}
HTML_TAGS = frozenset(
    (
        "h1 h2 h3 h4 h5 h6 p div span br hr ul ol li dl dt dd blockquote pre code em strong b i u s del ins sub "
        "sup small mark table caption colgroup thead tbody tfoot tr th td figure figcaption"
    ).split()
)
MATH_TAGS = frozenset(
    (
        "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover "
        "mmultiscripts mtable mtr mtd mlabeledtr menclose mpadded mphantom mstyle merror semantics"
    ).split()
)
NUMBERS = {"colspan", "rowspan", "start"}
MATH_ATTRIBUTES = frozenset(
    (
        "display mathvariant stretchy fence separator accent accentunder linethickness columnalign rowalign "
        "columnlines rowlines displaystyle scriptlevel width height depth lspace rspace minsize maxsize notation "
        "movablelimits form rowspacing columnspacing"
    ).split()
)
INLINE_PARENTS = {"li": {"li"}, "td": {"td", "th"}, "th": {"td", "th"}, "tr": {"tr", "td", "th"}, "p": {"p"}}
DEEPEST = 200  # open tags; deeper ones are dropped, since browsers and people give up long before


def sanitize(html: str) -> str:
    """``html`` rebuilt from an allow-list of tags and attributes: balanced, no script, link, image, style or event.

    The text inside a tag that is dropped stays, as text: a page about HTML reads as such.
    """
    parser = _Rebuild()
    parser.feed(html.replace("<![", "&lt;!["))  # HTML has no marked sections, and html.parser gives up on unknown ones
    parser.close()
    return parser.finish()


class _Rebuild(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._out: list[str] = []
        self._stack: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in HTML_TAGS and tag not in MATH_TAGS:
            return
        self._close_implied(tag)
        if len(self._stack) >= DEEPEST:
            return
        self._out.append(f"<{tag}{''.join(_attribute(tag, name, value) for name, value in attrs)}>")
        if tag not in VOID:
            self._stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._stack:
            while (last := self._stack.pop()) != tag:
                self._out.append(f"</{last}>")
            self._out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self._out.append(escape(data, quote=False))

    def finish(self) -> str:
        while self._stack:
            self._out.append(f"</{self._stack.pop()}>")
        return "".join(self._out)

    def _close_implied(self, tag: str) -> None:
        """``<td>`` after an open ``<td>`` closes it, as browsers do; tables never nest by accident that way."""
        closes = INLINE_PARENTS.get(tag, set())
        while self._stack and self._stack[-1] in closes:
            self._out.append(f"</{self._stack.pop()}>")


def _attribute(tag: str, name: str, value: str | None) -> str:
    value = value or ""
    if name in NUMBERS and value.isascii() and value.isdigit():
        return f' {name}="{min(int(value[:6]), 1000)}"'
    if tag in MATH_TAGS and name in MATH_ATTRIBUTES:
        return f' {name}="{escape(value, quote=True)}"'
    return ""
