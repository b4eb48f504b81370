"""Ways to combine terms, what is logged about them, and the command that explains a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jocr.errors import ConfigError, UnscoredError
from jocr.records import Sample
from jocr.rewards import FLOORS, Reward, Term, combine, floor_hit_rate, score_page, term_means, zero_variance_share
from jocr.rewards.run import run

from .pages import HONEST, MARKDOWN, SAMPLE, TABLE


def term(name: str, value: float, applies: bool = True, **detail: object) -> Term:
    return Term(name, value, applies, detail)


def test_product_floors_every_term_but_repetition() -> None:
    assert combine([term("content", 0.5), term("formula", 0.0)]) == pytest.approx(0.5 * FLOORS["formula"])
    assert combine([term("content", 0.5), term("repetition", 0.0)]) == 0
    assert combine([term("content", 0.5), term("table", 0.0)], floors={"table": 0.4}) == pytest.approx(0.2)
    assert FLOORS["repetition"] == 0


def test_terms_that_do_not_apply_drop_out() -> None:
    for preset in ("product", "sum", "gated"):
        with_it = combine([term("content", 0.8), term("formula", 0.0, applies=False)], preset)
        assert with_it == combine([term("content", 0.8)], preset)


def test_sum_is_a_weighted_mean() -> None:
    terms = [term("content", 1.0), term("unit_tests", 0.0)]
    assert combine(terms, "sum") == 0.5
    assert combine(terms, "sum", weights={"unit_tests": 3.0}) == 0.25


@pytest.mark.parametrize(
    ("content", "teds", "count", "expected"),
    [
        (0.8, 0.9, 1, 0.5 * 0.8 + 0.25 * 0.9 + 0.25 * 0.9),
        (0.995, 1.0, 1, 1.0),  # nearly perfect text counts as perfect
        (0.49, 0.9, 1, 0.0),  # 0.45 in all: below the gate of the total
        (0.8, 0.39, 1, 0.0),
        (0.8, 0.9, 2, 0.0),  # one table too many
    ],
)
def test_gates(content: float, teds: float, count: int, expected: float) -> None:
    pairs = [{"teds": teds, "teds_s": teds}]
    table = term("table", teds, reference=1, prediction=count, teds=teds, teds_s=teds, pairs=pairs)
    assert combine([term("content", content, length_ratio=1.0), table], "gated") == pytest.approx(expected)


def test_gate_of_loops() -> None:
    loop = term("repetition", 0.3, loop={"count": 12})
    assert combine([term("content", 0.9, length_ratio=2.5), loop], "gated") == 0
    assert combine([term("content", 0.9, length_ratio=1.5), loop], "gated") == 0.9


def test_unknown_preset_is_refused() -> None:
    with pytest.raises(ConfigError, match="product, sum, gated"):
        combine([], "median")  # type: ignore[arg-type]


def test_an_unscorable_term_makes_the_page_unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    def teds(*args: object, **kwargs: object) -> float:
        raise UnscoredError("passed 5 s")

    monkeypatch.setattr("jocr.markup.trees.teds", teds)
    reward = score_page(MARKDOWN.replace("12.5</td>", "12.6</td>"), SAMPLE)
    assert (reward.value, reward.unscored_reason) == (None, "table: passed 5 s")
    assert [t.name for t in reward.terms] == ["content", "formula"]


def test_zero_variance_share() -> None:
    groups = [[0.5, 0.5, 0.5], [0.5, 0.6], [None, 0.5], [None, 0.2, 0.2]]
    assert zero_variance_share(groups) == pytest.approx(2 / 3)
    assert zero_variance_share([[None], [0.3]]) is None


def test_floor_hits_and_means() -> None:
    rewards = [
        Reward(0.1, (term("content", 0.05), term("formula", 0.7), term("repetition", 0.0))),
        Reward(0.9, (term("content", 0.9), term("formula", 0.0, applies=False))),
        Reward(None, (), "timed out"),
    ]
    assert floor_hit_rate(rewards) == {"content": 0.5, "formula": 0.0}
    means = term_means(rewards)
    assert means["content"] == pytest.approx(0.475)
    assert means["unscored"] == pytest.approx(1 / 3)
    assert means["reward"] == pytest.approx(0.5)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    pred, ref = tmp_path / "page.md", tmp_path / "page.json"
    pred.write_text(HONEST.replace("-3.25</td>", "3.25</td>"), encoding="utf-8")
    ref.write_text(
        json.dumps({"sample_id": "harvest", "markdown": MARKDOWN, "checks": list(SAMPLE.checks)}), encoding="utf-8"
    )
    return pred, ref


def test_every_term_is_explained(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*files) == 0
    shown = capsys.readouterr().out
    for name in ("content", "formula", "table", "structure", "unit_tests", "repetition", "format"):
        assert name in shown
    assert "measured in 14 villages" in shown or "present" in shown
    assert "reward (product): 0." in shown


def test_json_holds_the_same_number(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*files, as_json=True) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["value"] == score_page(files[0].read_text(), SAMPLE).value
    assert record["presets"]["product"] == record["value"]
    table = next(t for t in record["terms"] if t["name"] == "table")
    assert table["detail"]["teds"] < 1
    assert table["detail"]["teds_s"] == 1


def test_bad_references_are_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    for content, complaint in (
        ("[]", "expected an object"),
        ('{"markdown": "x", "chekcs": []}', "chekcs"),
        ("{", "read"),
    ):
        bad.write_text(content, encoding="utf-8")
        with pytest.raises(ConfigError, match=complaint):
            run(files[0], bad)
    with pytest.raises(ConfigError, match="cannot read the prediction"):
        run(tmp_path / "none.md", files[1])


def test_missing_and_extra_tables_count() -> None:
    two = Sample("two", TABLE + "\n\n" + TABLE.replace("north", "east"))
    terms = {t.name: t for t in score_page(TABLE, two).terms}
    assert terms["table"].value == pytest.approx(0.5)
    one = Sample("one", TABLE)
    terms = {t.name: t for t in score_page(TABLE + "\n\n" + TABLE.replace("north", "east"), one).terms}
    assert terms["table"].value == pytest.approx(0.5)
