"""The journal of a unit: deaths are found, charged to the page in flight, and end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jocr import storage
from jocr.archive.attempts import Attempt, Journal
from jocr.archive.layout import ATTEMPTS, Unit, place
from jocr.errors import LedgerError, StorageError
from jocr.records import ParsedPage

ROW = ParsedPage(
    page_id="a:0", uri="a\udcff.pdf", sha256="a", page=1, status="ok", reason=None, detail="", markdown="é 漢",
    tokens=7, prompt_tokens=3, stop="end", seconds=1.5, render_seconds=0.5, decode_seconds=1.0, tau=1.25,
    acceptance=None, width=10, height=20, rotation=0, dpi=72.0, blank_evidence="", notes="", renderer="r", model="m",
    revision=None, prompt_hash=None, engine=None,
)  # fmt: skip


@pytest.fixture(params=["local", "s3"])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path)
    make: Callable[[], str] = request.getfixturevalue("s3")
    return f"s3://{make()}/out"


@pytest.fixture
def journal(out: str) -> Journal:
    return Journal(out, "5e77", Unit("ab12", "part", 0, 4))


def objects(out: str) -> int:
    return sum(1 for _ in storage.list_below(place(out, ATTEMPTS)))


class Died(BaseException):
    """What SIGKILL leaves: nobody tells the journal."""


def work(attempt: Attempt, keys: list[int], poison: set[int]) -> dict[int, str]:
    """What a decode actor does with a unit, and what becomes of each page. Where pages share a batch, those before the
    poison page are finished first."""
    done: dict[int, str] = {}
    if attempt.mode != "alone":
        if attempt.mode == "apart":
            attempt.parted()
        for key in keys:
            if key in poison:
                raise Died
            done[key] = "saved" if key in attempt.rows else "ok"
            if attempt.mode == "apart":
                attempt.saved(replace(ROW, key=key))
        attempt.ended()
        return done
    for key in keys:
        if key in attempt.rows:
            done[key] = "saved"
        elif attempt.exhausted(key):
            done[key] = "exhausted"
        else:
            attempt.started(key)
            if key in poison:
                raise Died
            attempt.saved(replace(ROW, key=key))
            done[key] = "ok"
    attempt.ended()
    return done


def until_done(journal: Journal, keys: list[int], poison: set[int], budget: int) -> tuple[dict[int, str], int]:
    for deaths in range(100):
        try:
            return work(journal.begin(budget), keys, poison), deaths
        except Died:
            continue
    raise AssertionError("it never ends")


def test_a_first_attempt_is_one_object_and_leaves_none(out: str, journal: Journal) -> None:
    with journal.begin(3) as attempt:
        assert (attempt.mode, attempt.kept, attempt.deaths, attempt.rows) == ("together", False, 0, {})
        assert attempt.charged(1) == 0
        assert objects(out) == 1
    assert objects(out) == 0


def test_an_exception_that_is_survived_charges_nobody(out: str, journal: Journal) -> None:
    with pytest.raises(RuntimeError), journal.begin(3):
        raise RuntimeError("the bucket went away")
    assert journal.begin(3).mode == "together"
    careful = journal.begin(3)  # the one before did not end
    careful.started(1)
    careful.saved(replace(ROW, key=1))
    careful.started(2)
    careful.ended()
    after = journal.begin(2)
    assert (after.deaths, after.charged(2), after.charged(1)) == (1, 1, 0)  # the whole unit's death alone
    assert not after.exhausted(2)
    assert after.rows == {1: replace(ROW, key=1)}


def test_a_page_is_charged_up_to_the_budget_and_its_neighbours_live(journal: Journal) -> None:
    done, deaths = until_done(journal, [1, 2, 3, 4], poison={2, 4}, budget=3)
    assert done == {1: "saved", 2: "exhausted", 3: "saved", 4: "exhausted"}
    assert deaths == 1 + 2 + 2  # the whole unit once, then each poison page alone, twice
    after = journal.begin(3)
    assert {key: after.charged(key) for key in (1, 2, 3, 4)} == {1: 0, 2: 3, 3: 0, 4: 3}


@pytest.mark.parametrize("budget", [1, 2, 4])
def test_no_page_is_given_up_for_its_neighbour(tmp_path: Path, budget: int) -> None:
    journal = Journal(str(tmp_path), "5e77", Unit("ab12", "part", 0, 3))
    done, deaths = until_done(journal, [1, 2, 3], poison={3}, budget=budget)
    assert done == {1: "saved", 2: "saved", 3: "exhausted"}
    assert deaths == budget  # exactly so many starts, and the first is shared only where there is a second


def test_death_between_two_pages_charges_nobody(journal: Journal) -> None:
    journal.begin(3)
    careful = journal.begin(3)
    assert journal.begin(3).charged(1) == 1  # of the whole unit; the careful one has begun no page
    careful.started(1)
    careful.saved(replace(ROW, key=1))
    after = journal.begin(3)
    assert after.deaths == 3
    assert (after.charged(1), after.charged(2)) == (0, 1)
    assert not after.exhausted(2)


def test_a_node_that_was_not_dead_disturbs_nothing(journal: Journal) -> None:
    slow = journal.begin(3)
    other = journal.begin(3)
    assert other.mode == "alone"
    other.started(1)
    slow.ended()
    third = journal.begin(3)  # the slow one is no death any more; the other one looks like one
    assert (third.deaths, third.charged(1), third.charged(2)) == (1, 1, 0)
    other.saved(replace(ROW, key=1))
    third.saved(replace(ROW, key=1, markdown="again"))
    other.ended()
    third.ended()
    assert journal.begin(3).mode == "together"


def test_generations_and_settings_keep_apart_and_a_commit_forgets(out: str, journal: Journal) -> None:
    journal.begin(3)
    journal.begin(3).saved(replace(ROW, key=1))
    assert not Journal(out, "5e77", replace(journal.unit, generation=1)).begin(3).deaths
    assert not Journal(out, "0ther", journal.unit).begin(3).deaths
    journal.clear()
    assert objects(out) == 2
    assert journal.begin(3).mode == "together"


def test_damage_and_unwritable_journals_are_told(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), "5e77", Unit("ab12", "part", 0, 1))
    begun = journal.begin(3)
    storage.atomic_write(begun.uri, b"")  # what a power cut may leave of it
    assert journal.begin(3).charged(1) == 1
    storage.atomic_write(begun.uri, b"{}")
    with pytest.raises(LedgerError, match="not a record of this program"):
        journal.begin(3)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="name another place"):
        Journal(str(tmp_path / "file"), "5e77", journal.unit).begin(3)


def runs(out: str, *names: str) -> list[Journal]:
    return [Journal(out, "5e77", Unit("ab12", "part", 0, 4), name) for name in names]


def test_a_driver_that_died_charges_nobody_and_the_unit_goes_on_at_full_batch(out: str) -> None:
    first, second = runs(out, "one", "two")
    first.begin(3)  # its decoder went with the driver: nothing of that run comes after it
    attempt = second.begin(3)
    assert (attempt.mode, attempt.kept, attempt.charged(1)) == ("apart", True, 0)
    assert work(attempt, [1, 2, 3], set()) == {1: "ok", 2: "ok", 3: "ok"}
    assert second.begin(3).rows.keys() == {1, 2, 3}


def test_a_page_that_takes_the_driver_with_it_every_time_is_charged_until_it_ends(tmp_path: Path) -> None:
    keys, modes = [1, 2, 3], []
    for number in range(10):  # every start is a run of its own
        (journal,) = runs(str(tmp_path), f"run {number}")
        attempt = journal.begin(3)
        modes.append(attempt.mode)
        try:
            done = work(attempt, keys, {2})
            break
        except Died:
            pass
    assert modes == ["together", "apart", "alone", "alone", "alone"]  # the first is the driver's, three are the page's
    assert done == {1: "saved", 2: "exhausted", 3: "ok"}


def test_a_decoder_that_died_before_its_driver_did_is_charged(tmp_path: Path) -> None:
    first, second = runs(str(tmp_path), "one", "two")
    first.begin(3)
    again = first.begin(3)  # the same run began another: its driver lived
    assert (again.mode, again.charged(1)) == ("alone", 1)
    after = second.begin(3)
    assert (after.mode, after.charged(1)) == ("alone", 1)


def test_a_neighbour_that_meets_kills_of_every_kind_is_not_given_up(tmp_path: Path) -> None:
    first, second = runs(str(tmp_path), "one", "two")
    first.begin(3)  # the driver was killed
    with pytest.raises(Died):
        work(second.begin(3), [1, 2], {2})
    attempt = second.begin(3)
    attempt.started(1)  # a worker is killed while page 1, which is good, is in flight
    assert work(second.begin(3), [1], set()) == {1: "saved"}  # it was finished before page 2 killed
    alone = second.begin(3)
    alone.started(3)
    assert not second.begin(3).exhausted(3)
