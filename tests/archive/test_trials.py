"""A chunk's tries: a file that kills its process is found, opened as often as allowed, and costs no other file."""

from __future__ import annotations

from pathlib import Path

import pytest

from jocr import storage
from jocr.archive import trials
from jocr.archive.manifest import latest
from jocr.errors import StorageError


class Died(BaseException):
    """What SIGKILL leaves: nothing is cleared."""


@pytest.fixture(params=["local", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    out = str(tmp_path) if request.param == "local" else f"s3://{request.getfixturevalue('s3')()}/out"
    return storage.join(out, "manifest/.open/ab12.tries")


def work(folder: str, files: int, deadly: set[int], budget: int, opened: list[int]) -> list[int]:
    """What a task does with a chunk; the numbers of the files that were not given up."""
    good = []
    with trials.begin(folder, budget) as trial:
        for number in range(files):
            if number in trial.kept:
                good.append(number)
                continue
            if trial.exhausted(number):
                continue
            if trial.careful:
                trial.started(number)
            opened.append(number)
            if number in deadly:
                raise Died
            if trial.careful:
                trial.saved(number, b"%d" % number)
            good.append(number)
    return good


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_deadly_files_are_opened_so_often_and_the_others_are_kept(
    folder: str, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = trials.Trial.__exit__
    monkeypatch.setattr(  # a process that dies clears nothing
        trials.Trial, "__exit__", lambda self, kind, *rest: None if kind is Died else ended(self, kind, *rest)
    )
    opened: list[int] = []
    for _ in range(20):
        try:
            good = work(folder, 6, {1, 4}, budget, opened)
            break
        except Died:
            continue
    assert good == [0, 2, 3, 5]
    assert opened.count(1) == budget
    assert opened.count(4) == max(1, budget - 1)  # the death of the chunk as a whole was the other's
    assert max(opened.count(number) for number in good) <= 2
    assert list(storage.list_below(folder)) == []


def test_a_chunk_where_nobody_dies_leaves_nothing(folder: str) -> None:
    opened: list[int] = []
    assert work(folder, 3, set(), 3, opened) == opened == [0, 1, 2]
    assert list(storage.list_below(folder)) == []
    assert storage.is_s3(folder) or not Path(folder).exists()


def test_an_error_that_is_survived_blames_no_file(folder: str) -> None:
    with pytest.raises(StorageError), trials.begin(folder, 3):
        raise StorageError("the bucket went away")
    assert not trials.begin(folder, 3).careful


def test_tries_are_no_manifest(tmp_path: Path) -> None:
    trials.begin(str(tmp_path / "manifest" / ".open" / "ab12.tries"), 3)
    assert latest(str(tmp_path)) is None
