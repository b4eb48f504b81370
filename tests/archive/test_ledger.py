"""Commits: one visible set of rows per unit, whoever writes and whoever dies."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jocr import storage
from jocr.archive.layout import COMMITS, PAGES, Unit, place
from jocr.archive.ledger import Commit, Ledger
from jocr.errors import LedgerError
from jocr.records import ParsedPage

SETTINGS = "5e77"
BLANK = ParsedPage(
    page_id="a:0", uri="s3://in/a b.pdf", sha256="a", page=1, status="ok", reason=None, detail="", markdown="# Títle",
    tokens=7, prompt_tokens=3, stop="end", seconds=1.5, render_seconds=0.5, decode_seconds=1.0, tau=None,
    acceptance=None, width=10, height=20, rotation=0, dpi=72.0, blank_evidence="", notes="", renderer="r", model="m",
    revision=None, prompt_hash=None, engine=None, collection="maps",
)  # fmt: skip


def rows_of(keys: list[int], text: str = "x", **changes: Any) -> list[ParsedPage]:
    return [replace(BLANK, key=key, page=n + 1, markdown=f"{text} {key}", **changes) for n, key in enumerate(keys)]


def unit_of(keys: list[int], name: str = "ab12", generation: int = 0) -> Unit:
    return Unit(name, "part", 0, len(keys), generation)


@pytest.fixture(params=["local", "s3"])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path / "out #1")
    make: Callable[[], str] = request.getfixturevalue("s3")
    return f"s3://{make()}/out #1"


def data_files(out: str) -> list[str]:
    return [entry.uri.rpartition("/")[2] for entry in storage.list_below(place(out, PAGES, SETTINGS))]


def test_a_commit_is_read_back_as_it_was_written(out: str) -> None:
    ledger, keys = Ledger(out, SETTINGS), [5, -(2**63), 2**63 - 1]
    assert ledger.names() == {}
    assert ledger.committed() == {}
    rows = rows_of(keys)
    rows[1] = replace(rows[1], status="failed", reason="corrupt", collection="", tokens=0)
    made = ledger.commit(unit_of(keys), reversed(rows), keys, busy_seconds=2.5)
    assert made is not None
    assert ledger.committed() == {"ab12": made}
    assert made.keys == tuple(keys)
    assert (made.pages, made.tokens, made.prompt_tokens) == (3, 14, 9)
    assert made.counts == {"ok": 2, "failed": 1}
    assert made.reasons == {"corrupt": 1}
    assert (made.render_seconds, made.decode_seconds, made.busy_seconds) == (1.5, 3.0, 2.5)
    assert made.collections["maps"] == {"pages": 2, "tokens": 14, "ok": 2}
    assert made.collections[""] == {"pages": 1, "tokens": 0, "failed": 1}
    assert ledger.rows(made) == rows  # in the order of the keys, whatever order they came in
    assert ledger.has(unit_of(keys))
    assert not ledger.has(unit_of(keys, generation=1))
    assert Ledger(out, "0ther").names() == {}


def test_the_highest_generation_counts(out: str) -> None:
    ledger, keys = Ledger(out, SETTINGS), [1, 2]
    for generation in (0, 1, 10, 9):
        assert ledger.commit(unit_of(keys, generation=generation), rows_of(keys, f"g{generation}"), keys, carried=1)
    assert ledger.names() == {"ab12": 10}
    assert ledger.rows(ledger.committed()["ab12"])[0].markdown == "g10 1"
    assert [commit.generation for commit in ledger.history()] == [0, 1, 9, 10]
    assert ledger.prune() == 3
    assert data_files(out) == [ledger.committed()["ab12"].data]


@pytest.mark.parametrize(
    ("found", "expected", "message"),
    [
        ([1, 2], [1, 2, 3], r"1 missing \(first: 3\)"),
        ([1, 2, 2, 3], [1, 2, 3], r"1 doubled \(first: 2\)"),
        ([1, 2, 3, 4], [1, 2, 3], r"1 foreign \(first: 4\)"),
        ([1, 1], [1, 1], "expected twice"),
        ([], [1], "1 missing"),
    ],
)
def test_rows_that_are_not_the_units_pages_are_refused(
    tmp_path: Path, found: list[int], expected: list[int], message: str
) -> None:
    ledger = Ledger(str(tmp_path), SETTINGS)
    with pytest.raises(LedgerError, match=message):
        ledger.commit(unit_of(expected), rows_of(found), expected)
    with pytest.raises(LedgerError, match="2 keys for 3 pages"):
        ledger.commit(unit_of([1, 2, 3]), rows_of([1, 2]), [1, 2])
    assert list(tmp_path.iterdir()) == []


def test_a_second_writer_loses_and_takes_its_rows_back(out: str) -> None:
    ledger, keys = Ledger(out, SETTINGS), [1, 2]
    first = ledger.commit(unit_of(keys), rows_of(keys, "first"), keys)
    assert first is not None
    assert ledger.commit(unit_of(keys), rows_of(keys, "second"), keys) is None
    assert ledger.commit(unit_of(keys), rows_of(keys, "first"), keys) is None  # the very same rows: they stay
    assert data_files(out) == [first.data]
    assert ledger.rows(ledger.committed()["ab12"])[0].markdown == "first 1"


def test_of_racing_writers_exactly_one_counts(s3: Callable[[], str]) -> None:
    out, keys, rounds, writers = f"s3://{s3()}/out", [1, 2], 20, 2
    ledger = Ledger(out, SETTINGS)
    barrier = threading.Barrier(writers)
    won: list[list[Commit | None]] = [[] for _ in range(writers)]

    def write(me: int) -> None:
        for number in range(rounds):
            barrier.wait()
            won[me].append(ledger.commit(unit_of(keys, f"u{number:02}"), rows_of(keys, f"writer {me}"), keys))

    threads = [threading.Thread(target=write, args=(me,)) for me in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    committed = ledger.committed()
    assert len(committed) == rounds
    for number, outcome in enumerate(zip(*won, strict=True)):
        (winner,) = [me for me, commit in enumerate(outcome) if commit is not None]
        commit = committed[f"u{number:02}"]
        assert commit == outcome[winner]
        assert {row.markdown for row in ledger.rows(commit)} == {f"writer {winner} 1", f"writer {winner} 2"}
    assert sorted(data_files(out)) == sorted(commit.data for commit in committed.values())


def race(out: Path, me: int, rounds: int = 20) -> list[int]:
    """Commit the same units as the other racer, round by round at the same moment; 1 where this one won."""
    won = []
    for number in range(rounds):
        (out / f"ready-{number}-{me}").touch()
        deadline = time.monotonic() + 60
        while not (out / f"ready-{number}-{1 - me}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.0005)
        rows = rows_of([1, 2], f"writer {me}")
        won.append(int(Ledger(str(out), SETTINGS).commit(unit_of([1, 2], f"u{number:02}"), rows, [1, 2]) is not None))
    return won


def test_of_racing_processes_exactly_one_counts(tmp_path: Path) -> None:
    script = "import sys; from pathlib import Path; import test_ledger; print(*test_ledger.race(Path(sys.argv[1]), 1))"
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        won = race(tmp_path, 0)
    finally:
        told, complaints = other.communicate(timeout=60)
    assert other.returncode == 0, complaints
    lost = [int(word) for word in told.split()]
    assert [a + b for a, b in zip(won, lost, strict=True)] == [1] * 20
    ledger = Ledger(str(tmp_path), SETTINGS)
    for number, commit in enumerate(ledger.committed().values()):
        assert {row.markdown for row in ledger.rows(commit)} == {f"writer {lost[number]} {key}" for key in (1, 2)}
    assert len(data_files(str(tmp_path))) == 20


def test_death_between_rows_and_marker_leaves_nothing_that_counts(out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, keys = Ledger(out, SETTINGS), [1, 2]

    def die(uri: str, data: bytes) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(storage, "put_if_absent", die)
        with pytest.raises(KeyboardInterrupt):
            ledger.commit(unit_of(keys), rows_of(keys, "lost"), keys)
    assert len(data_files(out)) == 1
    assert ledger.names() == {}
    assert ledger.committed() == {}
    assert ledger.prune() == 0  # it may be a writer at work
    assert len(data_files(out)) == 1
    commit = ledger.commit(unit_of(keys), rows_of(keys, "kept"), keys)
    assert commit is not None
    assert ledger.prune() == 1
    assert data_files(out) == [commit.data]


def test_pruning_spares_what_a_writer_may_still_commit(out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, keys = Ledger(out, SETTINGS), [1, 2]
    first = ledger.commit(unit_of(keys), rows_of(keys), keys)
    put, pruned = storage.put_if_absent, []

    def prune_first(uri: str, data: bytes) -> bool:
        pruned.append(ledger.prune())
        return put(uri, data)

    monkeypatch.setattr(storage, "put_if_absent", prune_first)
    second = ledger.commit(unit_of(keys, generation=1), rows_of(keys, "again"), keys)
    assert pruned == [0]
    assert first is not None
    assert second is not None
    assert ledger.rows(second)[0].markdown == "again 1"
    storage.atomic_write(place(out, PAGES, SETTINGS, "dead.0-00aa.parquet"), b"litter")
    storage.atomic_write(place(out, PAGES, SETTINGS, "note.txt"), b"not ours")
    assert ledger.prune() == 1  # the superseded generation
    assert ledger.prune(alone=True) == 1
    assert sorted(data_files(out)) == sorted([second.data, "note.txt"])


def test_the_folder_of_pages_holds_the_manifests_units_alone(out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(out, SETTINGS)
    stays = ledger.commit(unit_of([1], "aa"), rows_of([1]), [1])
    leaves = ledger.commit(unit_of([2], "bb"), rows_of([2]), [2])
    assert stays is not None
    assert leaves is not None
    monkeypatch.setattr(storage, "put_if_absent", _raise)
    with pytest.raises(KeyboardInterrupt):  # rows without a marker, of a unit that has gone from the manifest
        ledger.commit(unit_of([3], "cc"), rows_of([3]), [3])
    ledger.settle({"aa"})
    assert data_files(out) == [stays.data]
    assert [row.key for row in ledger.rows(leaves)] == [2]  # carried over from where it waits
    ledger.settle({"aa", "bb"})
    assert sorted(data_files(out)) == sorted([stays.data, leaves.data])


def _raise(*_: Any) -> bool:
    raise KeyboardInterrupt


def test_damage_is_told_with_its_remedy(tmp_path: Path) -> None:
    ledger, keys = Ledger(str(tmp_path), SETTINGS), [1, 2]
    commit = ledger.commit(unit_of(keys), rows_of(keys), keys)
    assert commit is not None
    uri = place(str(tmp_path), PAGES, SETTINGS, commit.data)
    with pytest.raises(LedgerError, match="holds other pages than its marker says; remove"):
        ledger.rows(replace(commit, packed_keys=bytes(16)))
    storage.atomic_write(uri, b"PAR1 no more")
    with pytest.raises(LedgerError, match="is damaged"):
        ledger.rows(commit)
    storage.delete(uri)
    with pytest.raises(LedgerError, match="is gone though its marker stands; remove"):
        ledger.rows(commit)
    marker = place(str(tmp_path), COMMITS, SETTINGS, "ab12.0.json")
    storage.atomic_write(marker, b'{"unit": "ab12"}')
    assert ledger.names() == {"ab12": 0}
    with pytest.raises(LedgerError, match="is not a marker of this program"):
        ledger.committed()


def test_thousands_of_markers_are_listed_and_read(tmp_path: Path) -> None:
    ledger, keys = Ledger(str(tmp_path), SETTINGS), [1, 2]
    commit = ledger.commit(unit_of(keys), rows_of(keys), keys)
    assert commit is not None
    folder = tmp_path / COMMITS / SETTINGS
    for number in range(2000):
        (folder / f"{number:024x}.0.json").write_bytes(replace(commit, unit=f"{number:024x}").to_json())
    (folder / ".half.part").write_bytes(b"{")  # a writer that was killed
    (folder / "README").write_bytes(b"not ours")
    assert len(ledger.names()) == 2001
    committed = ledger.committed()
    assert list(committed) == sorted(committed)
    assert len(committed) == 2001
    assert all(name == found.unit for name, found in committed.items())
