"""References are well formed: rectangular tables, balanced braces, the canonical spelling, blocks in order."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from jocr.synth.page import make_page
from jocr.synth.vocab import STRUCTURE_TOKENS

_TABLE = re.compile(r'<table>(<tr>(<td( colspan="[23]")?>[^<>&]*</td>)+</tr>)+</table>')


def tables(markdown: str) -> list[str]:
    return [block for block in markdown.split("\n\n") if block.startswith("<table>")]


def formulas(markdown: str) -> list[str]:
    return re.findall(r"\$\$(.*?)\$\$", markdown)


def test_tables_are_canonical_and_rectangular() -> None:
    spans = count = 0
    for seed in range(120):
        found = tables(make_page(seed, "table", 256, 256).markdown)
        assert found
        for table in found:
            assert _TABLE.fullmatch(table)
            rows = re.findall(r"<tr>(.*?)</tr>", table)
            widths = {sum(int(s or 1) for s in re.findall(r'<td(?: colspan="(\d)")?>', row)) for row in rows}
            assert len(widths) == 1
            assert 2 <= len(rows) <= 5
            assert 2 <= widths.pop() <= 4
            spans += "colspan" in table
            count += 1
    assert 0 < spans <= 0.1 * count


def test_braces_of_formulas_are_balanced_and_nothing_is_empty() -> None:
    for seed in range(80):
        for latex in formulas(make_page(seed, "formula", 256, 256).markdown):
            depth = 0
            for char in latex:
                depth += {"{": 1, "}": -1}.get(char, 0)
                assert depth >= 0
            assert depth == 0
            assert "{}" not in latex
            assert not latex.startswith((" ", "="))


def test_blanks_in_formulas_stand_only_after_a_control_word() -> None:
    for seed in range(60):
        for latex in formulas(make_page(seed, "formula", 384, 384).markdown):
            assert re.sub(r"\\[A-Za-z]+ (?=[A-Za-z])", "", latex).count(" ") == 0, latex
            assert not re.search(r"\\[a-zA-Z]+[0-9]?[A-Z]{3}", latex)


def test_control_words_are_known() -> None:
    words = {token.rstrip("{_}") for token in STRUCTURE_TOKENS if token.startswith("\\")}
    for seed in range(60):
        for latex in formulas(make_page(seed, "formula", 384, 384).markdown):
            assert set(re.findall(r"\\[A-Za-z]+", latex)) <= words


def test_mixed_pages_hold_every_kind_of_block_and_no_run_on_lines() -> None:
    text = "\n\n".join(make_page(seed, "mixed", 512, 512).markdown for seed in range(40))
    blocks = text.split("\n\n")
    starts = ("# ", "## ", "- ", "1. ", "<table>", "$$")
    assert all(any(block.startswith(start) for block in blocks) for start in starts)
    for block in blocks:
        assert block.strip() == block != ""
        listed = all(re.match(r"- |\d+\. ", line) for line in block.split("\n"))
        assert "\n" not in block or listed


def test_blocks_are_read_from_the_top() -> None:
    """On one-column pages each block's first glyph lies below that of the block before."""
    for seed in range(30):
        page = make_page(seed, "mixed", 320, 512)
        first: list[float] = []
        at = 0
        for block in page.markdown.split("\n\n"):
            inside = (page.glyphs["pos"] >= at) & (page.glyphs["pos"] < at + len(block))
            if inside.any():  # a formula may hold nothing but signs without a place of their own
                first.append(float(page.glyphs["y"][inside].min()))
            at += len(block) + 2
        assert first == sorted(first), page.markdown


def test_structure_tokens_are_unique_and_few() -> None:
    assert len(set(STRUCTURE_TOKENS)) == len(STRUCTURE_TOKENS)
    assert 50 <= len(STRUCTURE_TOKENS) <= 64


@pytest.mark.parametrize("token", ["<table>", "</td>", "\\frac{", "\\sqrt{", "$$", "\n\n", "\\alpha"])
def test_structure_tokens_occur_in_references(token: str) -> None:
    rng = random.Random(5)
    kinds = ("table", "formula", "mixed")
    assert any(token in make_page(rng.randrange(10**6), kinds[i % 3], 320, 320).markdown for i in range(90))


def test_glyph_rows_come_in_reading_order_within_a_paragraph() -> None:
    page = make_page(4, "paragraph", 256, 256)
    assert np.all(np.diff(page.glyphs["pos"]) > 0)
