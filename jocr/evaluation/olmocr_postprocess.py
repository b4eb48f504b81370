"""The small clean-up whose effect is printed beside the raw score: it removes what is not page content, nothing else.

No rule looks at the tests, at page numbers or at headers and footers.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_FRONT_MATTER = re.compile(r"\A\s*---[ \t]*\n(?:[\w -]+:[^\n]*\n)*---[ \t]*(?:\n|\Z)")
_FENCE = re.compile(r"\A\s*```(?:markdown|md)[ \t]*\n(.*?)\n```\s*\Z", re.DOTALL)
_BOX = re.compile(r"<\|det\|>[^<]*(?:<\|/det\|>|\Z)")
_TAG = re.compile(r"<\|/?(?:ref|det|grounding)\|>")
_COMMENT = re.compile(r"<!--(?:(?!<!--).)*?-->", re.DOTALL)
_BREAK = re.compile(r"<br\s*/?\s*>", re.IGNORECASE)

RULES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("YAML front matter at the top is removed", lambda text: _FRONT_MATTER.sub("", text, count=1)),
    ("a Markdown fence around the whole page is removed", lambda text: _FENCE.sub(r"\1", text)),
    ("grounding tags go, their boxes with them; the text they mark stays", lambda t: _TAG.sub("", _BOX.sub("", t))),
    ("HTML comments are removed", lambda text: _COMMENT.sub("", text)),
    ("every spelling of <br> becomes <br>", lambda text: _BREAK.sub("<br>", text)),
)


def postprocess(markdown: str) -> str:
    """``markdown`` after all RULES, in order."""
    for _, rule in RULES:
        markdown = rule(markdown)
    return markdown
