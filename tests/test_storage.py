"""Local files and S3 objects behind one set of functions."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from PIL import Image

from jocr import storage
from jocr.errors import ConfigError, StorageError


def test_atomic_write_makes_folders_and_replaces_whole_files(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b.txt"
    storage.atomic_write(str(target), b"old")
    storage.atomic_write(str(target), lambda file: file.write(b"new") and None)
    assert storage.read_bytes(str(target)) == b"new"
    assert storage.read_bytes(str(target), 2) == b"ne"
    assert storage.size(str(target)) == 3
    assert os.listdir(target.parent) == ["b.txt"]
    assert target.stat().st_mode & 0o777 == 0o666 & ~storage.local.umask()


def test_a_writer_that_fails_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "b.txt"
    target.write_bytes(b"old")

    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        storage.atomic_write(str(target), fail)
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["b.txt"]


def test_missing_files_and_unwritable_targets(tmp_path: Path) -> None:
    assert not storage.exists(str(tmp_path / "no"))
    with pytest.raises(FileNotFoundError):
        storage.read_bytes(str(tmp_path / "no"))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot write"):
        storage.atomic_write(str(tmp_path / "file" / "below"), b"")
    with pytest.raises(StorageError, match="cannot write"), storage.atomic_directory(tmp_path / "file" / "below"):
        pass


def test_a_folder_appears_complete_or_not_at_all(tmp_path: Path) -> None:
    final = tmp_path / "out"
    with storage.atomic_directory(final) as draft:
        (draft / "sub").mkdir()
        (draft / "sub" / "a").write_bytes(b"1")
        assert not final.exists()
        assert draft.parent == tmp_path
    assert (final / "sub" / "a").read_bytes() == b"1"
    assert os.listdir(tmp_path) == ["out"]
    with pytest.raises(RuntimeError):
        half_done(tmp_path / "other")
    assert os.listdir(tmp_path) == ["out"]


def half_done(folder: Path) -> None:
    with storage.atomic_directory(folder) as draft:
        (draft / "a").write_bytes(b"1")
        raise RuntimeError("stop")


def test_an_existing_folder_is_exchanged_only_when_asked(tmp_path: Path) -> None:
    final = tmp_path / "out"
    final.mkdir()
    with storage.atomic_directory(final) as draft:  # an empty one is no obstacle
        (draft / "old").write_bytes(b"1")
    entered = False
    with pytest.raises(StorageError, match="exists already"), storage.atomic_directory(final):
        entered = True
    assert not entered
    with pytest.raises(RuntimeError), storage.atomic_directory(final, replace=True):
        raise RuntimeError("stop")
    assert os.listdir(final) == ["old"]
    with storage.atomic_directory(final, replace=True) as draft:
        (draft / "new").write_bytes(b"2")
    assert os.listdir(final) == ["new"]
    assert os.listdir(tmp_path) == ["out"]


def test_listing_is_sorted_and_recursive(tmp_path: Path) -> None:
    for name in ("b", "a/2", "a/1", "a.txt"):
        storage.atomic_write(str(tmp_path / name), b"x")
    found = [os.path.relpath(uri, tmp_path) for uri in storage.list_files(str(tmp_path))]
    assert found == ["a/1", "a/2", "a.txt", "b"]
    assert list(storage.list_files(str(tmp_path / "b"))) == [str(tmp_path / "b")]


def test_s3_uris_are_split_without_decoding() -> None:
    assert storage.split_s3("s3://bucket/a b/#%41?.pdf") == ("bucket", "a b/#%41?.pdf")
    assert storage.join("s3://bucket/out/", "x/y") == "s3://bucket/out/x/y"
    assert storage.join("/out", "x") == "/out/x"
    with pytest.raises(StorageError, match="bucket"):
        storage.split_s3("s3:///key")


@pytest.fixture
def bucket(s3: Callable[[], str]) -> str:
    return f"s3://{s3()}"


def test_s3_objects_round_trip_under_awkward_keys(bucket: str) -> None:
    from jocr.pages.sources import Skipped, SourceFile, discover

    keys = ["in/Vol 1 (2) #3 %41+.pdf", "in/ve\u0301lin.pdf", "in/v\u00e9lin.pdf", "in/sub/a.pdf", "in/.hidden/b.pdf"]
    for key in keys:
        storage.atomic_write(f"{bucket}/{key}", b"%PDF-1.4 " + key.encode())
    storage.atomic_write(f"{bucket}/in/void", b"")
    storage.atomic_write(f"{bucket}/inner.pdf", lambda file: file.write(b"%PDF") and None)
    assert storage.read_bytes(f"{bucket}/{keys[0]}") == b"%PDF-1.4 " + keys[0].encode()
    assert storage.read_bytes(f"{bucket}/{keys[0]}", 4) == b"%PDF"
    assert storage.read_bytes(f"{bucket}/in/void", 4) == b""
    assert storage.exists(f"{bucket}/{keys[1]}")
    assert not storage.exists(f"{bucket}/in/none")
    assert storage.size(f"{bucket}/in/void") == 0
    with pytest.raises(FileNotFoundError):
        storage.read_bytes(f"{bucket}/in/none")
    listed = list(storage.list_files(f"{bucket}/in/"))
    assert listed == sorted(f"{bucket}/{key}" for key in [*keys, "in/void"])
    found = list(discover([f"{bucket}/in"]))
    assert {item.name for item in found if isinstance(item, SourceFile)} == {k.removeprefix("in/") for k in keys[:4]}
    assert [item.reason for item in found if isinstance(item, Skipped)] == ["empty_file"]
    assert [item.uri for item in discover([f"{bucket}/in*.pdf"])] == [f"{bucket}/inner.pdf"]
    assert len(list(discover([f"{bucket}/**/*.pdf"]))) == 4  # the hidden one is not among them
    with pytest.raises(ConfigError, match="holds no file"):
        list(discover([f"{bucket}/nothing/"]))
    with pytest.raises(StorageError, match="cannot list"):
        list(storage.list_files("s3://no-such-bucket/x"))


def test_a_document_on_s3_is_rendered(bucket: str) -> None:
    from jocr.pages.render import Renderer
    from jocr.records import PageFailure, PageImage, PageRef

    out = io.BytesIO()
    Image.new("L", (30, 20), 7).save(out, "PNG")
    storage.atomic_write(f"{bucket}/a #1.png", out.getvalue())
    with Renderer() as renderer:
        opened = renderer.open(f"{bucket}/a #1.png")
        assert not isinstance(opened, PageFailure)
        assert isinstance(renderer.render(PageRef(opened[0], 0), long_side=50), PageImage)
        missing = renderer.open(f"{bucket}/none.png")
        assert isinstance(missing, PageFailure)
        assert missing.reason == "unreadable_file"
