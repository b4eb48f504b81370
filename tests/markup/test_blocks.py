from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.markup.blocks import parse_blocks

PAGE = """# Title

First paragraph
goes on.

- one
- two
  more

Section
-------
1) a
2) b

| a | b |
|---|---|
| 1 | 2 |

$$
E = mc^2
$$

![plate](p.png)
```py
# not a heading
```
Text with $$x$$ inside.
<table><tr><td>1</td></tr></table>
## Last ##
"""


def test_kinds_in_order() -> None:
    assert [(b.kind, b.level) for b in parse_blocks(PAGE)] == [
        ("heading", 1),
        ("text", None),
        ("list", 0),
        ("heading", 2),
        ("list", 0),
        ("table", None),
        ("formula", None),
        ("image", None),
        ("code", None),
        ("text", None),
        ("table", None),
        ("heading", 2),
    ]
    content = [b.content for b in parse_blocks(PAGE)]
    assert content[0] == "Title"
    assert content[3] == "Section"
    assert content[-1] == "Last"
    assert content[1] == "First paragraph\ngoes on."


MARKS = [*" \t\n#-*|`$~=<>1.[]()!_", "\n\n", "# ", "- ", "1. ", "```\n", "$$", "<table>", "<td>", "</table>", "|a|b|\n", "|-|-|\n", "![", "\\[", "word", "\r\n", "\x0b", "\u2028"]  # fmt: skip # noqa: E501


@given(st.lists(st.sampled_from(MARKS), max_size=40).map("".join))
@settings(max_examples=150, deadline=None)
def test_blocks_cover_the_page(page: str) -> None:
    blocks = parse_blocks(page)
    assert "".join(b.text for b in blocks) == page
    assert [b.start for b in blocks[1:]] == [b.end for b in blocks[:-1]]
    assert all(page[b.start : b.end] == b.text for b in blocks)


def test_empty_and_blank() -> None:
    assert parse_blocks("") == []
    assert [(b.kind, b.content) for b in parse_blocks(" \n\n")] == [("text", "")]
