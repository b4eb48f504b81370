"""The spool: one download per version and node, members by the run, room made only of what nobody uses."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jocr.archive import tars
from jocr.archive.containers import Member
from jocr.archive.spool import Spool
from jocr.errors import DocumentError, StorageError
from jocr.storage import Entry

from .made import PDF, TAR_MODES, gzipped, locked_zip, record, tarred, zipped

ENTRIES = [(f"{n}/scan.pdf", PDF + os.urandom(900) + b"%d" % n) for n in range(8)]


class Bucket:
    """Objects that are downloaded by being written; counts how often."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes | Exception] = {}
        self.taken: Counter[str] = Counter()

    def put(self, uri: str, data: bytes | Exception) -> str:
        self.objects[uri] = data
        return uri

    def size(self, uri: str) -> int:
        data = self.objects[uri]
        return 1000 if isinstance(data, Exception) else len(data)

    def download(self, uri: str, path: str) -> Entry:
        self.taken[uri] += 1
        data = self.objects[uri]
        if isinstance(data, Exception):
            raise data
        Path(path).write_bytes(data)
        return Entry(uri, len(data), "v1")


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def spool(tmp_path: Path, bucket: Bucket) -> Spool:
    return Spool(tmp_path / "spool", 100_000, download=bucket.download, size_of=bucket.size)


def read(spool: Spool, uri: str, etag: str = "v1", size: int = 10_000) -> bytes:
    with spool.local(uri, etag, size=size) as path:
        return path.read_bytes()


def stored(spool: Spool) -> int:
    return sum(path.stat().st_size for path in spool._shelf._full.rglob("*") if path.is_file())


def contents(found: dict[str, Path | DocumentError]) -> dict[str, Any]:
    return {name: got.read_bytes() if isinstance(got, Path) else got.reason for name, got in found.items()}


def test_a_local_file_is_itself(spool: Spool, tmp_path: Path) -> None:
    path = tmp_path / "a #%.pdf"
    path.write_bytes(PDF)
    with spool.local(str(path), "etag") as got:
        assert got == path
    assert stored(spool) == 0


def test_a_local_container_that_is_gone_is_not_the_nodes_fault(spool: Spool, tmp_path: Path) -> None:
    with spool.members(str(tmp_path / "gone.zip"), "v1", ["a.pdf"]) as found:
        error = found["a.pdf"]
    assert isinstance(error, DocumentError)
    assert (error.reason, error.detail) == ("unreadable_file", "it is not there")


def test_a_version_is_downloaded_once_and_stays_while_there_is_room(spool: Spool, bucket: Bucket) -> None:
    uri = bucket.put("s3://b/a b#%41.pdf", PDF)
    for _ in range(3):
        assert read(spool, uri) == PDF
    assert bucket.taken[uri] == 1
    bucket.put(uri, PDF + b"new")
    assert read(spool, uri, "") == PDF + b"new"
    with pytest.raises(DocumentError, match="changed since it was listed"):
        read(spool, uri, "v2")
    assert bucket.taken[uri] == 3


def test_threads_share_one_download(spool: Spool, bucket: Bucket) -> None:
    uri, gate, got = bucket.put("s3://b/a.pdf", PDF), threading.Barrier(6), []

    def work() -> None:
        gate.wait()
        got.append(read(spool, uri))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert got == [PDF] * 6
    assert bucket.taken[uri] == 1


_PROCESS = """
import sys, time
from pathlib import Path
from jocr.archive.spool import Spool
def download(uri, path):
    with open(sys.argv[2], "a") as log:
        log.write(uri + "\\n")
    time.sleep(0.2)
    Path(path).write_bytes(b"bytes of " + uri.encode())
spool = Spool(sys.argv[1], 100_000, download=download)
if sys.argv[3] == "die":
    download = None
    with spool._shelf.hold("ab" * 20, lambda: 60_000, lambda folder: ((folder / "x").write_bytes(b"x"), sys.exit(9))):
        pass
for number in range(3):
    uri = f"s3://b/{number}"
    with spool.local(uri, "", size=1000) as path:
        assert path.read_bytes() == b"bytes of " + uri.encode()
print("done")
"""


