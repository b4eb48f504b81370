"""The unit tests made for a page: well formed, unique, and true of its own reference."""

from __future__ import annotations

import re

import pytest

from jocr.checks.kinds import parse_check, run_checks
from jocr.synth.checks_for import checks_for
from jocr.synth.page import SynthPage, make_page


def pages(n: int) -> list[SynthPage]:
    return [make_page(seed, kind, 512, 512) for seed in range(n) for kind in ("mixed", "table")]


def test_tests_parse_and_have_distinct_ids() -> None:
    records = [r for i, page in enumerate(pages(10)) for r in checks_for(page, pdf=f"synth/p{i}.pdf", number=2)]
    assert len({r["id"] for r in records}) == len(records)
    assert {r["type"] for r in records} == {"present", "order", "table", "math"}
    assert all(r["pdf"].startswith("synth/p") and r["page"] == 2 for r in records)
    for record in records:
        parse_check(record)


def test_the_reference_passes_its_own_tests() -> None:
    for page in pages(10):
        checks = [parse_check(r) for r in checks_for(page)]
        failed = [(c, v) for c, v in zip(checks, run_checks(checks, page.markdown), strict=True) if not v.passed]
        assert not failed, page.markdown


def test_a_page_without_its_text_fails() -> None:
    for page in pages(6):
        checks = [parse_check(r) for r in checks_for(page)]
        verdicts = run_checks(checks, "Nothing of all this was read.")
        assert not any(v.passed for v in verdicts)


def test_swapped_rows_fail_a_table_test() -> None:
    for seed in range(10):
        page = make_page(seed, "table", 256, 256)
        checks = [parse_check(r) for r in checks_for(page) if r["type"] == "table" and {"up", "down"} & r.keys()]
        if not checks or "colspan" in page.markdown:
            continue
        rows = re.findall(r"<tr>.*?</tr>", page.markdown)
        broken = page.markdown.replace("".join(rows), "".join([*rows[1:], rows[0]]))
        assert not all(v.passed for v in run_checks(checks, broken))


@pytest.mark.parametrize("seed", range(3))
def test_the_same_page_gets_the_same_tests(seed: int) -> None:
    page = make_page(seed, "mixed", 512, 512)
    assert checks_for(page) == checks_for(page)
