"""Containers by their bytes: names kept, members told apart, damage and bombs contained, office files left alone."""

from __future__ import annotations

import bz2
import io
import os
import stat
import struct
import tarfile
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

from jocr.archive import members as vocabulary
from jocr.archive.containers import Item, Member, SkippedMember, extract, extract_run, members, sniff_container
from jocr.archive.zips import _reading
from jocr.errors import DocumentError
from jocr.pages.sniff import SNIFF_BYTES
from jocr.records import REASONS

from .made import PDF, TAR_MODES, chunked, gzipped, http, locked_zip, record, tarred, zipped

ENTRIES = [(f"{n}/scan.pdf", PDF + os.urandom(500) + b"%d" % n) for n in range(6)]
KINDS = ["zip", *TAR_MODES, "warc", "warc.gz"]


def put(folder: Path, data: bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def made(kind: str, entries: list[tuple[str, bytes]]) -> bytes:
    if kind == "zip":
        return zipped(entries)
    if kind in TAR_MODES:
        return tarred(entries, kind)
    records = [record("warcinfo", "", b"software: x\r\n", "application/warc-fields")]
    records += [record("response", f"http://x.org/{name}", http(data)) for name, data in entries]
    return b"".join(map(gzipped, records)) if kind == "warc.gz" else b"".join(records)


def listed(path: Path, **options: Any) -> list[Item]:
    items = list(members(path, **options))
    assert all(item.reason is None or item.reason in REASONS for item in items)
    return items


def good(items: list[Item]) -> list[Member]:
    return [item for item in items if isinstance(item, Member) and item.reason is None]


def bad(items: list[Item]) -> list[tuple[str, str | None]]:
    return [(item.name, item.reason) for item in items if isinstance(item, SkippedMember) or item.reason is not None]


def unpacked(path: Path, member: Member, folder: Path, **options: Any) -> bytes:
    target = folder / "out"
    extract(path, member, target, **options)
    return target.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_known_by_its_bytes_listed_in_order_and_unpacked(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path, made(kind, ENTRIES), "no_extension")
    head = path.read_bytes()[:SNIFF_BYTES]
    assert sniff_container(head) == kind
    found = listed(path)
    assert not bad(found)
    prefix = "http://x.org/" if kind.startswith("warc") else ""
    assert [(member.id, member.kind) for member in good(found)] == [(prefix + name, "pdf") for name, _ in ENTRIES]
    for member, (_, data) in zip(good(found), ENTRIES, strict=True):
        assert unpacked(path, member, tmp_path) == data
        assert member.size in (len(data), -1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_unpacked_in_one_pass_whatever_its_order(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path, made(kind, ENTRIES))
    found = good(listed(path))
    wanted = [found[4], found[1], found[2]]
    results = list(extract_run(path, wanted, lambda member: tmp_path / str(member.ordinal)))
    assert [member.ordinal for member, _ in results] == sorted(member.ordinal for member in wanted)
    assert all(error is None for _, error in results)
    for at in (1, 2, 4):
        assert (tmp_path / str(found[at].ordinal)).read_bytes() == ENTRIES[at][1]


NAMES = [
    "Vol 1 (2) #3 %41.pdf", "ve\u0301lin.pdf", "v\u00e9lin.pdf", "\u0995\u09be\u0997\u099c.pdf", "a\\b.pdf",
    "/etc/passwd.pdf", "../../up.pdf", "\u6587\u66f8/\u7b2c\u4e00\u5dfb.pdf", "x" * 300 + ".pdf", "a//b/./c.pdf",
    "q?+&=.pdf",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_names_are_kept_as_stored_and_never_used_as_paths(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path, made(kind, [(name, PDF + name.encode()) for name in NAMES]))
    found = good(listed(path))
    assert [member.name for member in found] == NAMES
    folder = tmp_path / "deep" / "folder"
    folder.mkdir(parents=True)
    for member in found:
        assert unpacked(path, member, folder) == PDF + member.name.encode()
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["file", "out"]


def test_names_of_any_encoding_in_a_zip(tmp_path: Path) -> None:
    data = zipped([("caf\u00e9.pdf", PDF)])
    unflagged = data.replace(struct.pack("<H", 0x800), b"\0\0")
    assert unflagged != data
    assert good(listed(put(tmp_path, unflagged)))[0].name == "caf\u00e9.pdf"  # UTF-8 without saying so
    old = zipped([("cafe#.pdf", PDF)]).replace(b"cafe#", b"caf\x82#")
    path = put(tmp_path, old)
    assert good(listed(path))[0].name == "caf\u00e9#.pdf"  # code page 437
    assert unpacked(path, good(listed(path))[0], tmp_path) == PDF


def test_names_of_any_encoding_in_a_tar(tmp_path: Path) -> None:
    data = tarred([("caf\udce9.pdf", PDF)], form=tarfile.GNU_FORMAT)
    assert good(listed(put(tmp_path, data)))[0].name == "caf\udce9.pdf"  # a byte that is no UTF-8, kept as it is


@pytest.mark.parametrize("kind", KINDS)
def test_equal_names_are_two_documents(tmp_path: Path, kind: str) -> None:
    entries = [("a.pdf", PDF + b"1"), ("a.pdf#2", b"%PDF taken"), ("a.pdf", PDF + b"2"), ("a.pdf", PDF + b"3")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of the equal names
        data = made(kind, entries)
    found = good(listed(path := put(tmp_path, data)))
    prefix = "http://x.org/" if kind.startswith("warc") else ""
    assert [m.id.removeprefix(prefix) for m in found] == ["a.pdf", "a.pdf#2", "a.pdf#3", "a.pdf#4"][: len(found)]
    assert len({member.id for member in found}) == 4
    assert [unpacked(path, member, tmp_path) for member in found] == [
        data for _, data in entries if data[:4] == b"%PDF"
    ]


def test_what_is_no_regular_file_is_skipped_with_a_reason(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in (("d", tarfile.DIRTYPE), ("s.pdf", tarfile.SYMTYPE), ("h.pdf", tarfile.LNKTYPE),
                           ("dev.pdf", tarfile.CHRTYPE), ("pipe.pdf", tarfile.FIFOTYPE)):  # fmt: skip
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    items = listed(put(tmp_path, out.getvalue()))
    assert {item.reason for item in items} == {"not_a_document"}
    details = [item.detail for item in items]
    assert details[0] == "it is a folder"
    assert "/etc/passwd" in details[1]
    assert [detail.split()[-1] for detail in details[3:]] == ["file", "file"]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("folder/", b"")
        link = zipfile.ZipInfo("link.pdf")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        pipe = zipfile.ZipInfo("pipe.pdf")
        pipe.external_attr = (stat.S_IFIFO | 0o777) << 16
        archive.writestr(pipe, b"")
    assert [item.detail for item in listed(put(tmp_path, out.getvalue()))] == [
        "it is a folder", "it is a link", "it is no regular file",
    ]  # fmt: skip


def test_what_is_no_document_is_skipped_and_what_claims_to_be_one_is_kept(tmp_path: Path) -> None:
    entries = [
        ("readme.txt", b"words"), ("__MACOSX/._a.pdf", PDF), (".DS_Store", b"x"), ("b/._c.pdf", PDF), ("empty", b""),
        ("scan", PDF), ("claims.pdf", b"but is none"), ("inner.zip", zipped(ENTRIES)),
        ("inner.tgz", tarred(ENTRIES, "tar.gz")),
        ("letter.docx", zipped([("[Content_Types].xml", b"<x/>")])),
    ]  # fmt: skip
    for kind in ("zip", "tar.xz"):
        items = listed(put(tmp_path, made(kind, entries)))
        assert [(m.name, m.kind) for m in good(items)] == [("scan", "pdf"), ("claims.pdf", "")]
        assert bad(items) == [
            ("readme.txt", "not_a_document"), ("__MACOSX/._a.pdf", "not_a_document"), (".DS_Store", "not_a_document"),
            ("b/._c.pdf", "not_a_document"), ("empty", "empty_file"), ("inner.zip", "nested_container"),
            ("inner.tgz", "nested_container"), ("letter.docx", "not_a_document"),
        ]  # fmt: skip


def test_office_documents_and_books_are_no_containers(tmp_path: Path) -> None:
    for first in ("[Content_Types].xml", "word/document.xml"):
        data = zipped([(first, b"<x/>"), ("[Content_Types].xml" if first[0] == "w" else "y", b""), ("x.png", PDF)])
        assert sniff_container(data) is None
    late = zipped([("customXml/item1.xml", b"<x/>"), ("[Content_Types].xml", b"<x/>"), ("media/image1.png", b"x")])
    assert sniff_container(late) == "zip"
    for data in (late, zipped([("mimetype", b"application/epub+zip"), ("a.jpg", b"x")], zipfile.ZIP_STORED)):
        assert bad(listed(put(tmp_path, data))) == [("", "not_a_document")]


def test_other_bytes_are_no_container(tmp_path: Path) -> None:
    for data in (b"", b"words", PDF, gzipped(PDF * 50), b"II*\0" + bytes(600), bytes(600), b"PK not"):
        assert sniff_container(data) is None
    items = listed(put(tmp_path, gzipped(b"just words " * 200)))
    assert bad(items) == [("", "not_a_document")]
    assert bad(listed(put(tmp_path, bz2.compress(os.urandom(9000))))) == [("", "not_a_document")]
    assert bad(listed(tmp_path / "nowhere")) == [("", "unreadable_file")]


@pytest.mark.parametrize("kind", ["zip", *TAR_MODES])
def test_an_empty_container_says_so(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path, made(kind, []))
    assert sniff_container(path.read_bytes()[:SNIFF_BYTES]) == kind
    (item,) = listed(path)
    assert isinstance(item, SkippedMember)
    assert item.reason == "no_pages"


def test_encrypted_members_need_their_password(tmp_path: Path) -> None:
    path = put(tmp_path, locked_zip("secret/scan.pdf", PDF, b"open sesame"))
    assert bad(listed(path)) == [("secret/scan.pdf", "encrypted")]
    assert bad(listed(path, password=lambda _: "wrong")) == [("secret/scan.pdf", "wrong_password")]

    def password(name: str) -> str | None:
        return "open sesame" if name.startswith("secret/") else None

    (member,) = good(listed(path, password=password))
    assert unpacked(path, member, tmp_path, password=password) == PDF
    for given, reason in ((None, "encrypted"), (lambda _: "wrong", "wrong_password")):
        with pytest.raises(DocumentError) as caught:
            extract(path, member, tmp_path / "none", password=given)
        assert caught.value.reason == reason
        assert not (tmp_path / "none").exists()


def test_aes_and_unknown_packings_are_named(tmp_path: Path) -> None:
    data = bytearray(locked_zip("a.pdf", PDF, b"x"))
    for at in (8, data.index(b"PK\x01\x02") + 10):
        data[at : at + 2] = struct.pack("<H", 99)
    (item,) = listed(put(tmp_path, bytes(data)), password=lambda _: "x")
    assert (item.reason, "AES" in item.detail) == ("encrypted", True)
    data = bytearray(zipped([("a.pdf", PDF), ("b.pdf", PDF)]))
    for at in (8, data.index(b"PK\x01\x02") + 10):
        data[at : at + 2] = struct.pack("<H", 9)
    items = listed(put(tmp_path, bytes(data)))
    assert bad(items) == [("a.pdf", "unreadable_file")]
    assert [member.name for member in good(items)] == ["b.pdf"]


@pytest.mark.parametrize("kind", ["zip", *TAR_MODES])
def test_members_beyond_the_limit_are_refused_unread(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path, made(kind, [("a.pdf", PDF), ("big.pdf", PDF + bytes(300_000)), ("c.pdf", PDF)]))
    items = listed(path, limit_bytes=10_000)
    assert [member.name for member in good(items)] == ["a.pdf", "c.pdf"]
    assert bad(items) == [("big.pdf", "too_large")]
    big = good(listed(path))[1]
    with pytest.raises(DocumentError, match="too_large"):
        extract(path, big, tmp_path / "out", limit_bytes=10_000)
    assert not (tmp_path / "out").exists()


def test_a_size_that_lies_is_found_out(tmp_path: Path) -> None:
    data = bytearray(zipped([("a.pdf", PDF + bytes(100_000))]))
    real = struct.pack("<L", len(PDF) + 100_000)
    lying = bytes(data).replace(real, struct.pack("<L", 50_000))
    (member,) = good(listed(path := put(tmp_path, lying)))
    with pytest.raises(DocumentError, match="corrupt"):
        extract(path, member, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    warc = put(
        tmp_path, record("response", "http://x/a.pdf", http(gzipped(PDF + bytes(10**6)), "Content-Encoding: gzip"))
    )
    (member,) = good(listed(warc, limit_bytes=5000))
    with pytest.raises(DocumentError, match="too_large"):
        extract(warc, member, tmp_path / "out", limit_bytes=5000)


def test_a_ratio_no_document_has_is_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("jocr.archive.members", "jocr.archive.tars"):
        monkeypatch.setattr(f"{module}.FLOOR", 1 << 20)
    entries = [("a.pdf", PDF), ("bomb.pdf", PDF + bytes(5 << 20)), ("c.pdf", PDF)]
    items = listed(put(tmp_path, zipped(entries)))
    assert bad(items) == [("bomb.pdf", "too_large")]
    assert [member.name for member in good(items)] == ["a.pdf", "c.pdf"]
    items = listed(put(tmp_path, tarred(entries, "tar.bz2")))  # one stream: what lies behind it is out of reach
    assert [member.name for member in good(items)] == ["a.pdf"]
    assert bad(items) == [("", "too_large")]
    assert vocabulary.is_bomb(300 << 20, 1 << 20, 4 << 30) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_cut_off_anywhere_it_keeps_what_is_whole_and_fails_once(tmp_path: Path, kind: str) -> None:
    data = made(kind, ENTRIES)
    whole = [member.id for member in good(listed(put(tmp_path, data)))]
    kept: list[int] = []
    for cut in range(len(data) // 24, len(data), len(data) // 24):
        path = put(tmp_path, data[:cut])
        items = listed(path)
        found = good(items)
        assert [member.id for member in found] == whole[: len(found)]
        for member in found:
            assert unpacked(path, member, tmp_path) == ENTRIES[whole.index(member.id)][1]
        between = kind.startswith("warc")  # records: there nothing is missing
        complete = kind.startswith("tar") and len(found) == len(ENTRIES)  # and in the zeros at the end
        if bad(items) or not (between or complete):
            ((name, reason),) = bad(items)
            assert name == ""
            assert reason in ("corrupt", "not_a_document") or (between and reason == "no_pages" and not found)
        kept.append(len(found))
    assert kept == sorted(kept)
    assert kept[-1] >= (0 if kind in ("tar.bz2", "tar.xz") else 4)  # of those, the whole is one block


@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bytes_never_raise_and_never_invent(tmp_path: Path, kind: str) -> None:
    data = made(kind, ENTRIES)
    contents = {bytes(content) for _, content in ENTRIES}
    for at in range(3, len(data), max(1, len(data) // 16)):
        broken = bytearray(data)
        broken[at : at + 3] = bytes(255 - byte for byte in broken[at : at + 3])
        path = put(tmp_path, bytes(broken))
        items = listed(path)
        assert items
        for member in good(items):
            ((_, error),) = extract_run(path, [member], lambda _: tmp_path / "out")
            if error is not None:
                assert error.reason in REASONS
            elif (tmp_path / "out").read_bytes() not in contents:
                assert kind in ("tar", "warc") or ("", "corrupt") in bad(items)  # the first two have no checksums


def test_a_damaged_header_inside_a_tar_is_no_end(tmp_path: Path) -> None:
    data = bytearray(tarred(ENTRIES, form=tarfile.USTAR_FORMAT))
    second = data.index(b"2/scan.pdf")
    data[second : second + 5] = b"\xff" * 5
    items = listed(put(tmp_path, bytes(data)))
    assert [member.name for member in good(items)] == ["0/scan.pdf", "1/scan.pdf"]
    assert bad(items) == [("", "corrupt")]
    assert "1/scan.pdf" in items[-1].detail
    unmarked = bytes(tarred(ENTRIES, form=tarfile.USTAR_FORMAT)).rstrip(b"\0")
    unmarked += bytes(-len(unmarked) % 512)
    items = listed(put(tmp_path, unmarked))
    assert len(good(items)) == 6
    assert isinstance(items[-1], SkippedMember)
    assert "may be cut off" in items[-1].detail


def test_headers_that_ask_for_memory_or_point_backwards_are_damage(tmp_path: Path) -> None:
    info = tarfile.TarInfo("a.pdf")
    info.type, info.size = tarfile.XHDTYPE, 1 << 40
    for header in (info.tobuf(tarfile.GNU_FORMAT), _negative()):
        data = tarred([("a.pdf", PDF)])[:1024] + header + bytes(1024)
        items = listed(put(tmp_path, data))
        assert [member.name for member in good(items)] == ["a.pdf"]
        assert bad(items) == [("", "corrupt")]


def _negative() -> bytes:
    info = tarfile.TarInfo("b.pdf")
    info.size = -5000
    return info.tobuf(tarfile.GNU_FORMAT)


def test_a_zip_without_its_directory_is_recovered(tmp_path: Path) -> None:
    streamed = io.BytesIO()

    class Pipe(io.RawIOBase):  # not seekable: sizes follow the data
        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            return streamed.write(data)

    with zipfile.ZipFile(Pipe(), "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[arg-type]
        for name, data in ENTRIES:
            archive.writestr(name, data)
    for data in (zipped(ENTRIES), zipped(ENTRIES, zipfile.ZIP_STORED), streamed.getvalue()):
        path = put(tmp_path, data[: data.index(b"PK\x01\x02")])
        items = listed(path)
        assert [unpacked(path, member, tmp_path) for member in good(items)] == [content for _, content in ENTRIES]
        assert bad(items) == [("", "corrupt")]


def test_warc_encodings_statuses_and_record_types(tmp_path: Path) -> None:
    records = [
        record("warcinfo", "", b"software: x\r\n", "application/warc-fields"),
        record("request", "http://x/a", b"GET / HTTP/1.1\r\n\r\n", "application/http; msgtype=request"),
        record("response", "http://x/a?q=1#2", http(chunked(PDF), "Transfer-Encoding: chunked")),
        record("response", "http://x/b.pdf", http(gzipped(PDF), "Content-Encoding: gzip")),
        record("response", "http://x/c.pdf",
               http(chunked(gzipped(PDF)), "Transfer-Encoding: chunked", "Content-Encoding: gzip")),
        record("response", "http://x/gone.pdf", http(b"<html>", status="404 Not Found")),
        record("response", "http://x/page", http(b"<html>")),
        record("resource", "file:///d.pdf", PDF, "application/pdf"),
        record("metadata", "http://x/a", b"a: b\r\n", "application/warc-fields"),
        record("response", "http://x/b.pdf", http(PDF)),
    ]  # fmt: skip
    for data in (b"".join(records), b"".join(map(gzipped, records))):
        items = listed(path := put(tmp_path, data))
        found = good(items)
        assert [m.id for m in found] == [
            "http://x/a?q=1#2", "http://x/b.pdf", "http://x/c.pdf", "file:///d.pdf", "http://x/b.pdf#2",
        ]  # fmt: skip
        assert [unpacked(path, member, tmp_path) for member in found] == [PDF] * 5
        assert bad(items) == [("http://x/gone.pdf", "not_a_document"), ("http://x/page", "not_a_document")]
        assert [member.ordinal for member in found] == [2, 3, 4, 7, 9]


@pytest.mark.parametrize("count", [1500, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["tar", "tar.gz"])
def test_many_members_leave_memory_flat(tmp_path: Path, kind: str, count: int) -> None:
    path = tmp_path / "many"
    with tarfile.open(path, TAR_MODES[kind], format=tarfile.USTAR_FORMAT) as archive:  # type: ignore[call-overload]
        for number in range(count):
            info = tarfile.TarInfo(f"{number}.pdf")
            info.size = len(PDF)
            archive.addfile(info, io.BytesIO(PDF))
    tracemalloc.start()
    used = {}
    for found, _ in enumerate(members(path), 1):
        if found in (300, count):
            used[found] = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used[count] - used[300] < 150 * count + 100_000  # the names, and nothing else


def test_what_goes_wrong_outside_a_zip_is_not_called_a_wrong_password(tmp_path: Path) -> None:
    """An error of whoever reads the entry's bytes stays what it is."""
    with zipfile.ZipFile(put(tmp_path, zipped([("a.pdf", PDF)]))) as archive:
        (info,) = archive.infolist()
        with pytest.raises(RuntimeError, match="ours"), _reading(archive, info, None):
            raise RuntimeError("ours")


def test_a_warc_cut_off_in_a_header_names_no_member_for_it(tmp_path: Path) -> None:
    data = made("warc", [("a.pdf", PDF), ("b.pdf", PDF)])
    cut = data.rindex(b"WARC-Target-URI")
    items = listed(put(tmp_path, data[:cut]))
    assert [name for name, _ in bad(items)] == [""]
    assert len(good(items)) == 1


@pytest.mark.parametrize("kind", ["warc", "warc.gz"])
def test_a_warc_cut_off_at_any_byte_keeps_whole_records_and_says_so(tmp_path: Path, kind: str) -> None:
    records = [record("response", f"http://x/{name}", http(PDF)) for name in ("a.pdf", "b.pdf")]
    packed = [gzipped(one) if kind == "warc.gz" else one for one in records]
    data, first = b"".join(packed), len(packed[0])
    empty = 4 if kind == "warc" else 0  # lines behind a record, whose loss is none
    for cut in [*range(len(records[0]) // 2, first, 3), *range(first, len(data))]:
        items = listed(put(tmp_path, data[:cut]))
        assert len(good(items)) == (cut >= first - empty) + (cut >= len(data) - empty), cut
        at_an_end = first - empty <= cut <= first or cut >= len(data) - empty
        assert bad(items) == ([] if at_an_end else [("", "corrupt")]), cut


def test_a_wrong_checksum_of_a_warcs_record_is_damage(tmp_path: Path) -> None:
    packed = [bytearray(gzipped(record("response", f"http://x/{n}.pdf", http(PDF)))) for n in "ab"]
    packed[1][-6] ^= 255
    items = listed(put(tmp_path, b"".join(packed)))
    assert ([member.name for member in good(items)], bad(items)) == (["http://x/a.pdf"], [("", "corrupt")])


def test_a_warcs_gzip_blocks_hold_a_record_each_or_nothing(tmp_path: Path) -> None:
    one, two, three = (record("response", f"http://x/{n}.pdf", http(PDF)) for n in "abc")
    whole = listed(put(tmp_path, b"".join(map(gzipped, (one, two, three, b"")))))
    assert (len(good(whole)), bad(whole)) == (3, [])
    *found, last = listed(put(tmp_path, gzipped(one) + gzipped(two + three)))
    assert [member.name for member in good(found)] == ["http://x/a.pdf", "http://x/b.pdf"]
    assert last.detail.endswith("(several records in one gzip block; `warcio recompress` takes them apart)")
    assert good(found)[1].offset == len(gzipped(one))


@pytest.mark.parametrize("tail", [bytes(300), record("response", "", http(PDF))])
def test_what_follows_a_warcs_records_is_told_in_words(tmp_path: Path, tail: bytes) -> None:
    *found, last = listed(put(tmp_path, record("response", "http://x/a.pdf", http(PDF)) + tail))
    assert len(good(found)) == 1
    assert last.detail.isprintable()
    assert "NoneType" not in last.detail
