"""All real documents at hand: no crash, no hang, every page exactly one row."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from jocr.parsing.cli import run as command
from jocr.records import REASONS, STATUSES

from .fakes import rows_of


@pytest.mark.slow
def test_every_page_of_every_document_has_one_row(shared_data, tmp_path):
    documents = shared_data / "documents"
    given = {"sources": [str(documents)], "out": str(tmp_path / "out"), "model.name": "fake", "render.workers": 2}
    assert command(None, [], given) == 0
    rows = rows_of(tmp_path / "out")
    run = json.loads((tmp_path / "out" / "run.json").read_text())

    places = Counter((row.uri, row.page) for row in rows)
    assert set(places.values()) == {1}
    pages = defaultdict(list)
    for row in rows:
        pages[str(Path(row.uri).relative_to(documents))].append(row)
        assert row.status in STATUSES
        assert (row.reason is None) == (row.status == "ok")
        assert row.reason is None or row.reason in REASONS
        assert row.seconds < 60
    named = set(pages) | {str(Path(item["uri"]).relative_to(documents)) for item in run["skipped"]}
    there = {str(path.relative_to(documents)) for path in documents.rglob("*") if path.is_file()}
    assert named == there

    for line in (documents / "manifest.jsonl").read_text().splitlines():
        entry = json.loads(line)
        found = pages.get(entry["file"], [])
        if entry["pages"] and found and found[0].width is not None:
            assert len(found) == entry["pages"], entry["file"]
            assert [row.page for row in found] == list(range(1, len(found) + 1))
    assert all((tmp_path / "out" / name).is_file() for name in run["files"])
