"""The manifest on disk: rows, groups and names come back as they went in, and equal inputs make an equal manifest."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest

from jocr import storage
from jocr.archive import assemble as assembling
from jocr.archive import manifest
from jocr.archive.assemble import assemble
from jocr.archive.groups import group_ends
from jocr.archive.inventory import Document, from_table, to_table
from jocr.archive.layout import page_key
from jocr.archive.manifest import latest, load, read_groups, read_pages, read_rows
from jocr.archive.reuse import Index, earlier
from jocr.errors import ConfigError, StorageError
from jocr.parsing.plan import PageSelection

ALL = PageSelection.parse(None)


def document(number: int, pages: int = 3, **other: object) -> Document:
    name = f"shelf-{number // 10:03d}/{number:05d}.pdf"
    facts = {"uri": f"/scans/{name}", "member": "", "name": name, "output": f"{name}.md", "collection": name[:9]}
    facts |= {"etag": f"e{number}", "sha256": f"{number:064x}", "size": 100 + number, "kind": "pdf", "pages": pages}
    return Document(**facts | {"reason": "", "detail": ""} | other)


def unopened(number: int, reason: str = "encrypted") -> Document:
    return document(number, 0, sha256="", kind="", reason=reason, detail="it needs a password")


def skipped(uri: str, member: str = "") -> Document:
    return Document(uri, member, "", "", "", "e", "", 0, "", 0, "not_a_document", "its first bytes are b'x'", True)


def made(out, *runs: list[Document], unit: int = 8, selection: str | None = None) -> manifest.ManifestInfo:
    chosen = PageSelection.parse(selection)
    return assemble(lambda: (to_table(run, chosen) for run in runs), str(out), unit=unit, selection=selection)


def every(info: manifest.ManifestInfo) -> list:
    return [page for part in info.parts for page in read_pages(info.part_uri(part), 0, part.rows)]


def test_rows_come_back_in_order_with_keys_groups_and_counts(tmp_path):
    info = made(tmp_path, [document(0, 2), unopened(1), skipped("/scans/x.txt")], [document(2, 1)], unit=2)
    pages = every(info)
    assert [(page.name[-9:-4], page.index, page.pages, page.reason) for page in pages] == [
        ("00000", 0, 2, None),
        ("00000", 1, 2, None),
        ("00001", 0, 0, "encrypted"),
        ("00002", 0, 1, None),
    ]
    assert pages[0].key == page_key("/scans/shelf-000/00000.pdf", "", f"{0:064x}", 0, None)
    assert pages[2].key == page_key("/scans/shelf-000/00001.pdf", "", "e1", 0, "encrypted")
    assert (info.pages, info.documents, info.failed, info.skipped) == (4, 3, 1, 1)
    assert (info.kinds, info.reasons) == ({"pdf": 2, "unknown": 1}, {"encrypted": 1})
    assert info.skipped_reasons == {"not_a_document": 1}
    assert manifest.pq.read_table(info.skipped_uri)["uri"].to_pylist() == ["/scans/x.txt"]
    assert load(str(tmp_path), info.id) == info == latest(str(tmp_path))


@pytest.mark.parametrize("raw", [b"caf\xe9 #1 %41.pdf", "cafe\u0301.pdf".encode(), b"~bytes:\\x.pdf", b"\\\xff"])
def test_names_come_back_exactly(tmp_path, raw):
    name = os.fsdecode(raw)
    odd = document(0, 1, uri=f"/in/{name}", member=f"m/{name}", name=name, output=f"{name}.md", collection=name)
    page = every(made(tmp_path, [odd]))[0]
    assert [os.fsencode(text) for text in (page.uri, page.member, page.name, page.output, page.collection)] == [
        b"/in/" + raw,
        b"m/" + raw,
        raw,
        raw + b".md",
        raw,
    ]
    assert from_table(to_table([odd], ALL)) == [odd]


def test_groups_are_whole_in_parts_and_cover_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(assembling, "PART_ROWS", 300)
    documents = [document(number, 1 + number % 7) for number in range(400)]
    info = made(tmp_path, documents[:13], documents[13:], unit=16)
    groups = list(read_groups(info))
    keys = np.concatenate([keys for *_, keys in groups])
    assert len(info.parts) > 3
    assert all(300 <= part.rows < 316 for part in info.parts[:-1])
    assert [len(keys) for *_, keys in groups] == np.diff(group_ends(keys, 16), prepend=0).tolist()
    assert sum(part.groups for part in info.parts) == info.groups == len(groups)
    pages = every(info)
    assert [page.key for page in pages] == keys.tolist()
    assert [page.group for page in pages] == [n for n, (*_, keys) in enumerate(groups) for _ in keys]
    part, start, stop, some = groups[-1]
    assert [page.key for page in read_pages(part, start, stop)] == some.tolist()


def test_a_slice_reads_only_what_it_touches(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "ROW_GROUP", 64)
    info = made(tmp_path, [document(number, 5) for number in range(60)])
    whole = read_rows(info.part_uri(info.parts[0]), 0, 300)
    for start, stop in [(0, 1), (60, 70), (63, 64), (64, 192), (250, 300)]:
        assert read_rows(info.part_uri(info.parts[0]), start, stop) == whole.slice(start, stop - start)


def test_equal_inputs_make_an_equal_manifest_however_they_are_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(assembling, "PART_ROWS", 50)
    documents = [document(number) for number in range(50)]
    one = made(tmp_path / "a", documents)
    two = made(tmp_path / "b", *([each] for each in documents))
    assert one.id == two.id
    assert one.parts == two.parts
    files = [[storage.read_bytes(info.part_uri(part)) for part in info.parts] for info in (one, two)]
    assert files[0] == files[1]


@pytest.mark.parametrize(
    "other",
    [
        {"documents": [document(0), document(1, etag="new")]},
        {"documents": [document(0), document(1, 4)]},
        {"documents": [document(0)]},
        {"documents": [document(1), document(0)]},
        {"unit": 16},
        {"selection": "1-2"},
    ],
)
def test_what_differs_makes_another_manifest(tmp_path, other):
    first = made(tmp_path, [document(0), document(1)])
    documents = other.pop("documents", [document(0), document(1)])
    assert made(tmp_path, documents, **other).id != first.id


def test_touched_files_keep_their_keys(tmp_path):
    before = made(tmp_path / "a", [document(0), unopened(1)])
    after = made(tmp_path / "b", [document(0, etag="touched"), unopened(1)])
    assert [page.key for page in every(before)] == [page.key for page in every(after)]


def test_chosen_pages_alone_get_rows(tmp_path):
    info = made(tmp_path, [document(0, 5), document(1, 1), unopened(2)], selection="2-3")
    assert [(page.index, page.pages, page.reason) for page in every(info)] == [
        (1, 5, None),
        (2, 5, None),
        (0, 0, "encrypted"),
    ]
    assert info.documents == 2
    with pytest.raises(ConfigError, match="no page to parse"):
        made(tmp_path, [document(0, 5)], selection="9")


def test_the_latest_is_the_one_made_last_also_when_it_was_made_before(tmp_path):
    assert latest(str(tmp_path / "nothing")) is None
    first, second = made(tmp_path, [document(0)]), made(tmp_path, [document(1)])
    assert latest(str(tmp_path)) == second
    again = made(tmp_path, [document(0)])
    assert again.id == first.id
    assert latest(str(tmp_path)) == again


def test_a_manifest_without_its_last_file_does_not_count(tmp_path, monkeypatch):
    def fail(info):
        raise StorageError("full")

    with monkeypatch.context() as patch:
        patch.setattr(assembling, "save", fail)
        with pytest.raises(StorageError):
            made(tmp_path, [document(0)])
    assert latest(str(tmp_path)) is None
    storage.atomic_write(str(tmp_path / "manifest" / "x.json"), b'{"id": 1}')
    with pytest.raises(StorageError, match="no manifest"):
        latest(str(tmp_path))


def test_members_that_would_write_one_output_are_refused(tmp_path):
    member = document(1, member="a.pdf", uri="/scans/box.zip", output="box.zip/a.pdf.md")
    with pytest.raises(ConfigError, match=r"/scans/box\.zip/a\.pdf and /other/a\.pdf would both"):
        made(tmp_path, [member, document(2, uri="/other/a.pdf", output="box.zip/a.pdf.md")])


def test_no_password_has_a_place_in_a_manifest():
    assert not [name for name in manifest.SCHEMA.names if "pass" in name]


def test_earlier_rows_are_found_by_file(tmp_path, monkeypatch):
    monkeypatch.setattr(assembling, "PART_ROWS", 40)
    box = "/scans/box.zip"
    inside = [document(100 + n, 7, uri=box, member=f"{n}.pdf") for n in range(12)]
    documents = [*(document(n, 9) for n in range(9)), *inside, skipped(box, "read.me"), skipped("/scans/t.txt")]
    info = made(tmp_path, documents)
    index, before = Index(info), earlier(info)
    bare = {"name": "", "output": "", "collection": ""}

    def found(uri):
        return before.documents(uri, [at for run in index.rows(uri) for at in run])

    assert found("/scans/shelf-000/00003.pdf") == [document(3, 9, **bare)]
    assert found(box) == [*(document(100 + n, 7, uri=box, member=f"{n}.pdf", **bare) for n in range(12)), documents[21]]
    assert found("/scans/t.txt") == [documents[22]]
    assert found("/scans/none.pdf") == []
    assert Index(None).rows("/scans/t.txt") == []


def test_a_part_is_plain_parquet(tmp_path):
    info = made(tmp_path, [document(0)])
    table = pa.parquet.read_table(info.part_uri(info.parts[0]))
    assert table.schema.names == manifest.SCHEMA.names
    assert table["uri"].to_pylist() == ["/scans/shelf-000/00000.pdf"] * 3
