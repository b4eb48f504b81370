import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.errors import MarkupError, UnscoredError
from jocr.evaluation.apted_teds import teds_by_apted
from jocr.markup.trees import teds

cell = st.tuples(
    st.sampled_from(["", ' colspan="2"', ' rowspan="3"', ' colspan="2" rowspan="2"']),
    st.lists(
        st.sampled_from(["a", "b", "12", "é", "漢字", "<b>a</b>", "<sup>2</sup>", "x<br>y", "\U000f0000"]), max_size=4
    ),
)
tables = st.lists(st.lists(cell, max_size=4), min_size=1, max_size=4).map(
    lambda rows: (
        "<table>"
        + "".join("<tr>" + "".join(f"<td{s}>{''.join(t)}</td>" for s, t in row) + "</tr>" for row in rows)
        + "</table>"
    )
)


@given(tables, tables, st.booleans())
@settings(max_examples=40, deadline=None)
def test_equals_apted(a: str, b: str, structure_only: bool) -> None:
    theirs = max(0.0, teds_by_apted(a, b, structure_only))  # a reordering can cost more nodes than either tree has
    assert teds(a, b, structure_only=structure_only) == pytest.approx(theirs, abs=1e-9)


@given(tables, tables)
@settings(max_examples=25, deadline=None)
def test_identity_bounds_and_symmetry(a: str, b: str) -> None:
    assert teds(a, a) == 1.0
    assert 0.0 <= teds(a, b) <= 1.0
    assert teds(a, b) == pytest.approx(teds(b, a))


def test_golden_vectors(shared_data: Path) -> None:
    lines = (shared_data / "documents/golden/omnidocbench_v15_vectors.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["fn"] in ("teds", "teds_s")]
    assert len(rows) == 18
    for row in rows:
        got = teds(*row["input"], structure_only=row["fn"] == "teds_s")
        assert got == pytest.approx(row["expected"], abs=1e-6), row


def test_headers_and_wrappers_do_not_count() -> None:
    plain = "<table><tr><td>a</td></tr><tr><td>b</td></tr></table>"
    assert teds("<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td></tr></tbody></table>", plain) == 1.0


def test_no_table_scores_zero_but_a_reference_without_one_is_an_error() -> None:
    assert teds("no table", "<table><tr><td>a</td></tr></table>") == 0.0
    with pytest.raises(MarkupError):
        teds("<table></table>", "no table")
    assert teds("<table></table>", "<table></table>") == 1.0


def test_caps_give_unscored_never_a_number() -> None:
    big = "<table>" + "<tr>" + "<td>x</td>" * 50 + "</tr>" * 1 + "</table>"
    with pytest.raises(UnscoredError):
        teds(big, big, max_nodes=20)
    rows = "<table>" + ("<tr>" + "<td>x</td>" * 20 + "</tr>") * 30 + "</table>"
    with pytest.raises(UnscoredError):
        teds(rows, rows, timeout_s=0.0)
    long = "<table><tr><td>" + "xy" * 100_000 + "</td></tr></table>"
    with pytest.raises(UnscoredError):
        teds(long, long.replace("xy", "yx"), timeout_s=0.1)


def test_deep_nesting_neither_crashes_nor_hangs() -> None:
    deep = "<table><tr><td>" + "<b>" * 5000 + "x"
    assert teds(deep, "<table><tr><td>x</td></tr></table>", max_nodes=100_000) < 1.0
    nested = "<table><tr><td>" * 2000
    assert 0.0 <= teds(nested, "<table><tr><td>x</td></tr></table>", max_nodes=100_000) <= 1.0


SOUP = [*"<>/=\"' \x00\ud800trd&#;1", "<table>", "<td", "<tr>", "</td>", "<!--", "<?x", "<table><tr><td>"]


@given(st.lists(st.sampled_from(SOUP)).map("".join))
@settings(max_examples=40, deadline=None)
def test_malformed_html_raises_nothing_else(soup: str) -> None:
    assert 0.0 <= teds(soup, "<table><tr><td>a</td></tr></table>") <= 1.0
    with contextlib.suppress(MarkupError):
        assert 0.0 <= teds("<table><tr><td>a</td></tr></table>", soup) <= 1.0


@pytest.mark.slow
def test_unwritable_cache_folders_still_work() -> None:
    """Where neither the package's nor the user's folder can be written, the temporary folder holds the cache."""
    script = (
        "import numba.core.caching as c\n"
        "c.InTreeCacheLocator.from_function = classmethod(lambda *a: None)\n"
        "c.UserWideCacheLocator.from_function = classmethod(lambda *a: None)\n"
        "from jocr.markup.trees import teds\n"
        "t = '<table><tr><td>a</td></tr></table>'\n"
        "assert teds(t, t) == 1.0\n"
    )
    subprocess.run(
        [sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": os.getcwd()}, timeout=120
    )


def test_pieces_of_work_do_not_change_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    a = (
        "<table>"
        + "".join(f"<tr>{''.join(f'<td>{r * c}</td>' for c in range(6))}</tr>" for r in range(12))
        + "</table>"
    )
    b = a.replace("<td>10</td>", "").replace("2", "<b>7</b>")
    whole = teds(a, b)
    monkeypatch.setattr("jocr.markup.zhang_shasha.STEPS_A_CALL", 500.0)
    assert teds(a, b) == whole == pytest.approx(teds_by_apted(a, b, False), abs=1e-9)
