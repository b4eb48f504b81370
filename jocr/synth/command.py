"""Write sample pages for a person, or another program, to look at."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

from jocr.synth.checks_for import checks_for
from jocr.synth.page import make_page


def run(out: Path, *, count: int, kind: str, width: int, height: int, seed: int = 0, split: str = "train") -> int:
    """Write ``count`` pages (PNG beside Markdown) and ``checks.jsonl``, their unit tests, into a folder.

    Seeds count up from ``seed``. Returns the exit code 0.

    Raises:
        ConfigError: unknown kind or split, a page too small, no fonts.
    """
    tests = []
    for number in range(seed, seed + count):
        page = make_page(number, kind, width, height, split=split)
        name = f"{kind}_{split}_{number}"
        out.mkdir(parents=True, exist_ok=True)
        Image.fromarray(page.image).save(out / f"{name}.png")
        (out / f"{name}.md").write_text(page.markdown + "\n", encoding="utf-8")
        tests += checks_for(page, pdf=f"{name}.pdf")
        print(f"{name}  {page.font}, {len(page.glyphs)} glyphs, {len(page.markdown)} characters")
    lines = (json.dumps(test, ensure_ascii=False) + "\n" for test in tests)
    (out / "checks.jsonl").write_text("".join(lines), encoding="utf-8")
    return 0
