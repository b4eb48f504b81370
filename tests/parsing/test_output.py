"""A result appears as a whole, replaces only its own files, and no row is lost or doubled."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jocr.decoding.fake import FakeDecoder, fake_text
from jocr.errors import ConfigError, EngineError, StorageError
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
    left = tmp_path / ".out.jocr-work"
    (left / "sub").mkdir(parents=True)
    (left / "pages.parquet").write_text("half")
    (left / "sub" / "b.pdf.md").write_text("half")
    run(FakeLibrary({"a.pdf": ["ink"]}), tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert not (tmp_path / "out" / "sub").exists()


def test_a_killed_run_leaves_nothing_half_written_and_the_next_one_clears_up(tmp_path):
    run(FakeLibrary({"a.pdf": ["ink"]}), tmp_path / "out")
    script = f"""
from pathlib import Path
from jocr.parsing.output import ResultDirectory
with ResultDirectory(Path({str(tmp_path / "out")!r})) as out:
    out.write("a.pdf.md", b"half")
    print(flush=True)
    input()
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        process.stdout.readline()
        with pytest.raises(ConfigError, match="another run is writing"):
            run(FakeLibrary({"b.pdf": ["ink"]}), tmp_path / "out")
        process.kill()
    assert len(list(tmp_path.iterdir())) == 2
    assert [row.uri for row in rows_of(tmp_path / "out")] == ["a.pdf"]
    run(FakeLibrary({"b.pdf": ["ink"]}), tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert [row.uri for row in rows_of(tmp_path / "out")] == ["b.pdf"]


def test_a_run_killed_between_its_two_renames_loses_no_earlier_result(tmp_path):
    run(FakeLibrary({"a.pdf": ["ink"]}), tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / ".out.jocr-work-old")
    with pytest.raises(EngineError):
        run(FakeLibrary({"a.pdf": ["ink"]}), tmp_path / "out", decoder=FakeDecoder(script={0: "die"}))
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert len(rows_of(tmp_path / "out")) == 1


def test_two_runs_never_write_one_result_at_a_time(tmp_path):
    with ResultDirectory(tmp_path / "out") as first:
        with pytest.raises(ConfigError, match="another run is writing"):
            run(FakeLibrary({"a.pdf": ["ink"]}), tmp_path / "out")
        first.write("a.md", b"the first")
        first.publish({})
    assert (tmp_path / "out" / "a.md").read_bytes() == b"the first"
    run(FakeLibrary({"a.pdf": ["ink"]}), tmp_path / "out")


@pytest.mark.parametrize("name", ["pages.parquet", "b.pdf.md", "report.html", "run.json"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, name):
    real = Path.write_bytes

    def full(self, data):
        if self.name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, data)

    def full_table(self, table):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    if name == "pages.parquet":
        monkeypatch.setattr(pq.ParquetWriter, "write_table", full_table)
    with pytest.raises(StorageError, match=r"cannot write .*No space left"):
        run(FakeLibrary({"a.pdf": ["ink"], "b.pdf": ["ink"]}), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


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
