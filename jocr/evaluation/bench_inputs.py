"""Made-up pages for ``jocr bench score``: the same on every machine, nothing taken from a benchmark."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jocr.records import Sample

PAGE_CHARS = 5000
_LETTERS = "eeeeeeetttttaaaaooooiiinnnssshhhrrrdddlluuccmmwwffggyyppbvk"
_FORMULAS = (
    r"\int_{{0}}^{{{n}}} e^{{-x^2}}\,dx = \frac{{\sqrt{{\pi}}}}{{{n}}}",
    r"\sum_{{k=1}}^{{{n}}} \binom{{{n}}}{{k}} a^{{k}} b^{{{n}-k}}",
    r"\left( \frac{{\partial f_{{{n}}}}}{{\partial x}} \right)_{{y}} \leq \alpha + \beta_{{{n}}}",
    r"A_{{{n}}} = \begin{{pmatrix}} a & b \\ c & {n} \end{{pmatrix}}",
    r"\hat{{x}}_{{{n}}} \cdot \mathbf{{v}} = \lVert \mathbf{{v}} \rVert \cos \theta_{{{n}}}",
)


def words(rng: random.Random, count: int) -> list[str]:
    return ["".join(rng.choice(_LETTERS) for _ in range(rng.randint(1, 10))) for _ in range(count)]


def prose(rng: random.Random, chars: int) -> str:
    """Sentences in paragraphs, at least ``chars`` characters."""
    parts, size = [], 0
    while size < chars:
        sentence = " ".join(words(rng, rng.randint(6, 16))).capitalize() + "."
        parts.append(sentence + ("\n\n" if rng.random() < 0.2 else " "))
        size += len(parts[-1])
    return "".join(parts).strip()


def table(rng: random.Random, rows: int, cols: int) -> list[list[str]]:
    """Cells of words and amounts."""
    return [
        [" ".join(words(rng, 1 + (c == 0))) if c % 3 == 0 else f"{rng.randint(1, 9999)}.{r:02}" for c in range(cols)]
        for r in range(rows)
    ]


def html(cells: list[list[str]]) -> str:
    return "<table>" + "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in cells) + "</table>"


def misread(rng: random.Random, cells: list[list[str]]) -> list[list[str]]:
    """The table as a model might read it: wrong characters, lost cells."""
    out = [[c[:-1] + rng.choice("0123456789") if rng.random() < 0.1 else c for c in row] for row in cells]
    return [[c for c in row if rng.random() > 0.02] for row in out]


@dataclass(frozen=True, slots=True)
class ScoredPage:
    """Two readings of one page, each with mistakes of its own."""

    prediction: str
    second: str
    sample: Sample


def reward_page(seed: int) -> ScoredPage:
    """A page of about 5,000 characters of prose with a 20 x 8 table, 5 formulas and 6 checks; 1 % misread."""
    rng = random.Random(seed)
    text = prose(rng, PAGE_CHARS)
    cells = table(rng, 20, 8)
    formulas = [f.format(n=rng.randint(2, 99)) for f in _FORMULAS]
    middle = "\n\n".join(f"$${f}$$" for f in formulas)
    reference = f"# Page {seed}\n\n{text}\n\n{html(cells)}\n\n{middle}\n"

    def reading(wrong: str) -> str:
        read = "".join(rng.choice(_LETTERS) if c.isalpha() and rng.random() < 0.01 else c for c in text)
        return f"# Page {seed}\n\n{read}\n\n{html(misread(rng, cells))}\n\n{middle.replace('theta', wrong)}\n"

    prediction, second = reading("phi"), reading("psi")
    checks = text_checks(rng, text, f"page{seed}.pdf", 4)
    more = {"pdf": f"page{seed}.pdf", "page": 1}
    checks.append({**more, "id": f"{seed}_table", "type": "table", "cell": cells[3][1], "left": cells[3][0]})
    checks.append({**more, "id": f"{seed}_math", "type": "math", "math": formulas[0]})
    return ScoredPage(prediction, second, Sample(str(seed), reference, checks=tuple(checks)))


def text_checks(rng: random.Random, text: str, pdf: str, count: int) -> list[dict[str, Any]]:
    """Presence, absence and order checks in turn, in the benchmark's JSON form; most hold, some do not."""
    sentences = [s.strip() for s in text.replace("\n", " ").split(".") if 30 < len(s.strip()) < 160]
    checks: list[dict[str, Any]] = []
    for i in range(count):
        common = {"pdf": pdf, "page": 1, "id": f"{pdf}_{i}", "max_diffs": i % 3}
        at = rng.randrange(len(sentences) - 2)
        if i % 4 == 3:
            checks.append({**common, "type": "absent", "text": " ".join(words(rng, 8))})
        elif i % 4 == 2:
            checks.append({**common, "type": "order", "before": sentences[at], "after": sentences[at + 1]})
        else:
            checks.append({**common, "type": "present", "text": sentences[at]})
    return checks


def write_benchmark(folder: Path, pages: int, checks: int) -> None:
    """``tests.jsonl`` and ``pred/*.md`` in olmOCR-Bench's layout, text checks only."""
    (folder / "pred").mkdir(parents=True)
    lines = []
    for i in range(pages):
        rng = random.Random(1000 + i)
        text = prose(rng, PAGE_CHARS)
        lines += [json.dumps(c) for c in text_checks(rng, text, f"p{i}.pdf", checks)]
        read = "".join(rng.choice(_LETTERS) if c.isalpha() and rng.random() < 0.002 else c for c in text)
        (folder / "pred" / f"p{i}_pg1_repeat1.md").write_text(read, "utf-8")
    (folder / "tests.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def long_text(chars: int) -> str:
    """Prose, tables and leaders without a loop, ``chars`` characters, for the loop detector."""
    rng, parts, size = random.Random(5), [], 0
    while size < chars:
        page = prose(rng, 2500) + "\n\n" + html(table(rng, 8, 6)) + "\n\n"
        page += "".join(f"{' '.join(words(rng, 3))} {'.' * 60} {rng.randint(1, 400)}\n" for _ in range(10))
        parts.append(page)
        size += len(page)
    return "".join(parts)[:chars]
