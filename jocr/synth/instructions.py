"""What a page is asked for: the default instruction and its variants, all with the same answer."""

from __future__ import annotations

import random

from jocr.model.prompts import DEFAULT_INSTRUCTION as DEFAULT

ENGLISH = (
    "Convert this page to Markdown. Keep the reading order.",
    "Read the page and write down its text as Markdown, with tables as HTML and formulas as LaTeX.",
    "Transcribe everything that is printed on this page into Markdown.",
    "OCR this image to Markdown.",
)
CHINESE = (
    "请将图片中的文档内容转写为 Markdown 格式，保持自然的阅读顺序。",
    "把这一页的全部文字识别出来，表格用 HTML，公式用 LaTeX，其余用 Markdown。",
    "识别图片中的文字，按阅读顺序输出 Markdown。",
)


def instruction(rng: random.Random, default_share: float = 0.7) -> str:
    """The default instruction with probability ``default_share``, else one of the variants."""
    return DEFAULT if rng.random() < default_share else rng.choice(ENGLISH + CHINESE)
