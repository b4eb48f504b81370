"""The command on real files, with real renderer processes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from jocr.parsing.cli import run as command

from .fakes import rows_of

EXAMPLES = Path(__file__).resolve().parents[2] / "jocr" / "data" / "examples"


def test_bundled_examples(tmp_path):
    given = {"sources": [str(EXAMPLES)], "out": str(tmp_path / "out"), "model.name": "fake"}
    assert command(None, [], given) == 0
    rows = rows_of(tmp_path / "out")
    assert [r.status for r in rows] == ["ok"] * 6
    assert {r.uri.rsplit("/", 1)[-1] for r in rows} == {
        "annual-report.pdf",
        "cargo.png",
        "harbour.png",
        "reading-room.tif",
    }
    assert (tmp_path / "out" / "report.html").read_text().count('src="data:image/jpeg;base64,') == 6


def test_undecodable_file_names(tmp_path):
    folder = os.fsencode(tmp_path) + b"/in"
    os.mkdir(folder)
    for name in (b"latin-\xe9.png", b"Vol 1 (2) #3 %41.png", "e\u0301.png".encode(), "é.png".encode()):
        shutil.copy(EXAMPLES / "harbour.png", os.fsdecode(folder + b"/" + name))
    out = tmp_path / os.fsdecode(b"out \xe9")
    given = {"sources": [str(tmp_path / "in")], "out": str(out), "model.name": "fake"}
    assert command(None, [], given) == 0
    assert len(rows_of(out)) == 4
    assert os.path.exists(os.fsencode(tmp_path) + b"/out \xe9/latin-\xe9.png.md")
