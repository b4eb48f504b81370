"""Local files and S3 objects behind one set of functions."""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from PIL import Image

from jocr import storage
from jocr.errors import ConfigError, StorageError
from jocr.storage import Entry, s3


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


def test_s3_listing_names_sizes_and_versions(bucket: str) -> None:
    for number in range(3):
        storage.atomic_write(f"{bucket}/in/{number}", b"x" * number)
    storage.atomic_write(f"{bucket}/in/", b"")  # a folder's marker
    storage.atomic_write(f"{bucket}/inner", b"")
    entries = list(storage.list_entries(f"{bucket}/in/"))
    assert [(entry.uri, entry.size) for entry in entries] == [(f"{bucket}/in/{n}", n) for n in range(3)]
    assert entries[1].etag == storage.etag(f"{bucket}/in/1") == "9dd4e461268c8034f5c8564e155c67a6"
    assert [entry.uri for entry in storage.list_entries(f"{bucket}/in")] == list(storage.list_files(f"{bucket}/in"))
    for folder in (f"{bucket}/in", f"{bucket}/in/"):
        assert list(storage.list_below(folder)) == entries
    assert len(list(storage.list_below(bucket))) == len(list(storage.list_below(f"{bucket}/"))) == 4
    assert list(storage.list_below(f"{bucket}/none")) == []


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


def test_a_key_that_is_not_utf8_is_refused_in_words(bucket: str) -> None:
    for call in (storage.etag, storage.read_bytes, lambda uri: storage.atomic_write(uri, b"")):
        with pytest.raises(StorageError, match="not UTF-8; correct the name"):
            call(f"{bucket}/caf\udce9.pdf")


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


def test_local_listing_names_sizes_and_versions(tmp_path: Path) -> None:
    for name in ("b", "a/2", "a/1", "a.txt"):
        storage.atomic_write(str(tmp_path / name), name.encode())
    (tmp_path / "nowhere").symlink_to("gone")
    entries = list(storage.list_entries(str(tmp_path)))
    assert [entry.uri for entry in entries] == list(storage.list_files(str(tmp_path)))
    assert [entry.size for entry in entries] == [3, 3, 5, 1]
    facts = os.stat(tmp_path / "b")
    assert entries[3].etag == storage.etag(entries[3].uri) == f"{facts.st_mtime_ns:x}-{facts.st_size:x}"
    everything = list(storage.list_entries(str(tmp_path), everything=True))
    assert [entry for entry in everything if entry not in entries] == [Entry(str(tmp_path / "nowhere"), 0, "")]
    assert list(storage.list_entries(entries[0].uri)) == entries[:1]
    with pytest.raises(StorageError, match="no such file"):
        list(storage.list_entries(str(tmp_path / "none")))
    (tmp_path / "a" / ".draft.part").write_bytes(b"half")
    assert list(storage.list_below(f"{tmp_path}/")) == entries
    assert list(storage.list_below(str(tmp_path / "none"))) == []


