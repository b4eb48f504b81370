"""The parse job gives, page for page, the rows of the in-process runner."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from jobs._main import main, user_error
from jobs.parse import run
from jocr.config import ParseRecipe, build
from jocr.decoding.fake import FakeDecoder
from jocr.errors import ConfigError, EngineError
from jocr.parsing.command import parse
from jocr.parsing.plan import PageSelection, make_plan
from jocr.parsing.table import read_rows
from pipelines.parse import Receipt, stages
from pipelines.stages import run_local

REPO = Path(__file__).resolve().parents[2]
EXAMPLES = REPO / "jocr" / "data" / "examples"
TIMES = {"seconds", "render_seconds", "decode_seconds"}


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    """The examples, a copy of one of them, a broken file and one that is no document."""
    folder = tmp_path_factory.mktemp("sources")
    for path in EXAMPLES.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "sub").mkdir()
    (folder / "sub" / "copy of harbour.png").write_bytes((EXAMPLES / "harbour.png").read_bytes())
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing follows")
    (folder / "notes.txt").write_text("no document")
    return folder


def recipe_for(sources, out, **more):
    settings = {"sources": [str(sources)], "out": str(out), "model": {"name": "fake", "depth": "2"}, **more}
    return build(ParseRecipe, settings)


def timeless(out):
    rows = (row.row() for row in read_rows(out / "pages.parquet"))
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def markdown(out):
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.md")}


def test_the_stages_in_this_process_give_receipts_for_every_page(sources, tmp_path):
    recipe = recipe_for(sources, tmp_path / "out")
    plan = make_plan(recipe.sources)
    line = stages(recipe, PageSelection.parse(None), tmp_path / "work", FakeDecoder)
    receipts = list(run_local(plan.documents, line))
    assert all(isinstance(receipt, Receipt) for receipt in receipts)
    assert sum(receipt.rows for receipt in receipts) == 8
    assert sum(receipt.failed for receipt in receipts) == 1
    assert {path.name for path in (tmp_path / "work" / ".parts").iterdir()} == {r.part for r in receipts}


def files(out):
    return json.loads((out / "run.json").read_text())["files"]


@pytest.mark.ray
@pytest.mark.parametrize("shape", [{}, {"unit": 2, "decoders": 2, "decoder_cpus": 0.5}])
def test_ray_rows_are_the_rows_of_this_process(ray_cluster, sources, tmp_path, shape):
    here = parse(recipe_for(sources, tmp_path / "here"))
    there = run(recipe_for(sources, tmp_path / "there", ray=shape), partial(FakeDecoder, batch=3))
    assert timeless(tmp_path / "here") == timeless(tmp_path / "there")
    assert markdown(tmp_path / "here") == markdown(tmp_path / "there")
    assert here.run["counts"] == there.run["counts"]
    assert here.run["documents"] == there.run["documents"]
    assert files(tmp_path / "here") == files(tmp_path / "there")


@pytest.mark.ray
def test_ray_with_selected_pages_and_a_second_run(ray_cluster, sources, tmp_path):
    run(recipe_for(sources, tmp_path / "out"))
    run(recipe_for(sources, tmp_path / "out", pages="2"))
    rows = timeless(tmp_path / "out")
    assert [(Path(row["uri"]).name, row["page"], row["status"]) for row in rows] == [
        ("annual-report.pdf", 2, "ok"),
        ("broken.pdf", 1, "failed"),
        ("reading-room.tif", 2, "ok"),
    ]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.ray
def test_an_engine_that_dies_is_an_error_a_person_understands(ray_cluster, sources, tmp_path):
    with pytest.raises(Exception, match="died") as caught:
        run(recipe_for(sources, tmp_path / "out"), partial(FakeDecoder, script={1: "die"}))
    assert isinstance(user_error(caught.value), EngineError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.ray
def test_ray_rows_with_the_embedded_model(ray_cluster, tmp_path):
    model = {"name": "nano", "depth": "2", "batch": 4}
    parse(recipe_for(EXAMPLES, tmp_path / "here", model=model))
    run(recipe_for(EXAMPLES, tmp_path / "there", model=model))
    assert timeless(tmp_path / "here") == timeless(tmp_path / "there")


def test_the_job_refuses_bad_settings_before_starting_ray(capsys, tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main(ParseRecipe, run, "doc", ["--set", "modle.name=x"])
    assert stopped.value.code == 2
    assert "did you mean" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="--out"):
        run(build(ParseRecipe, {"sources": [str(EXAMPLES)]}))


def test_a_job_runs_its_recipe(tmp_path):
    seen = []
    path = tmp_path / "r.toml"
    path.write_text('out = "a"\n')
    with pytest.raises(SystemExit) as stopped:
        main(ParseRecipe, lambda recipe: seen.append(recipe) or 3, "doc", [str(path), "--set", "pages=2"])
    assert stopped.value.code == 3
    assert (seen[0].out, seen[0].pages) == ("a", "2")