def test_processes_share_one_download(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", _PROCESS, str(tmp_path / "spool"), str(log), "live"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=60)[0] for process in running] == ["done\n"] * 3
    assert sorted(log.read_text().split()) == ["s3://b/0", "s3://b/1", "s3://b/2"]


def test_a_process_that_dies_filling_leaves_nothing_that_matters(tmp_path: Path, bucket: Bucket) -> None:
    bomb = "import os; sys.exit = os._exit\n"
    code = _PROCESS.replace("import sys, time\n", "import sys, time\n" + bomb)
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "spool"), str(tmp_path / "log"), "die"])
    assert done.returncode == 9
    spool = Spool(tmp_path / "spool", 100_000, download=bucket.download, size_of=bucket.size)
    assert len(list(spool._shelf._full.iterdir())) == 1
    for number in range(5):  # what it reserved is given back as soon as room is wanted
        uri = bucket.put(f"s3://b/{number}", bytes(20_000))
        assert len(read(spool, uri, size=20_000)) == 20_000
    assert not any(path.name.endswith(".part") for path in spool._shelf._full.iterdir())


def test_what_was_not_used_for_longest_goes_first_and_nothing_in_use_goes(spool: Spool, bucket: Bucket) -> None:
    uris = [bucket.put(f"s3://b/{n}", bytes(30_000)) for n in range(6)]
    folder = spool._shelf._full
    for number, uri in enumerate(uris[:3]):
        read(spool, uri, size=30_000)
        for place in folder.iterdir():
            if place.stat().st_mtime > 10**6:
                os.utime(place, (number, number))
    read(spool, uris[0], size=30_000)  # used again: now the youngest
    with spool.local(uris[1], "v1", size=30_000) as held:
        os.utime(held.parent, (0, 0))
        read(spool, uris[3], size=30_000)
        assert stored(spool) <= 100_000
        assert held.read_bytes() == bytes(30_000)
    read(spool, uris[0], size=30_000)
    assert bucket.taken == {uris[0]: 1, uris[1]: 1, uris[2]: 1, uris[3]: 1}
    read(spool, uris[2], size=30_000)
    assert bucket.taken[uris[2]] == 2


def test_files_in_use_may_exceed_the_limit_and_one_file_may_not(spool: Spool, bucket: Bucket) -> None:
    uris = [bucket.put(f"s3://b/{n}", bytes(60_000)) for n in range(3)]
    with (
        spool.local(uris[0], "v1", size=60_000) as a,
        spool.local(uris[1], "v1", size=60_000) as b,
        spool.local(uris[2], "v1", size=60_000) as c,
    ):
        assert {path.stat().st_size for path in (a, b, c)} == {60_000}
    with pytest.raises(DocumentError) as caught:
        read(spool, bucket.put("s3://b/large", b""), size=100_001)
    assert caught.value.reason == "too_large"
    assert "job.spool_gb" in caught.value.detail
    assert not bucket.taken["s3://b/large"]


@pytest.mark.parametrize(
    "error", [StorageError("refused"), FileNotFoundError("gone"), OSError(errno.ENOSPC, "No space left on device")]
)
def test_a_download_that_fails_costs_its_own_documents_and_is_tried_again(
    spool: Spool, bucket: Bucket, error: Exception
) -> None:
    uri, other = bucket.put("s3://b/a.zip", error), bucket.put("s3://b/b.zip", zipped(ENTRIES))
    with pytest.raises(DocumentError) as caught:
        read(spool, uri)
    assert caught.value.reason == "unreadable_file"
    with spool.members(uri, "v1", ["0/scan.pdf", "x"]) as found:
        assert contents(found) == {"0/scan.pdf": "unreadable_file", "x": "unreadable_file"}
    with spool.members(other, "v1", ["0/scan.pdf"]) as found:
        assert contents(found) == dict(ENTRIES[:1])
    bucket.put(uri, zipped(ENTRIES))
    with spool.members(uri, "v1", ["0/scan.pdf"]) as found:
        assert contents(found) == dict(ENTRIES[:1])


def test_a_disk_without_room_is_said_so(spool: Spool, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = bucket.put("s3://b/a.pdf", PDF)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 5}))
    with pytest.raises(DocumentError, match="disk has 5 bytes left"):
        read(spool, uri)
    monkeypatch.undo()
    assert read(spool, uri) == PDF


def made(kind: str) -> bytes:
    if kind == "zip":
        return zipped(ENTRIES)
    if kind in TAR_MODES:
        return tarred(ENTRIES, kind)
    pack: Callable[[bytes], bytes] = gzipped if kind == "warc.gz" else bytes
    return b"".join(pack(record("resource", name, data, "application/pdf")) for name, data in ENTRIES)