@pytest.mark.parametrize("where", ["local", "s3"])
def test_a_file_is_put_once(where: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    root = str(tmp_path) if where == "local" else request.getfixturevalue("bucket")
    uri = storage.join(root, "deep/marker #1")
    barrier, won = threading.Barrier(8), []

    def put(me: int) -> None:
        barrier.wait()
        if storage.put_if_absent(uri, b"%d" % me):
            won.append(me)

    threads = [threading.Thread(target=put, args=(me,)) for me in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert storage.read_bytes(uri) == b"%d" % won[0]
    assert [entry.uri for entry in storage.list_below(root)] == [uri]
    storage.delete(uri)
    storage.delete(uri)
    assert not storage.exists(uri)
    assert storage.put_if_absent(uri, b"again")


@pytest.mark.parametrize("where", ["local", "s3"])
def test_download_brings_all_or_nothing(where: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    root = str(tmp_path / "in") if where == "local" else request.getfixturevalue("bucket")
    uri, data = storage.join(root, "big.tif"), bytes(range(256)) * 12_000  # more than two pieces
    storage.atomic_write(uri, data)
    spool = tmp_path / "spool"
    spool.mkdir()
    target = spool / "copy"
    entry = storage.download(uri, str(target), limit=len(data))
    assert entry == Entry(uri, len(data), storage.etag(uri))
    assert target.read_bytes() == data
    with pytest.raises(StorageError, match=r"3072000 bytes; the limit is 3071999"):
        storage.download(uri, str(target), limit=len(data) - 1)
    with pytest.raises(FileNotFoundError):
        storage.download(storage.join(root, "none"), str(target))
    with pytest.raises(StorageError, match=r"cannot write .*no/copy: no such file or folder"):
        storage.download(uri, str(spool / "no" / "copy"))
    assert os.listdir(spool) == ["copy"]
    assert target.read_bytes() == data


def test_whether_a_folder_can_be_written_is_told_without_a_trace(tmp_path: Path, bucket: str) -> None:
    storage.check_writable(str(tmp_path / "not" / "yet"))
    storage.check_writable(f"{bucket}/not/yet")
    assert list(tmp_path.iterdir()) == []
    assert list(storage.list_below(bucket)) == []
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="a part of the path is a file, not a folder: name another place"):
        storage.check_writable(str(tmp_path / "file" / "out"))
    with pytest.raises(StorageError, match="cannot write /proc/"):
        storage.check_writable("/proc/out")
    with pytest.raises(StorageError, match="there is no bucket 'no-such-bucket': create it or correct the name"):
        storage.check_writable("s3://no-such-bucket/out")
    with pytest.raises(StorageError, match="no bucket can be named 'a b': correct the name"):
        storage.check_writable("s3://a b/out")


Fault = tuple[int, str]  # HTTP status, S3 code


class Front:
    """An S3 server whose answers fail as ``fault`` decides; behind it is the same storage as behind the fixture s3."""

    def __init__(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        self.fault: Callable[[str, int], Fault | str | None] = lambda method, number: None
        self.requests: list[str] = []
        self._app: Any = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self.server = make_server("127.0.0.1", 0, self, threaded=True)

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with self._lock:
            self.requests.append(environ["REQUEST_METHOD"])
            fault = self.fault(environ["REQUEST_METHOD"], len(self.requests))
        if fault is None:
            return self._app(environ, start)
        if fault == "cut":  # the head says more than the body holds
            start("200 OK", [("Content-Length", "100"), ("ETag", '"e"')])
            return [b"half"]
        if fault == "lost":  # carried out, but the client is told otherwise
            list(self._app(environ, lambda *_: lambda _: None))
            fault = (500, "InternalError")
        else:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        body = f"<Error><Code>{fault[1]}</Code><Message>as told</Message></Error>".encode()
        start(f"{fault[0]} {fault[1]}", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


@pytest.fixture(scope="module")
def running_front(s3: Callable[[], str]) -> Iterator[Front]:
    front = Front()
    thread = threading.Thread(target=front.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield front
    front.server.shutdown()
    thread.join()
    front.server.server_close()


@pytest.fixture
def front(running_front: Front, bucket: str, monkeypatch: pytest.MonkeyPatch) -> Front:
    """The failing server, set as this process's endpoint; the file ``in/a`` of ``bucket`` holds "data"."""
    storage.atomic_write(f"{bucket}/in/a", b"data")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{running_front.server.server_port}")
    monkeypatch.setattr(s3, "FIRST_WAIT", 0.0005)
    running_front.requests.clear()
    running_front.fault = lambda method, number: None
    return running_front


def first(times: int, fault: Fault | str) -> Callable[[str, int], Fault | str | None]:
    return lambda method, number: fault if number <= times else None


EVERY_CALL: dict[str, Callable[[str, Path], object]] = {
    "list": lambda bucket, tmp: [entry.size for entry in storage.list_entries(f"{bucket}/in/")] == [4],
    "head": lambda bucket, tmp: storage.size(f"{bucket}/in/a") == 4,
    "get": lambda bucket, tmp: storage.read_bytes(f"{bucket}/in/a") == b"data",
    "download": lambda bucket, tmp: storage.download(f"{bucket}/in/a", str(tmp / "a")).size == 4,
    "put": lambda bucket, tmp: storage.atomic_write(f"{bucket}/in/b", b"1") is None,
    "put once": lambda bucket, tmp: storage.put_if_absent(f"{bucket}/in/c", b"1"),
    "delete": lambda bucket, tmp: storage.delete(f"{bucket}/in/a") is None,
}


@pytest.mark.parametrize("call", EVERY_CALL)
def test_what_passes_is_waited_out(front: Front, bucket: str, tmp_path: Path, call: str) -> None:
    for times, fault in [(6, (503, "SlowDown")), (3, (500, "InternalError")), (3, (429, "Busy")), (2, (403, "Denied"))]:
        front.fault = first(0, fault)
        storage.delete(f"{bucket}/in/c")
        front.requests.clear()
        front.fault = first(times, fault)
        assert EVERY_CALL[call](bucket, tmp_path)
        assert len(front.requests) == times + 1, fault
    front.requests.clear()
    front.fault = first(2, (400, "RequestTimeout"))
    if call not in {"head", "put once"}:  # a HEAD's answer has no code, and the file of "put once" exists by now
        assert EVERY_CALL[call](bucket, tmp_path)
        assert len(front.requests) == 3


@pytest.mark.parametrize("call", EVERY_CALL)
def test_what_stays_is_told_with_its_remedy(front: Front, bucket: str, tmp_path: Path, call: str) -> None:
    front.fault = lambda method, number: (503, "SlowDown")
    with pytest.raises(StorageError, match=rf"cannot \w+ {bucket}/in/.*stayed overloaded: run again later"):
        EVERY_CALL[call](bucket, tmp_path)
    assert len(front.requests) == s3.ATTEMPTS
    front.requests.clear()
    front.fault = lambda method, number: (403, "AccessDenied")
    with pytest.raises(StorageError, match=r"grant s3:\w+ on bucket 'scans-\d+' to the credentials in use"):
        EVERY_CALL[call](bucket, tmp_path)
    assert len(front.requests) == s3.REFUSALS
    front.requests.clear()
    front.fault = lambda method, number: (403, "SignatureDoesNotMatch")
    if call != "head":
        with pytest.raises(StorageError, match="set valid credentials"):
            EVERY_CALL[call](bucket, tmp_path)
        assert len(front.requests) == 1


def test_three_failures_in_ten_lose_nothing(front: Front, bucket: str) -> None:
    front.fault = lambda method, number: (503, "SlowDown") if number % 10 in (2, 5, 6) else None
    for number in range(20):
        assert storage.put_if_absent(f"{bucket}/out/{number:02}", b"%d" % number)
    assert [storage.read_bytes(entry.uri) for entry in storage.list_below(f"{bucket}/out")] == [
        b"%d" % number for number in range(20)
    ]
    assert len(front.requests) > 41


def test_a_body_that_breaks_off_is_read_again(front: Front, bucket: str, tmp_path: Path) -> None:
    front.fault = first(2, "cut")
    assert storage.read_bytes(f"{bucket}/in/a") == b"data"
    front.requests.clear()
    storage.download(f"{bucket}/in/a", str(tmp_path / "a"))
    assert (tmp_path / "a").read_bytes() == b"data"
    assert len(front.requests) == 3
    front.fault = lambda method, number: "cut"
    with pytest.raises(StorageError, match="cannot read"):
        storage.read_bytes(f"{bucket}/in/a")
    with pytest.raises(StorageError, match="cannot read"):
        storage.download(f"{bucket}/in/a", str(tmp_path / "b"))
    assert sorted(os.listdir(tmp_path)) == ["a"]


def test_a_put_whose_answer_was_lost_still_won(front: Front, bucket: str) -> None:
    front.fault = first(1, "lost")
    assert storage.put_if_absent(f"{bucket}/marker", b"mine")
    front.requests.clear()
    front.fault = first(1, (500, "InternalError"))  # the object is there, and it is not this writer's
    assert not storage.put_if_absent(f"{bucket}/marker", b"theirs")
    front.requests.clear()
    front.fault = first(2, (409, "ConditionalRequestConflict"))
    assert not storage.put_if_absent(f"{bucket}/marker", b"mine too")
    assert len(front.requests) == 4  # two conflicts, the refusal, a look at whose it is
    front.fault = lambda method, number: (409, "ConditionalRequestConflict") if method == "PUT" else None
    with pytest.raises(StorageError, match="ConditionalRequestConflict"):  # nobody's: no race was lost
        storage.put_if_absent(f"{bucket}/other", b"mine")


def test_a_file_system_without_hard_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: str, target: str) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(StorageError, match=r"its file system has no hard links .* name a place on another"):
        storage.check_writable(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_large_file_survives_failures_in_its_parts(front: Front, bucket: str) -> None:
    data = bytes(18 << 20)  # beyond what is kept in memory, and several parts
    front.fault = lambda method, number: (503, "SlowDown") if method == "PUT" and number % 2 else None
    storage.atomic_write(f"{bucket}/large", data)
    assert storage.size(f"{bucket}/large") == len(data)


def test_a_storage_without_conditional_writes_is_refused(
    front: Front, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "put_new", lambda uri, data: s3.put(uri, lambda file: file.write(data) and None) or True)
    with pytest.raises(StorageError, match="ignores If-None-Match"):
        storage.check_writable(f"{bucket}/out")
    assert [entry.uri for entry in storage.list_below(bucket)] == [f"{bucket}/in/a"]


def test_an_endpoint_where_nobody_listens_fails_in_seconds(monkeypatch: pytest.MonkeyPatch, bucket: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(s3, "FIRST_WAIT", 0.0005)
    with pytest.raises(StorageError, match="check the network and AWS_ENDPOINT_URL"):
        storage.check_writable("s3://scans/out")
