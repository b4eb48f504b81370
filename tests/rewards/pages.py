"""Pages for the reward tests: an honest transcription, and a strategy for pages of every kind of block."""

from __future__ import annotations

from hypothesis import strategies as st

from jocr.records import Sample

FORMULA = r"$$\frac{a_1 + b^2}{\sqrt{x}} = \Delta$$"
TABLE = (
    '<table><tr><th colspan="2">Yield</th><th>Loss</th></tr>'
    "<tr><td>north</td><td>12.5</td><td>-3.25</td></tr>"
    "<tr><td>south</td><td>8.75</td><td>-1.50</td></tr></table>"
)
MARKDOWN = "\n\n".join(
    [
        "# Harvest report of the northern district",
        "The harvest of the year was measured in 14 villages, and the mean of 12.5 tonnes is above that of the past.",
        "Losses were counted by hand: -3.25 in the north, -1.50 in the south, and nobody could say why they differ.",
        FORMULA,
        TABLE,
        "## What follows",
        "- seed is bought before the frost\n- the mill is repaired by the end of May",
        "The inspectors came back in autumn with the same scales and wrote down every field that they had missed.",
    ]
)


def check(kind: str, **fields: object) -> dict[str, object]:
    return {"pdf": "page.pdf", "page": 1, "id": f"{kind}-{abs(hash(str(fields)))}", "type": kind, **fields}


CHECKS = (
    check("present", text="measured in 14 villages"),
    check("present", text="-3.25 in the north"),
    check("absent", text="Page 7 of 90"),
    check("order", before="seed is bought", after="inspectors came back"),
    check("table", cell="12.5", left="north"),
    check("math", math=FORMULA.strip("$")),
)
SAMPLE = Sample("harvest", MARKDOWN, checks=CHECKS)

# what a good but not perfect reader returns: two wrong letters
HONEST = MARKDOWN.replace("villages", "vi1lages").replace("repaired", "repared")

words = st.text(alphabet="abcdefghijklmnopqrstuvwxyzäöü", min_size=2, max_size=9)
sentences = st.lists(words, min_size=4, max_size=14).map(" ".join)


@st.composite
def blocks(draw: st.DrawFn) -> list[str]:
    """Between two and seven blocks; texts of tables and formulas differ from block to block."""
    out = []
    for k in range(draw(st.integers(2, 7))):
        kind = draw(st.sampled_from(["text", "text", "heading", "list", "table", "formula"]))
        if kind == "heading":
            out.append("#" * draw(st.integers(1, 3)) + f" {k} " + draw(words))
        elif kind == "list":
            out.append("\n".join("- " + s for s in draw(st.lists(sentences, min_size=2, max_size=4))))
        elif kind == "table":
            out.append(draw(tables(k)))
        elif kind == "formula":
            out.append(rf"$$\sum_{{i={k}}} \frac{{{draw(st.sampled_from('abc'))}_i}}{{\sqrt{{x + {k}}}}}$$")
        else:
            out.append(f"{k} " + draw(sentences))
    return out


@st.composite
def tables(draw: st.DrawFn, k: int = 0) -> str:
    rows, columns = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    cells = [[f"{k}{r}{c} {draw(words)}" for c in range(columns)] for r in range(rows)]
    return "<table>" + "".join("<tr>" + "".join(f"<td>{c}</td>" for c in r) + "</tr>" for r in cells) + "</table>"
