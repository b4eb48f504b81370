"""From sources to files: what is listed, what it is called, what is refused at once."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jocr import storage
from jocr.archive import listing
from jocr.archive.collect import LONGEST_OUTPUT, collect, output_of
from jocr.archive.listing import File, Listed, list_sources
from jocr.errors import ConfigError, StorageError
from jocr.pages.sources import lost

ODD = [b"Vol 1 (2) #3 %41.pdf", "caf\u00e9.pdf".encode(), "cafe\u0301.pdf".encode(), b"caf\xe9.pdf", b" lead.pdf"]
ODD += ["\u09ac\u09be\u0982\u09b2\u09be.pdf".encode(), b"#hash.pdf", b"a\\b.pdf", b"~bytes:.pdf", b"new\nline.pdf"]


def put(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%PDF-1.4\n")
    return folder


def found(*sources: object, out: str = "", lister=listing.list_remote) -> list[File]:
    return list(list_sources([str(source) for source in sources], out, lister))


def remote(*uris: str):
    """A lister of a bucket with these objects."""

    def lister(source):
        for uri in sorted(uris):
            if uri.startswith(source):
                listed = Listed(uri)
                listed.size, listed.etag = 10, f"v-{len(uri)}"
                yield listed

    return lister


def test_a_folder_is_listed_with_names_versions_and_collections(tmp_path):
    put(tmp_path, "b/2.pdf", "b/c/3.pdf", "1.pdf", ".hidden/x.pdf", "b/.x.pdf")
    files = found(tmp_path)
    assert [(file.name, file.collection) for file in files] == [("1.pdf", ""), ("b/2.pdf", "b"), ("b/c/3.pdf", "b")]
    assert all(file.size == 9 and file.etag == storage.etag(file.uri) for file in files)
    assert files[0].uri == str(tmp_path / "1.pdf")


def test_keys_with_dots_for_parts_are_not_hidden():
    keys = ["s3://b/p/./a.pdf", "s3://b/p/../a.pdf", "s3://b/p/.git/a.pdf", "s3://b/p//a.pdf"]
    files = list(list_sources(["s3://b/p/"], lister=lambda source: iter(keys)))
    assert [file.uri for file in files] == [keys[0], keys[1], keys[3]]
    outputs = [output_of(file.name) for file in files]
    assert len(set(outputs)) == 3
    assert not any(part in ("", ".", "..") for output in outputs for part in output.split("/"))


@pytest.mark.parametrize("raw", ODD)
def test_odd_local_names_come_through_the_listing(tmp_path, raw):
    name = os.fsdecode(raw)
    (tmp_path / "in").mkdir()
    with open(os.path.join(str(tmp_path / "in"), name), "wb") as file:
        file.write(b"%PDF-1.4\n")
    files = list(collect(list_sources([str(tmp_path / "in")]), tmp_path))
    assert [os.fsencode(file.name) for file in files] == [raw]
    assert os.path.exists(files[0].uri)


def test_two_spellings_of_one_name_are_two_documents(tmp_path):
    put(tmp_path / "in", "caf\u00e9.pdf", "cafe\u0301.pdf")
    files = list(collect(list_sources([str(tmp_path / "in")]), tmp_path))
    assert sorted(file.name for file in files) == ["cafe\u0301.pdf", "caf\u00e9.pdf"]
    assert len({output_of(file.name) for file in files}) == 2


OUTPUTS = [*map(os.fsdecode, ODD), "t/\udcff.png", "\udce9/x.pdf", "/".join(["\u6f22" * 60] * 20)]


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_output_is_a_key_that_s3_takes(name):
    output = output_of(name)
    assert len(output.encode("utf-8")) <= LONGEST_OUTPUT + 32
    assert max(len(part.encode("utf-8")) for part in output.split("/")) <= 255
    assert output != output_of(name + "x")


def test_equal_stems_have_outputs_of_their_own(tmp_path):
    put(tmp_path / "in", "summary.pdf", "summary.docx", "a/1.pdf", "b/1.pdf")
    files = collect(list_sources([str(tmp_path / "in")]), tmp_path)
    outputs = [output_of(file.name) for file in files]
    assert outputs == ["a/1.pdf.md", "b/1.pdf.md", "summary.docx.md", "summary.pdf.md"]


def test_a_file_reached_twice_is_listed_once(tmp_path):
    put(tmp_path / "in", "a/1.pdf", "a/2.pdf")
    (tmp_path / "in" / "link.pdf").symlink_to(tmp_path / "in" / "a" / "1.pdf")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    one, all_of_it = tmp_path / "in" / "a" / "1.pdf", tmp_path / "in"
    listed = collect(list_sources([str(one), str(all_of_it), str(tmp_path / "in" / "a" / "*.pdf")]), tmp_path)
    assert [file.name for file in listed] == ["a/1.pdf", "a/2.pdf"]
    assert len(listed) == 2


def test_what_is_no_regular_file_is_left_out_with_its_reason(tmp_path):
    os.mkfifo(tmp_path / "pipe.pdf")
    (tmp_path / "lost.pdf").symlink_to(tmp_path / "nowhere.pdf")
    reasons = {file.name: file.reason for file in found(tmp_path)}
    assert reasons == {"pipe.pdf": "not_a_document", "lost.pdf": "unreadable_file"}


def test_a_link_to_nowhere_that_was_named_is_not_left_out(tmp_path):
    for name in ("gone.pdf", "gone"):
        (tmp_path / name).symlink_to("nowhere")
    (tmp_path / "list.txt").write_text(f"{tmp_path}/gone.pdf\n{tmp_path}/never there\n")
    for source in (str(tmp_path / "gone.pdf"), str(tmp_path / "gone"), f"list:{tmp_path}/list.txt"):
        assert [file.reason for file in list_sources([source])] == [""] * (2 if "list" in source else 1)
    left_out = list(list_sources([str(tmp_path / "gone*")]))
    assert [(file.name, file.reason) for file in left_out] == [(n, "unreadable_file") for n in ("gone", "gone.pdf")]
    assert "a link to 'nowhere', which leads nowhere" in left_out[0].detail


def test_results_among_the_sources_are_no_source(tmp_path):
    put(tmp_path, "a.pdf", "out/pages/x.pdf", "out/parts/x.pdf", "out/mine.pdf", "pages/b.pdf")
    names = [file.name for file in found(tmp_path, out=str(tmp_path / "out"))]
    assert names == ["a.pdf", "out/mine.pdf", "pages/b.pdf"]
    with pytest.raises(ConfigError, match="no file but results"):
        collect(list_sources([str(tmp_path / "out/pages")], str(tmp_path / "out")), tmp_path)


def test_a_prefix_is_listed_without_asking_for_any_object(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("an object was asked for")

    for name in ("read_bytes", "size", "etag", "download"):
        monkeypatch.setattr(storage, name, refuse)
    uris = [
        "s3://b/scans/Vol 1 (2) #3 %41.pdf",
        "s3://b/scans/a/1.tif",
        "s3://b/scans/a/.h/2.tif",
        "s3://b/scansx/3.tif",
    ]
    files = found("s3://b/scans/", lister=remote(*uris))
    assert [file.name for file in files] == ["Vol 1 (2) #3 %41.pdf", "a/1.tif"]
    assert [(file.size, file.etag, file.collection) for file in files] == [(10, "v-33", ""), (10, "v-20", "a")]
    assert [file.uri for file in files] == uris[:2]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("missing.pdf", r"no such file or folder: 'missing\.pdf'.*check the path"),
        ("*.nothing", "matches nothing here"),
        (".", "holds no file; name a"),
        ("list:missing.txt", r"no such list: 'missing\.txt'.*check the path"),
        ("list:uris.csv", r"ends in \.txt or \.parquet; rename"),
        ("list:empty.txt", "names no file; write one URI a line"),
    ],
)
def test_a_source_that_is_not_there_is_refused_before_the_first_file(tmp_path, monkeypatch, source, message):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, ".h/good.pdf")
    (tmp_path / ".h/empty.txt").write_bytes(b"\n\n")
    source = source.replace("list:empty", "list:.h/empty")
    with pytest.raises(ConfigError, match=message):
        next(list_sources([".h/good.pdf", source]))


def test_no_source_at_all_is_refused():
    with pytest.raises(ConfigError, match="name at least one"):
        next(list_sources([]))


def test_a_bucket_that_cannot_be_listed_is_refused_before_the_first_file(tmp_path):
    def lister(source):
        raise StorageError(f"cannot list {source}: AccessDenied")
        yield

    put(tmp_path, "good.pdf")
    with pytest.raises(ConfigError, match=r"s3://secret/x/.*AccessDenied.*check the name, the credentials"):
        next(list_sources([str(tmp_path), "s3://secret/x/"], "", lister))


def test_an_empty_prefix_is_refused_before_the_first_file(tmp_path):
    put(tmp_path, "good.pdf")
    with pytest.raises(ConfigError, match="holds no file; name a file, folder or prefix"):
        next(list_sources([str(tmp_path), "s3://b/none/"], "", remote("s3://b/some/1.pdf")))


def test_keys_that_would_write_one_output_are_refused_with_both_named(tmp_path):
    uris = ["s3://b/x/a//1.pdf", "s3://b/x/a/1.pdf", "s3://b/x/b.pdf"]
    with pytest.raises(ConfigError, match=r"s3://b/x/a//1\.pdf and s3://b/x/a/1\.pdf would both.*two directories"):
        collect(list_sources(["s3://b/x/"], "", remote(*uris)), tmp_path)


def library(count: int, told: list[int]):
    """A lister of so many keys, which notes how many it was asked for."""

    def lister(source):
        for number in range(count):
            uri = Listed(f"s3://library/scans/volume-{number // 500:05d}/page-{number:07d}.tif")
            uri.size, uri.etag = 1000, "0123456789abcdef0123456789abcdef"
            told[0] = number + 1
            yield uri

    return lister


def test_a_listing_is_a_stream(tmp_path):
    asked = [0]
    files = list_sources(["s3://library/scans/"], "", library(1_000_000, asked))
    names = [next(files).name for _ in range(3)]
    assert names == [f"volume-00000/page-{n:07d}.tif" for n in range(3)]
    assert asked[0] == 3


def test_a_long_listing_is_kept_on_disk_and_told_as_it_grows(tmp_path):
    told: list[int] = []
    files = list_sources(["s3://library/scans/"], "", library(12_000, [0]))
    tracemalloc.start()
    listed = collect(files, tmp_path, told.append)
    used, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(listed) == 12_000
    assert used < 60 * 12_000
    assert most < 12_000_000
    assert told == [4096, 8192, 12_000]
    chunks = list(listed.chunks())
    assert [file.uri for chunk in chunks for file in chunk] == list(library(12_000, [0])(""))
    assert set(map(len, chunks)) == {188, 12_000 % 188}


@pytest.mark.slow
def test_a_million_keys_take_flat_memory(tmp_path):
    psutil = pytest.importorskip("psutil")
    process = psutil.Process()
    told: list[float] = []
    collect(list_sources(["s3://library/scans/"], "", library(10_000, [0])), tmp_path)

    def note(listed: int) -> None:
        told.append(process.memory_info().rss / 2**20)

    listed = collect(list_sources(["s3://library/scans/"], "", library(1_000_000, [0])), tmp_path, note)
    assert len(listed) == 1_000_000
    assert len(told) == 245
    assert max(told) - told[0] < 60  # MiB; a Python string of each would take 120
    assert sum(len(chunk) for chunk in listed.chunks()) == 1_000_000


def test_large_files_and_small_listings_make_small_chunks(tmp_path):
    files = [File(f"{n}", f"{n}", "", "e", 200 << 20, "") for n in range(10)]
    assert [len(chunk) for chunk in collect(files, tmp_path).chunks()] == [1] * 10
    files = [File(f"{n}", f"{n}", "", "e", 1, "") for n in range(640)]
    assert {len(chunk) for chunk in collect(files, tmp_path).chunks()} == {11, 2}


def test_a_text_list_takes_each_line_as_it_is(tmp_path):
    names = ["#1.pdf", " 2 .pdf", "Vol 1 (2) #3 %41.pdf", "cafe\u0301.pdf", os.fsdecode(b"\xff.pdf")]
    put(tmp_path / "in", *names)
    uris = [str(tmp_path / "in" / name) for name in [*names, "gone.pdf"]]
    (tmp_path / "list.txt").write_bytes(b"\n".join(map(os.fsencode, [uris[0], "", *uris[1:]])))
    files = found(f"list:{tmp_path}/list.txt")
    assert [file.uri for file in files] == uris
    assert [file.name for file in files] == [*names, "gone.pdf"]
    assert [file.reason for file in files] == [""] * 6  # what is named and not there is a document that fails


def test_a_text_list_with_windows_lines_and_a_byte_order_mark(tmp_path):
    put(tmp_path / "in", "a.pdf", "b/c.pdf")
    lines = "".join(f"{tmp_path}/in/{name}\r\n" for name in ("a.pdf", "b/c.pdf"))
    (tmp_path / "list.txt").write_bytes(b"\xef\xbb\xbf" + lines.encode())
    assert [file.name for file in found(f"list:{tmp_path}/list.txt")] == ["a.pdf", "b/c.pdf"]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("l.txt", "a.pdf\n".encode("utf-16"), "zero bytes.*save it as UTF-8"),
        ("l.txt", b"s3://bucket\n", "no object"),
        ("l.txt", b"s3://b/a.pdf\nhttps://x.org/y.pdf\n", r"'https://x\.org/y\.pdf'; only local paths and s3"),
        ("l.parquet", pa.table({"uri": [1, 2]}), "column uri holds int64; make it text"),
        ("l.parquet", pa.table({"uri": ["a"], "collection": [[1]]}), "column collection holds list"),
    ],
)
def test_a_list_that_can_name_no_file_is_told_before_any_is_opened(tmp_path, name, data, words):
    if isinstance(data, bytes):
        (tmp_path / name).write_bytes(data)
    else:
        pq.write_table(data, tmp_path / name)
    with pytest.raises(ConfigError, match=words):
        next(list_sources([f"list:{tmp_path}/{name}"]))


def test_white_space_at_the_end_of_a_lists_line_is_told(tmp_path):
    put(tmp_path, "a.pdf", "b/c.pdf")
    (tmp_path / "list.txt").write_bytes(os.fsencode(f"{tmp_path}/a.pdf \n{tmp_path}/b/c.pdf\r\n{tmp_path}/b\n"))
    *files, folder = found(f"list:{tmp_path}/list.txt")
    assert [lost(file.uri) for file in files] == ["it is not there; without the white space at its ends it is"] * 2
    assert (folder.reason, folder.detail) == (
        "not_a_document",
        "it is a folder; name its files, or give it as a source of its own",
    )


def test_a_parquet_list_may_name_collections(tmp_path):
    uris = ["s3://b/x/1.pdf", "s3://b/x/y/2.pdf", "s3://b/x/3.pdf"]
    pq.write_table(pa.table({"uri": uris, "collection": ["maps", None, ""]}), tmp_path / "l.parquet")
    files = found(f"list:{tmp_path}/l.parquet")
    expected = [("1.pdf", "maps", ""), ("y/2.pdf", "y", ""), ("3.pdf", "", "")]
    assert [(file.name, file.collection, file.etag) for file in files] == expected
    raw = [os.fsencode(tmp_path) + b"/\xff.pdf"]
    Path(os.fsdecode(raw[0])).write_bytes(b"%PDF")
    pq.write_table(pa.table({"uri": pa.array(raw, pa.binary())}), tmp_path / "l.parquet")
    assert [os.fsencode(file.uri) for file in found(f"list:{tmp_path}/l.parquet")] == raw


@pytest.mark.parametrize(
    ("columns", "message"),
    [({"url": ["a"]}, "no column uri; it has url"), ({"uri": ["a"], "password": ["x"]}, "render.passwords")],
)
def test_a_parquet_list_of_another_form_is_refused(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "l.parquet")
    with pytest.raises(ConfigError, match=message):
        found(f"list:{tmp_path}/l.parquet")
    (tmp_path / "l.parquet").write_bytes(b"no")
    with pytest.raises(ConfigError, match="not a Parquet file"):
        found(f"list:{tmp_path}/l.parquet")


def test_lists_of_two_places_keep_whole_paths(tmp_path):
    put(tmp_path, "a.pdf")
    (tmp_path / "list.txt").write_text(f"s3://b/x/1.pdf\n{tmp_path}/a.pdf\n")
    assert [file.name for file in found(f"list:{tmp_path}/list.txt")] == ["b/x/1.pdf", f"{tmp_path}/a.pdf"[1:]]
