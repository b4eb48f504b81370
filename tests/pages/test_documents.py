"""Every page of the shared documents ends as a person who looked at it says it should.

``expected_documents.tsv``: file, page (from 1; 0: the document does not open), outcome (ok, blank, failed), reason,
password (empty: none given; ``given``: the right one; ``wrong``). A page that is ok here has something to read; with a
decoder that reads it, its row in a result has the same status and reason.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from jocr.pages.render import Renderer
from jocr.pages.sources import SourceFile, discover
from jocr.records import REASONS, PageFailure, PageRef

Row = tuple[str, str, str, str]  # page, outcome, reason, password
TABLE = Path(__file__).with_name("expected_documents.tsv")


def expected() -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    with TABLE.open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            rows.setdefault(row["file"], []).append((row["page"], row["outcome"], row["reason"], row["password"]))
    return rows


def passwords(documents: Path) -> dict[str, str]:
    lines = (documents / "manifest.jsonl").read_text().splitlines()
    return {row["file"]: row["password"] for row in map(json.loads, lines) if row.get("password")}


def outcomes(renderer: Renderer, path: Path, password: str | None, label: str) -> list[Row]:
    opened = renderer.open(str(path), password=password)
    if isinstance(opened, PageFailure):
        assert opened.detail
        return [("0", "failed", opened.reason, label)]
    rows = []
    for index in range(opened[1]):
        page = renderer.render(PageRef(opened[0], index), password=password)
        if isinstance(page, PageFailure):
            rows.append((str(index + 1), "failed", page.reason, label))
        else:
            assert max(page.width, page.height) == 1280 or page.dpi is None
            assert page.evidence
            rows.append((str(index + 1), *(("blank", "blank_page") if page.blank else ("ok", "")), label))
    return rows


def all_outcomes(renderer: Renderer, documents: Path, name: str) -> list[Row]:
    right = passwords(documents).get(name)
    rows = outcomes(renderer, documents / name, None, "")
    if right is not None:
        rows += outcomes(renderer, documents / name, right, "given")
        rows += outcomes(renderer, documents / name, f"not {right}", "wrong")
    return rows


def installed(package: str) -> bool:
    try:
        __import__(package)
    except ImportError:
        return False
    return True


def test_the_table_is_sound() -> None:
    rows = [row for rows in expected().values() for row in rows]
    assert len([row for row in rows if row[3] != "wrong" and (row[3] == "given" or row[2] != "encrypted")]) >= 302
    for page, outcome, reason, password in rows:
        assert outcome in ("ok", "blank", "failed")
        assert (reason == "") == (outcome == "ok")
        assert not reason or reason in REASONS
        assert int(page) > 0 or outcome == "failed"
        assert password in ("", "given", "wrong")


def test_the_table_holds_every_page_that_there_is(shared_data: Path) -> None:
    documents, table = shared_data / "documents", expected()
    for row in map(json.loads, (documents / "manifest.jsonl").read_text().splitlines()):
        if row["file"] not in table or not row["pages"]:
            continue
        label = "given" if row.get("password") else ""
        pages = [page for page, _, _, password in table[row["file"]] if password == label]
        assert pages in (["0"], [str(number + 1) for number in range(len(pages))]), row["file"]
        assert pages == ["0"] or len(pages) == row["pages"], row["file"]


@pytest.mark.parametrize(
    "name",
    [
        "olmocr_bench/pdfs/blank_book_pg1.pdf",
        "olmocr_sample/blanktext.pdf",
        "pdfjs/empty.pdf",
        "rapidocr/empty_black.jpg",
        "rapidocr/white_font_color_transparent.png",
        "pypdf/r6-user-password.pdf",
        "ocrmypdf/hugemono.pdf",
        "pillow/crash-4fb027452e6988530aa5dabee76eecacb3b79f8a.j2k",
        "pillow/g4-multi.tiff",
        "pdfplumber/empty.pdf",
    ],
)
def test_some_documents_end_as_expected(renderer: Renderer, shared_data: Path, name: str) -> None:
    assert all_outcomes(renderer, shared_data / "documents", name) == expected()[name]


@pytest.mark.slow
def test_all_documents_end_as_expected(renderer: Renderer, shared_data: Path) -> None:
    documents, table = shared_data / "documents", expected()
    found = [item.name for item in discover([str(documents)]) if isinstance(item, SourceFile)]
    assert sorted(found) == sorted(table)
    if installed("pillow_heif"):
        table["unstructured/DA-1p.heic"] = [("1", "ok", "", "")]
    wrong = {name: got for name in found if (got := all_outcomes(renderer, documents, name)) != table[name]}
    assert not wrong
