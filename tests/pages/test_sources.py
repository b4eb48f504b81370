"""What counts as a document, and what it is called."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from jocr.errors import ConfigError
from jocr.pages.sources import Skipped, SourceFile, discover, sniff

PDF = b"%PDF-1.4\n"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def put(folder: Path, name: str, data: bytes = PDF) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def names(*sources: str | Path) -> list[str]:
    return [found.name for found in discover([str(source) for source in sources]) if isinstance(found, SourceFile)]


def skipped(*sources: str | Path) -> dict[str, str]:
    found = discover([str(source) for source in sources])
    return {os.path.basename(item.uri): item.reason for item in found if isinstance(item, Skipped)}


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PDF, "pdf"),
        (b"\0junk\n" * 160 + PDF, "pdf"),
        (b"x" * 1100 + PDF, None),
        (PNG, "png"),
        (b"\xff\xd8\xff\xe0", "jpeg"),
        (b"II*\0", "tiff"),
        (b"MM\0*", "tiff"),
        (b"II+\0\x08\0", "tiff"),
        (b"MM\0+\0\x08", "tiff"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "jp2"),
        (b"\xff\x4f\xff\x51", "jp2"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "webp"),
        (b"RIFF\x10\0\0\0WAVEfmt ", None),
        (b"BM" + bytes(12) + b"\x28\0\0\0", "bmp"),
        (b"BMW is a maker of cars and motorcycles", None),
        (b"GIF87a", "gif"),
        (b"GIF89a", "gif"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "heic"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1heix", "heic"),
        (b"\0\0\0\x18ftypisom\0\0\0\0mp42isom", None),
        (b"<html><body>", None),
        (b"PK\x03\x04", None),
        (b"", None),
        (b"\0", None),
    ],
)
def test_sniff(head: bytes, kind: str | None) -> None:
    assert sniff(head) == kind


def test_a_container_is_not_the_pdf_in_it() -> None:
    for form, mode in (("zip", "x"), ("tar", "w"), ("tar.gz", "w:gz")):
        out = io.BytesIO()
        if form == "zip":
            with zipfile.ZipFile(out, "w") as archive:
                archive.writestr("a.pdf", PDF)
        else:
            with tarfile.open(fileobj=out, mode=mode) as tar:  # type: ignore[call-overload]
                info = tarfile.TarInfo("a.pdf")
                info.size = len(PDF)
                tar.addfile(info, io.BytesIO(PDF))
        assert sniff(out.getvalue()) is None


def test_a_folder_is_walked_sorted_and_recursively_without_hidden_entries(tmp_path: Path) -> None:
    for name in ("b.pdf", "a/z.png", "a/y/x.pdf", "c.pdf", ".hidden.pdf", ".cache/d.pdf", "a/.git/e.pdf"):
        put(tmp_path, name)
    assert names(tmp_path) == ["a/y/x.pdf", "a/z.png", "b.pdf", "c.pdf"]
    assert skipped(tmp_path) == {}


def test_a_hidden_file_or_folder_named_outright_is_taken(tmp_path: Path) -> None:
    path = put(tmp_path, ".hidden/.a.pdf")
    assert names(path) == [".a.pdf"]
    put(tmp_path, ".hidden/b.pdf")
    assert names(tmp_path / ".hidden") == ["b.pdf"]


def test_bytes_decide_and_what_is_no_document_is_listed(tmp_path: Path) -> None:
    put(tmp_path, "scan.txt", PDF)
    put(tmp_path, "noextension", PNG)
    put(tmp_path, "notes.txt", b"some words")
    put(tmp_path, "void", b"")
    assert names(tmp_path) == ["noextension", "scan.txt"]
    assert skipped(tmp_path) == {"notes.txt": "not_a_document", "void": "empty_file"}


def test_a_file_that_claims_to_be_a_document_gets_its_own_failure_later(tmp_path: Path) -> None:
    put(tmp_path, "broken.pdf", b"<html>not found</html>")
    put(tmp_path, "empty.TIF", b"")
    assert names(tmp_path) == ["broken.pdf", "empty.TIF"]


def test_same_stem_and_same_basename_do_not_collide(tmp_path: Path) -> None:
    for name in ("a/1.pdf", "b/1.pdf", "b/1.png"):
        put(tmp_path, name, PNG if name.endswith("png") else PDF)
    assert names(tmp_path) == ["a/1.pdf", "b/1.pdf", "b/1.png"]
    assert names(tmp_path / "a", tmp_path / "b") == ["a/1.pdf", "b/1.pdf", "b/1.png"]
    assert names(tmp_path / "b/1.pdf", tmp_path / "a/1.pdf") == ["b/1.pdf", "a/1.pdf"]
    assert names(tmp_path / "a") == ["1.pdf"]


@pytest.mark.parametrize(
    "name",
    [
        "Vol 1 (2) #3 %41+.pdf",
        "v\u00e9lin.pdf",
        "ve\u0301lin.pdf",
        "\u0995\u09cb.pdf",
        "[1].pdf",
        "a*b?.pdf",
        "x" * 251 + ".pdf",
    ],
)
def test_names_are_kept_byte_for_byte(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, name)
    for source in (tmp_path, path):
        (found,) = discover([str(source)])
        assert isinstance(found, SourceFile)
        assert found.name == name
        assert os.fsencode(found.uri) == os.fsencode(path)


def test_two_unicode_spellings_and_undecodable_bytes_live_side_by_side(tmp_path: Path) -> None:
    raw = os.fsdecode(b"\xff\xfe.pdf")
    for name in ("v\u00e9lin.pdf", "ve\u0301lin.pdf", raw):
        put(tmp_path, name)
    assert set(names(tmp_path)) == {"v\u00e9lin.pdf", "ve\u0301lin.pdf", raw}


def test_globs(tmp_path: Path) -> None:
    for name in ("a/1.pdf", "a/b/2.pdf", "a/3.txt", "c/4.pdf"):
        put(tmp_path, name)
    assert names(tmp_path / "a" / "*.pdf") == ["1.pdf"]
    assert names(tmp_path / "**" / "*.pdf") == ["a/1.pdf", "a/b/2.pdf", "c/4.pdf"]
    assert names(tmp_path / "*") == ["a/1.pdf", "a/3.txt", "a/b/2.pdf", "c/4.pdf"]


def test_the_same_file_appears_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, "a/1.pdf")
    (tmp_path / "a" / "again.pdf").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    assert names(path, tmp_path / "a", "a/1.pdf", tmp_path / "a" / "*.pdf") == ["1.pdf"]


def test_link_loops_and_dangling_links_end(tmp_path: Path) -> None:
    put(tmp_path, "a/1.pdf")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "gone.pdf").symlink_to(tmp_path / "nowhere")
    put(tmp_path, "z.pdf")
    assert names(tmp_path) == ["a/1.pdf", "z.pdf"]
    lost = {"gone.pdf": "unreadable_file", "self": "unreadable_file"}  # not passed over in silence
    assert skipped(tmp_path) == lost
    assert skipped(tmp_path / "*") == lost
    for name in lost:  # asked for by itself, it gets a row that says so
        assert (names(tmp_path / name), skipped(tmp_path / name)) == ([name], {})


def test_what_is_no_regular_file_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "shut/1.pdf")
    put(tmp_path, "2.pdf")
    os.mkfifo(tmp_path / "pipe.pdf")
    (tmp_path / "gone.png").symlink_to("nowhere")
    (tmp_path / "gone").symlink_to("nowhere else")
    real = os.scandir

    def scandir(folder: str) -> object:
        if folder.endswith("shut"):
            raise PermissionError(13, "Permission denied", folder)
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    reasons = {"pipe.pdf": "not_a_document", "shut": "unreadable_file"}
    assert skipped(tmp_path) == reasons | {"gone": "unreadable_file", "gone.png": "unreadable_file"}
    assert names(tmp_path) == ["2.pdf"]


def test_a_container_is_told_from_other_files(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    (tmp_path / "notes.txt").write_text("no document")
    details = {os.path.basename(found.uri): found.detail for found in discover([str(tmp_path)])}
    assert "opened by the archive job, python -m jobs.parse" in details["a.zip"]
    assert details["notes.txt"] == "its first bytes are b'no docum'"


def test_pipes_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pdf")
    put(tmp_path, "a.pdf")
    assert names(tmp_path) == ["a.pdf"]
    assert skipped(tmp_path / "pipe.pdf") == {"pipe.pdf": "not_a_document"}


def test_a_source_that_matches_nothing_says_the_remedy(tmp_path: Path) -> None:
    for source, words in (("nowhere.pdf", "check the path"), ("*.pdf", "matches nothing")):
        with pytest.raises(ConfigError, match=words):
            discover([str(tmp_path / source)])  # at once: before anything is parsed
    with pytest.raises(ConfigError, match="no source"):
        discover([])
    with pytest.raises(ConfigError, match="holds no file"):
        list(discover([str(tmp_path)]))


def test_relative_sources_are_named_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "in/a.pdf")
    monkeypatch.chdir(tmp_path)
    assert names("in") == ["a.pdf"]
    assert names("in/a.pdf") == ["a.pdf"]
    assert names(".") == ["in/a.pdf"]
