"""A result appears as a whole, replaces only its own files, and no row is lost or doubled."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from jocr.decoding.fake import fake_text
from jocr.errors import ConfigError
from jocr.parsing.output import ResultDirectory
from jocr.parsing.plan import make_plan
from jocr.parsing.rendering import Opened
from jocr.parsing.table import SCHEMA
from jocr.parsing.writer import Writer
from jocr.records import DocRef

from .fakes import FakeLibrary, names_of, rows_of, run


def test_lost_and_doubled_rows_are_faults(tmp_path):
    from jocr.documents import Origin, failed
    from jocr.records import PageFailure

    origin = Origin("m", "r", "p", "e")
    doc = DocRef("a.pdf", "00", 1, "pdf")
    row = failed(PageFailure("a.pdf", "00", 0, "render", "corrupt"), origin)
    plan = make_plan(["x"], names_of(FakeLibrary({"a.pdf": ["ink"] * 2})))
    with ResultDirectory(tmp_path / "out") as out:
        writer = Writer(plan, out)
        writer.opened(Opened(0, doc, 2, (0, 1)))
        writer.page(0, row)
        with pytest.raises(ValueError, match="twice"):
            writer.page(0, row)
        with pytest.raises(ValueError, match="not every page"):
            writer.close()


def test_result_files_and_table_schema(tmp_path):
    library = FakeLibrary({"in/a.pdf": ["ink", "corrupt"], "in/b c.png": ["ink"]})
    summary = run(library, tmp_path / "out")
    out = tmp_path / "out"
    assert pq.read_schema(out / "pages.parquet").equals(SCHEMA)
    run_json = json.loads((out / "run.json").read_text())
    found = sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file())
    assert found == sorted(run_json["files"])
    assert found == ["in/a.pdf.md", "in/b c.png.md", "pages.parquet", "report.html", "run.json"]
    assert run_json["recipe"]["model"]["name"] == "fake"
    assert summary.exit_code(None) == 0
    assert summary.exit_code(0.33) == 3
    assert summary.exit_code(0.34) == 0
    text = (out / "in/a.pdf.md").read_text()
    assert text.startswith("<!-- page 1 -->\n\n# ")
    assert "<!-- page 2: failed: the document is damaged beyond opening -->" in text
    single = fake_text(b"/".join((rows_of(out)[2].sha256.encode(), b"0", b"768")))
    assert (out / "in/b c.png.md").read_text() == single + "\n"


def test_a_second_run_replaces_the_first(tmp_path):
    run(FakeLibrary({"a.pdf": ["ink"], "old/b.pdf": ["ink"]}), tmp_path / "out")
    run(FakeLibrary({"a.pdf": ["ink", "ink"]}), tmp_path / "out")
    found = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*"))
    assert found == ["out", "out/a.pdf.md", "out/pages.parquet", "out/report.html", "out/run.json"]
    assert len(rows_of(tmp_path / "out")) == 2


def test_a_second_run_keeps_what_is_not_its_own(tmp_path):
    run(FakeLibrary({"a.pdf": ["ink"], "old/b.pdf": ["ink"]}), tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    run(FakeLibrary({"c.pdf": ["ink"]}), tmp_path / "out")
    found = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*"))
    assert found == ["c.pdf.md", "notes.txt", "pages.parquet", "report.html", "run.json"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_directory_of_someone_else_is_refused_before_any_work(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.docx").write_text("years of work")
    library = FakeLibrary({"a.pdf": ["ink"]})
    with pytest.raises(ConfigError, match="--force"):
        run(library, tmp_path / "out")
    assert not library.renders
    run(library, tmp_path / "out", force=True)
    assert (tmp_path / "out" / "thesis.docx").read_text() == "years of work"
    assert (tmp_path / "out" / "a.pdf.md").exists()


def test_out_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "out").write_text("x")
    with pytest.raises(ConfigError, match="is a file"):
        run(FakeLibrary({"a.pdf": ["ink"]}), tmp_path / "out")


def test_leftovers_of_a_killed_run_are_removed(tmp_path):
    (tmp_path / ".out.jocr-999999999").mkdir()
    (tmp_path / ".out.jocr-999999999" / "pages.parquet").write_text("half")
    run(FakeLibrary({"a.pdf": ["ink"]}), tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_doctored_file_list_cannot_reach_outside(tmp_path):
    (tmp_path / "precious").write_text("x")
    run(FakeLibrary({"a.pdf": ["ink"]}), tmp_path / "out")
    path = tmp_path / "out" / "run.json"
    run_json = json.loads(path.read_text())
    run_json["files"] += ["../precious", str(tmp_path / "precious")]
    path.write_text(json.dumps(run_json))
    (tmp_path / "out" / "mine").write_text("x")
    run(FakeLibrary({"a.pdf": ["ink"]}), tmp_path / "out")
    assert (tmp_path / "precious").exists()
