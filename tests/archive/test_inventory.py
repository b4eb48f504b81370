"""What is opened, with which password, and what an earlier inventory spares."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from jocr import storage
from jocr.archive.inventory import Document, from_table, password_for, to_table
from jocr.archive.listing import File, list_sources
from jocr.archive.opening import open_file
from jocr.config import ParseRecipe
from jocr.errors import StorageError
from jocr.parsing.plan import PageSelection
from jocr.records import DocRef, PageFailure

from .made import PDF, tarred, zipped

RECIPE = ParseRecipe(out="out")


class FakeRenderer:
    """Opens what begins with ``%PDF`` as two pages; notes what it was asked."""

    def __init__(self, *failures: PageFailure) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.paths: list[str | None] = []
        self.failures = list(failures)

    def open(self, uri, *, password=None, path=None):
        self.asked.append((uri, password))
        self.paths.append(path)
        if self.failures:
            return self.failures.pop(0)
        data = Path(path or uri).read_bytes()
        if not data.startswith(b"%PDF"):
            return PageFailure(uri, hashlib.sha256(data).hexdigest(), None, "open", "corrupt", "damaged")
        return DocRef(uri, hashlib.sha256(data).hexdigest(), len(data), "pdf"), data.count(b"page") or 2


def put(folder: Path, name: str, data: bytes = PDF) -> File:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return next(file for file in list_sources([str(folder)]) if file.name == name)


def opened(file: File, known=(), recipe=RECIPE, renderer=None) -> list[Document]:
    return list(open_file(file, recipe, renderer or FakeRenderer(), list(known)))


def test_a_plain_file_is_one_document(tmp_path):
    file = put(tmp_path, "shelf/a.pdf", b"%PDF page page page")
    (found,) = opened(file)
    digest = hashlib.sha256(b"%PDF page page page").hexdigest()
    assert found == Document(
        file.uri, "", "shelf/a.pdf", "shelf/a.pdf.md", "shelf", file.etag, digest, 19, "pdf", 3, "", ""
    )


@pytest.mark.parametrize(
    ("name", "data", "reason", "skipped"),
    [
        ("a.txt", b"hello", "not_a_document", True),
        ("none", b"", "empty_file", True),
        ("a.docx", zipped([("[Content_Types].xml", b"x")]), "not_a_document", True),
        ("a.pdf", b"broken", "corrupt", False),
        ("a.zip", b"broken", "not_a_document", False),
        ("a.tar.gz", b"", "empty_file", False),
        ("noname", b"%PDF-1.4 page", "", False),
    ],
)
def test_what_is_no_document_is_left_out_and_what_claims_to_be_one_is_counted(tmp_path, name, data, reason, skipped):
    (found,) = opened(put(tmp_path, name, data))
    assert (found.reason, found.skipped) == (reason, skipped)
    assert bool(found.output) != skipped


@pytest.mark.parametrize(("pack", "name"), [(tarred, "box.tar"), (zipped, "box.zip")])
def test_members_are_documents_with_their_whole_inner_path(tmp_path, pack, name):
    entries = [("a/1.pdf", b"%PDF page"), ("b/1.pdf", b"%PDF page page"), ("read.me", b"hi"), ("c.pdf", b"broken")]
    file = put(tmp_path, f"shelf/{name}", pack(entries))
    found = opened(file)
    assert [(d.member, d.name, d.output, d.pages, d.reason) for d in found] == [
        ("a/1.pdf", f"shelf/{name}/a/1.pdf", f"shelf/{name}/a/1.pdf.md", 1, ""),
        ("b/1.pdf", f"shelf/{name}/b/1.pdf", f"shelf/{name}/b/1.pdf.md", 2, ""),
        ("read.me", "", "", 0, "not_a_document"),
        ("c.pdf", f"shelf/{name}/c.pdf", f"shelf/{name}/c.pdf.md", 0, "corrupt"),
    ]
    assert {d.uri for d in found} == {file.uri}
    assert [d.skipped for d in found] == [False, False, True, False]
    assert found[0].sha256 == hashlib.sha256(b"%PDF page").hexdigest()


def test_members_of_one_name_are_told_apart(tmp_path):
    found = opened(put(tmp_path, "box.tar", tarred([("1.pdf", PDF), ("1.pdf", PDF), ("1.pdf#2", PDF)])))
    table = to_table(found, PageSelection.parse(None))
    keys = [key for keys in table["keys"].to_pylist() for key in keys]
    names = [d.name for d in found if not d.skipped]
    assert len(set(names)) == len(names) >= 2
    assert len(set(keys)) == len(keys) == 2 * len(names)


def test_members_that_a_disk_cannot_tell_apart_get_outputs_of_their_own(tmp_path):
    file = put(tmp_path, "box.zip", zipped([("a/1.pdf", PDF), ("a//1.pdf", PDF)]))
    found = opened(file)
    assert [d.output for d in found] == ["box.zip/a/1.pdf.md", "box.zip/a/1.pdf#2.md"]
    assert opened(file, found) == found


def test_a_damaged_container_is_one_failed_document(tmp_path):
    whole = zipped([("a.pdf", PDF * 50)])
    found = opened(put(tmp_path, "box.zip", whole[: len(whole) // 2]))
    assert [d for d in found if d.reason and not d.skipped]
    assert all(d.output for d in found if not d.skipped)


def test_what_is_unchanged_is_taken_over_under_its_new_name(tmp_path):
    file = put(tmp_path, "shelf/a.pdf")
    known = opened(file)
    renderer = FakeRenderer()
    moved = replace(file, name="a.pdf", collection="")
    (found,) = opened(moved, [replace(d, name="", output="", collection="") for d in known], renderer=renderer)
    assert renderer.asked == []
    assert (found.name, found.output, found.collection, found.sha256) == ("a.pdf", "a.pdf.md", "", known[0].sha256)


def test_a_container_that_is_unchanged_is_not_read_again(tmp_path):
    file = put(tmp_path, "box.zip", zipped([("a.pdf", PDF), ("read.me", b"hi")]))
    known = opened(file)
    os.unlink(file.uri)
    assert opened(file, known) == known


@pytest.mark.parametrize("change", [{"etag": "new"}, {"uri": "/other"}, {"reason": "corrupt"}])
def test_what_changed_or_failed_is_opened_again(tmp_path, change):
    file = put(tmp_path, "a.pdf")
    known = [replace(opened(file)[0], **change)]
    renderer = FakeRenderer()
    (found,) = opened(file, known, renderer=renderer)
    assert renderer.asked == [(file.uri, None)]
    assert found.etag == file.etag


def test_a_list_gives_no_version_so_it_is_asked_for(tmp_path):
    file = put(tmp_path, "a.pdf")
    assert opened(replace(file, etag=""))[0].etag == file.etag
    (gone,) = opened(replace(file, etag="", uri=str(tmp_path / "gone"), name="gone"))
    assert (gone.reason, gone.detail, gone.skipped) == ("unreadable_file", "it is not there", False)


def test_a_failure_that_may_pass_gets_one_more_try(tmp_path):
    file = put(tmp_path, "a.pdf")
    stalled = PageFailure(file.uri, None, None, "open", "render_timeout", "stopped", True)
    assert opened(file, renderer=FakeRenderer(stalled))[0].pages == 2
    assert opened(file, renderer=FakeRenderer(stalled, stalled))[0].reason == "render_timeout"


def test_a_remote_file_is_opened_from_a_copy_with_the_version_it_is_of(monkeypatch):
    def download(uri, path, limit=None):
        Path(path).write_bytes(b"%PDF page")
        return storage.Entry(uri, 9, "v2")

    monkeypatch.setattr(storage, "download", download)
    renderer = FakeRenderer()
    (found,) = opened(File("s3://b/a.pdf", "a.pdf", "", "v1", 9, ""), renderer=renderer)
    assert (found.etag, found.pages, found.uri) == ("v2", 1, "s3://b/a.pdf")
    assert renderer.asked == [("s3://b/a.pdf", None)]
    assert renderer.paths[0] is not None
    assert not os.path.exists(renderer.paths[0])


@pytest.mark.parametrize("error", [StorageError("cannot read: AccessDenied"), FileNotFoundError("x")])
def test_a_remote_file_that_cannot_be_read_is_a_failed_document(monkeypatch, error):
    def download(uri, path, limit=None):
        raise error

    monkeypatch.setattr(storage, "download", download)
    (found,) = opened(File("s3://b/a.pdf", "a.pdf", "", "v1", 9, ""))
    assert (found.reason, found.skipped, found.pages) == ("unreadable_file", False, 0)


def test_passwords_go_by_uri_then_name_then_to_everyone():
    own = {"/in/a[1].pdf": "exact", "*/maps/*": "maps", "box.zip/*": "box", "*.pdf": "any"}
    recipe = ParseRecipe.model_validate({"render": {"password": "all", "passwords": own}})
    assert password_for(recipe, "/in/a[1].pdf", "a[1].pdf") == "exact"
    assert password_for(recipe, "s3://b/maps/x.pdf", "x.pdf") == "maps"
    assert password_for(recipe, "s3://b/box.zip", "box.zip/x.pdf") == "box"
    assert password_for(recipe, "/in/x.pdf", "x.pdf") == "any"
    assert password_for(recipe, "/in/X.PDF", "X.PDF") == "all"
    assert password_for(ParseRecipe(), "/in/x.pdf", "x.pdf") is None


def test_the_password_reaches_the_renderer_and_nothing_else(tmp_path):
    recipe = ParseRecipe.model_validate({"render": {"passwords": {"box.zip/b.pdf": "hunter2"}}})
    renderer = FakeRenderer()
    found = opened(put(tmp_path, "box.zip", zipped([("a.pdf", PDF), ("b.pdf", PDF)])), (), recipe, renderer)
    assert [password for _, password in renderer.asked] == [None, "hunter2"]
    assert "hunter2" not in str(to_table(found, PageSelection.parse(None)).to_pydict())


def test_documents_survive_their_table(tmp_path):
    found = [*opened(put(tmp_path, "a.pdf")), *opened(put(tmp_path, "x.txt", b"x"))]
    assert from_table(to_table(found, PageSelection.parse(None))) == found
    assert to_table([], PageSelection.parse(None)).num_rows == 0