@pytest.mark.parametrize("kind", ["zip", *TAR_MODES, "warc", "warc.gz"])
@pytest.mark.parametrize("remote", [True, False])
def test_members_by_the_run(spool: Spool, bucket: Bucket, tmp_path: Path, kind: str, remote: bool) -> None:
    uri = bucket.put("s3://b/c", made(kind)) if remote else str(tmp_path / "c")
    if not remote:
        Path(uri).write_bytes(made(kind))
    with spool.listing(uri, "v1") as items:
        ids = [item.id for item in items if isinstance(item, Member)]
    assert ids == [name for name, _ in ENTRIES]
    for run in ([ids[5], ids[2], ids[3]], [ids[0]], ids[4:]):
        with spool.members(uri, "v1", run) as found:
            assert contents(found) == {name: data for name, data in ENTRIES if name in run}
    with spool.member(uri, "v1", ids[7]) as path:
        assert path.read_bytes() == ENTRIES[7][1]
    assert bucket.taken[uri] == int(remote)


def test_a_compressed_tar_is_read_through_twice_however_many_runs_there_are(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.tgz"
    path.write_bytes(tarred(ENTRIES, "tar.gz"))
    opened: list[str] = []
    plain_init = tars.Forward.__init__

    def counting(self: Any, path: Any, kind: str) -> None:
        opened.append(kind)
        plain_init(self, path, kind)

    monkeypatch.setattr(tars.Forward, "__init__", counting)
    for name, data in ENTRIES:
        with spool.member(str(path), "v1", name) as got:
            assert got.read_bytes() == data
    assert Counter(opened) == {"tar.gz": 2, "tar": len(ENTRIES)}  # listed, unpacked; then each member is sought


def test_a_compressed_tar_too_large_to_keep_is_read_through(tmp_path: Path, bucket: Bucket) -> None:
    spool = Spool(tmp_path / "spool", 16_000, download=bucket.download, size_of=bucket.size)
    path = tmp_path / "c.tgz"
    path.write_bytes(tarred(ENTRIES, "tar.gz"))
    with spool.members(str(path), "v1", [ENTRIES[6][0], ENTRIES[1][0]]) as found:
        assert contents(found) == {name: data for name, data in ENTRIES if name[0] in "16"}


def test_each_member_has_its_own_reason(tmp_path: Path, bucket: Bucket) -> None:
    spool = Spool(tmp_path / "spool", 100_000, member_bytes=5000, download=bucket.download, size_of=bucket.size)
    data = bytearray(
        zipped([("good.pdf", PDF), ("bad.pdf", PDF + os.urandom(4500)), ("big.pdf", PDF + os.urandom(9000))])
    )
    at = data.index(b"bad.pdf") + 4000
    data[at : at + 9] = bytes(9)
    uri = bucket.put("s3://b/c.zip", bytes(data))
    for _ in range(2):
        with spool.members(uri, "v1", ["big.pdf", "good.pdf", "bad.pdf", "none.pdf"]) as found:
            assert contents(found) == {
                "good.pdf": PDF, "bad.pdf": "corrupt", "big.pdf": "too_large", "none.pdf": "unreadable_file",
            }  # fmt: skip
    with pytest.raises(DocumentError, match="corrupt"), spool.member(uri, "v1", "bad.pdf"):
        pass


def test_members_that_do_not_fit_together_are_named(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 25_000)
    path = tmp_path / "c.zip"
    path.write_bytes(zipped([(f"{n}.pdf", PDF + bytes(6000)) for n in range(4)]))
    with spool.members(str(path), "v1", [f"{n}.pdf" for n in range(4)]) as found:
        got = contents(found)
    assert [len(value) > 6000 for value in got.values()] == [True, True, False, False]
    assert set(list(got.values())[2:]) == {"too_large"}


def test_another_password_is_another_try(spool: Spool, tmp_path: Path) -> None:
    path = tmp_path / "c.zip"
    path.write_bytes(locked_zip("a.pdf", PDF, b"right"))
    outcomes = []
    for password in (None, "wrong", "right", "wrong"):
        with spool.members(str(path), "v1", ["a.pdf"], password=password and (lambda _, p=password: p)) as found:
            outcomes.append(contents(found)["a.pdf"])
    assert outcomes == ["encrypted", "wrong_password", PDF, "wrong_password"]


def test_an_error_of_the_user_passes_through(spool: Spool, bucket: Bucket) -> None:
    uri = bucket.put("s3://b/c.zip", zipped(ENTRIES))

    def use() -> Iterator[None]:
        with spool.members(uri, "v1", [ENTRIES[0][0]]):
            raise DocumentError("render_error", "mine")
        yield

    with pytest.raises(DocumentError, match="mine"):
        list(use())
