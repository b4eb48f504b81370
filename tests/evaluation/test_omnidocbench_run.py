"""The command: files written, missing predictions by version, CDM by name and only when it works."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from jocr.checks.boxes import find_browser
from jocr.errors import ConfigError, EngineError, UnscoredError
from jocr.evaluation.omnidocbench import run, score
from jocr.evaluation.omnidocbench.cdm import Token
from jocr.evaluation.omnidocbench.cdm import score as cdm_score
from jocr.evaluation.omnidocbench.cdm_backends import KatexBoxes, open_backend
from jocr.evaluation.omnidocbench.results import Cdm, latin_surrogates

TEXT = "The harvest of the year was measured in fourteen villages of the north"


@pytest.fixture
def bench(tmp_path: Path) -> tuple[Path, Path]:
    pages = []
    for k in range(3):
        dets = [{"category_type": "text_block", "ignore": False, "order": 1, "anno_id": 0, "text": f"{TEXT} {k}"}]
        if k == 0:
            latex = {
                "category_type": "equation_isolated",
                "ignore": False,
                "order": 2,
                "anno_id": 1,
                "latex": "$$a^2$$",
            }
            html = {
                "category_type": "table",
                "ignore": False,
                "order": 3,
                "anno_id": 2,
                "html": "<table><tr><td>1</td></tr></table>",
            }
            dets += [latex, html]
        pages.append({"layout_dets": dets, "page_info": {"image_path": f"p{k}.jpg"}, "extra": {"relation": []}})
    data, pred = tmp_path / "annotations.json", tmp_path / "pred"
    data.write_text(json.dumps(pages))
    pred.mkdir()
    (pred / "p0.md").write_text(f"{TEXT} 0\n\n$$a^2$$\n\n<table><tr><td>2</td></tr></table>")
    (pred / "p1.md").write_text(TEXT[:30])
    return data, pred


def test_a_missing_page_is_skipped_by_15_and_empty_in_16(bench: tuple[Path, Path]) -> None:
    old, _, _ = score(*bench, version="1.5", cdm="none")
    new, _, _ = score(*bench, version="1.6", cdm="none")
    assert (old.missing, old.pages) == (("p2.jpg",), 2)
    assert (new.missing, new.pages) == (("p2.jpg",), 3)
    assert new.raw.per_page["p2.jpg"]["text_edit"] == 1
    assert "p2.jpg" not in old.raw.per_page
    assert any("left out" in n for n in old.notes)


def test_the_command_writes_json_markdown_and_html(
    bench: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = {"json_out": tmp_path / "r.json", "html": tmp_path / "r.html", "markdown_out": tmp_path / "r.md"}
    assert run(*bench, version="1.6", cdm="none", **out) == 0
    shown = capsys.readouterr().out
    assert "jina-ocr-v1" in shown
    assert "CDM is unscored: switched off" in shown
    record = json.loads(out["json_out"].read_text())
    assert record["raw"]["metrics"]["text_edit"]["page"] == pytest.approx(record["cut"]["metrics"]["text_edit"]["page"])
    assert record["raw"]["overall_page"] is None  # no CDM, no overall
    assert record["provenance"]["recipe"]["version"] == "1.6"
    html = out["html"].read_text()
    assert "p2.jpg" in html
    assert html.index("p2.jpg</b>") < html.index("p0.jpg</b>")  # the worst first
    assert out["markdown_out"].read_text() in shown


def test_tails_are_cut_in_the_second_reading_only(bench: tuple[Path, Path]) -> None:
    data, pred = bench
    body = (pred / "p0.md").read_text()
    (pred / "p0.md").write_text(
        body.replace(TEXT, TEXT + " 0 " + "".join(f"{k} " for k in range(2500)), 1) + "\n\nloop " * 50
    )
    result, _, _ = score(data, pred, version="1.5", cdm="none")
    assert result.cut_pages == ("p0.jpg",)
    assert result.loop_share == 0.5


@pytest.mark.parametrize("content", ["{}", "[]", "[1]", '[{"layout_dets": []}]', "not json"])
def test_bad_annotations_are_named(bench: tuple[Path, Path], content: str) -> None:
    bench[0].write_text(content)
    with pytest.raises(ConfigError, match=r"annotations\.json"):
        score(*bench, cdm="none")


def test_bad_folders_and_versions_are_named(bench: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder"):
        score(bench[0], tmp_path / "nowhere", cdm="none")
    with pytest.raises(ConfigError, match=r"1\.5 or 1\.6"):
        score(*bench, version="2.0", cdm="none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"p0\.md"):
        score(bench[0], tmp_path / "empty", cdm="none")


def _command(tmp_path: Path, body: str) -> str:
    script = tmp_path / "cdm.py"
    script.write_text(f"import json, sys\nq = json.load(sys.stdin)\n{body}\n")
    return f"command:{sys.executable} {script}"


def test_a_real_cdm_is_called_and_gives_the_overall(bench: tuple[Path, Path], tmp_path: Path) -> None:
    command = _command(tmp_path, "print(json.dumps({'F1_score': 1.0 if q['gt'] == q['pred'] else 0.5}))")
    result, _, _ = score(*bench, version="1.5", cdm=command)
    assert result.cdm == "cdm"
    assert result.raw.metrics["cdm"].page == 1
    text, teds = result.raw.metrics["text_edit"].page, result.raw.metrics["teds"].page
    assert text is not None
    assert teds is not None
    assert result.raw.overall_page == pytest.approx(((1 - text) * 100 + teds * 100 + 100) / 3)


def test_a_broken_cdm_is_an_error_and_never_a_zero(bench: tuple[Path, Path], tmp_path: Path) -> None:
    for body, complaint in (("print(0.0)", "not 1"), ("sys.exit(3)", "cannot score"), ("print('?')", "cannot score")):
        with pytest.raises(EngineError, match=complaint):
            score(*bench, cdm=_command(tmp_path, body))
    module = tmp_path / "cdm_metric.py"
    module.write_text("class CDM:\n    def evaluate(self, gt, pred, img_id):\n        return {'F1_score': 0}\n")
    with pytest.raises(EngineError, match="ImageMagick"):
        score(*bench, cdm=str(tmp_path))
    with pytest.raises(ConfigError, match="no CDM module"):
        score(*bench, cdm=str(tmp_path / "missing"))


def test_a_formula_that_cannot_be_scored_is_listed_and_in_no_mean(bench: tuple[Path, Path]) -> None:
    class Backend:
        name = "cdm"

        def score(self, reference: str, prediction: str) -> float:
            raise UnscoredError("TeX died")

    from jocr.evaluation.omnidocbench.annotations import load
    from jocr.evaluation.omnidocbench.pages import score_page
    from jocr.evaluation.omnidocbench.results import summarise

    page = load(bench[0])[0]
    scores = summarise([score_page(page, "$$a^2$$", "1.5")], Cdm(Backend()))
    assert scores.metrics["cdm"].page is None
    assert scores.unscored == ("p0.jpg formula 0: TeX died",)


def _row(text: str, x: float = 0.0, y: float = 0.0) -> list[Token]:
    return [Token(f"[main]{c}", x + 20 * i, y, 18, 24) for i, c in enumerate(text)]


def test_cdm_of_boxes() -> None:
    line = _row("a+b=c")
    assert cdm_score(line, line) == 1
    assert cdm_score(line, _row("a+b=c", x=300, y=40)) == 1  # a shift is no error
    assert cdm_score(line, []) == 0
    assert cdm_score([], []) == 1
    assert cdm_score(line, _row("a+b=d")) == pytest.approx(2 * 4 / 10)
    assert cdm_score(line, _row("a+b=cxx")) == pytest.approx(2 * 5 / 12)
    stray = [*_row("a+b="), Token("[main]c", 80, 400, 18, 24)]
    assert cdm_score(line, stray) < 1  # the right character far from its place


def test_cjk_is_scored_as_letters_of_neither_side() -> None:
    a, b = latin_surrogates("速度=A", "速率=A")
    assert (a[0], a[2:], b[2:]) == (b[0], "=A", "=A")
    assert a[1] != b[1]
    assert a.isascii()


@pytest.mark.slow
def test_katex_boxes_see_what_has_no_glyph() -> None:
    pytest.importorskip("playwright")
    if find_browser() is None:
        pytest.skip("no Chromium")
    backend, _ = open_backend("katex")
    assert isinstance(backend, KatexBoxes)
    assert backend.score(r"\sqrt{x}", "x") < 1
    assert backend.score(r"\overline{AB}", "AB") < 1
    assert backend.score(r"\frac{a}{b}", r"\binom{a}{b}") < 1
    assert backend.score("x", r"\undefinedmacro{") == 0
    with pytest.raises(UnscoredError, match="reference"):
        backend.score(r"\undefinedmacro{", "x")


def test_a_prediction_that_is_no_text_is_named(bench: tuple[Path, Path]) -> None:
    file = next(bench[1].glob("*.md"))
    file.write_bytes(b"caf\xe9 \x00\xff")
    with pytest.raises(ConfigError, match=f"{file.name} as UTF-8"):
        run(*bench)
