"""Passes go on while there is progress, end at once where there can be none, and say which units stand still."""

from __future__ import annotations

import io
import threading
from types import SimpleNamespace

import pytest

from jocr.archive.cost import Meter
from jocr.archive.engine import DEATHS, open_guarded
from jocr.archive.layout import Unit
from jocr.archive.ledger import Ledger
from jocr.archive.passes import run_passes
from jocr.archive.plan import Plan
from jocr.archive.progress import Progress
from jocr.archive.purse import Purse, Ticker
from jocr.archive.run import _count_failed
from jocr.archive.work import Receipt, Work
from jocr.config import CostSettings, ParseRecipe, build
from jocr.decoding.fake import FakeDecoder
from jocr.errors import CheckpointError, EngineError, JocrError, StorageError, StuckError

PLAN = Plan(tuple(Work(Unit(f"u{n}", "part", n, n + 1)) for n in range(10)), 10, 0, 0)


class Board:
    """A ledger of names, and passes that commit ``at_once`` units each before they fail."""

    def __init__(self, at_once, error=None):
        self.done, self.at_once, self.error, self.passes = {}, at_once, error, 0
        self.waits, self.sizes, self.stuck = [], [], set()

    def names(self):
        return dict(self.done)

    def run(self, works):
        self.passes += 1
        self.sizes.append(len(works))
        for work in [work for work in works if work.unit.name not in self.stuck][: self.at_once]:
            self.done[work.unit.name] = 0
            yield Receipt(work.unit.name, 1, True, {"ok": 1})
        if self.error and self.passes > 0 and len(works) > self.at_once:
            raise self.error


def go(board, tell=lambda receipt: False, most=None):
    def cause_of(error):
        return error if isinstance(error, JocrError) else None

    return run_passes(PLAN, board, board.run, tell, cause_of, wait=board.waits.append, most=most)


def test_one_pass_where_nothing_dies():
    board = Board(10)
    assert go(board).passes == 1
    assert len(board.done) == 10


@pytest.mark.parametrize("error", [RuntimeError("a node died"), StorageError("slow down"), None])
def test_what_dies_costs_a_pass(error):
    board = Board(3, error)
    assert go(board).passes == 4
    assert len(board.done) == 10


def test_a_pass_takes_no_more_units_than_it_may():
    board = Board(10)
    assert go(board, most=4).passes == 3
    assert board.sizes == [4, 4, 2]


def test_units_that_stand_still_do_not_keep_the_others_waiting():
    board = Board(10)
    board.stuck = {"u0", "u1", "u2"}
    with pytest.raises(StuckError, match=r"none of 3 units"):
        go(board, most=3)
    assert len(board.done) == 7


@pytest.mark.parametrize("error", [EngineError("no CUDA"), CheckpointError("not whole")])
def test_what_cannot_get_better_ends_at_once(error):
    board = Board(3, error)
    with pytest.raises(type(error), match=str(error)):
        go(board)
    assert board.passes == 1


def test_three_passes_without_progress_name_the_units():
    board = Board(0, RuntimeError("worker died\nlong trace"))
    with pytest.raises(StuckError, match=r"3 passes .* none of 10 units \(u0, u1, u2, \.\.\.\).*worker died$"):
        go(board)
    assert board.passes == 3
    assert board.waits == [5.0, 20.0]


def test_who_is_told_may_ask_for_the_end():
    board = Board(10)
    seen = []
    outcome = go(board, lambda receipt: bool(seen.append(receipt)) or len(seen) == 4)
    assert (len(seen), outcome.pages_pending) == (4, 6)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_line_counts_what_this_run_read():
    clock, stream = Clock(), io.StringIO()
    progress = Progress(100, 20, stream=stream, clock=clock)
    clock.now = 5.0
    progress.add(Receipt("a", 10, True, {"ok": 9, "failed": 1}, carried=0))
    assert stream.getvalue() == ""
    clock.now = 20.0
    progress.add(Receipt("b", 30, True, {"ok": 30}, carried=20))
    progress.add(Receipt("c", 10, False))
    assert stream.getvalue() == "60 of 100 pages, 1 failed, 40 left, 1.00 pages/s, ETA 0:00:40\n"
    progress.close()
    assert stream.getvalue().splitlines()[-1] == "70 of 100 pages, 1 failed, 30 left, 1.00 pages/s, ETA 0:00:30"


def test_the_line_counts_failures_of_all_runs_once():
    progress = Progress(100, 0, stream=io.StringIO(), clock=Clock())
    progress.failed_before({"a": 3, "b": 2})
    progress.add(Receipt("a", 10, True, {"ok": 9, "failed": 1}))  # done anew: it had three
    progress.add(Receipt("c", 10, False, {"ok": 8, "failed": 2}))  # somebody else's
    assert progress.line().startswith("20 of 100 pages, 5 failed, ")
    assert progress.counts["failed"] == 1


def test_failures_of_earlier_runs_are_counted_or_said_not_to_be(tmp_path, monkeypatch):
    ledger = Ledger(str(tmp_path), "s")
    plan = Plan((), 0, 1, 10, (("a" * 24, 0),))
    progress = Progress(20, 10)
    progress.failed_earlier = None
    progress.add(Receipt("b", 5, True, {"ok": 3, "failed": 2}))
    _count_failed(plan, ledger, progress)  # there is no such marker
    assert progress.failed is None
    assert progress.line().startswith("15 of 20 pages, 2 failed now, earlier ones not counted, 5 left")
    monkeypatch.setattr(Ledger, "read", lambda self, units: [SimpleNamespace(counts={"ok": 7, "failed": 3})])
    _count_failed(plan, ledger, progress)
    assert progress.line().startswith("15 of 20 pages, 5 failed, 5 left")


def test_the_line_is_live_on_a_terminal():
    stream = Terminal()
    progress = Progress(2, 0, stream=stream, clock=Clock())
    progress.add(Receipt("a", 1, True, {"ok": 1}))
    progress.add(Receipt("b", 1, True, {"ok": 1}))
    progress.close()
    assert stream.getvalue().count("\r") == 2
    assert stream.getvalue().endswith("\n")


def test_a_purse_counts_decoders_that_idle_too():
    clock = Clock()
    progress = Progress(10, 0, stream=io.StringIO(), clock=clock)
    purse = Purse(Meter(CostSettings(hourly_price=3600.0, budget=10.0), 2), before=4.0, decoders=2)
    clock.now = 2.9
    assert not purse.empty(progress)
    clock.now = 3.0
    assert purse.empty(progress)


def test_a_purse_remembers_what_earlier_runs_held_idle_or_not(tmp_path):
    settings = {"out": str(tmp_path), "sources": ["x"], "cost": {"hourly_price": 3600.0, "budget": 10.0}}
    recipe, ledger = build(ParseRecipe, settings), Ledger(str(tmp_path), "5e77")
    assert Purse.of(recipe, ledger).used() == 0.0
    (tmp_path / "run.json").write_text('{"settings": "5e77", "cost": {"decoder_seconds": 10.5}}')
    assert Purse.of(recipe, ledger).empty()
    assert not Purse.of(recipe, Ledger(str(tmp_path), "0ther")).empty()
    progress = Progress(4, 4, stream=io.StringIO(), clock=Clock())
    assert Purse.of(recipe, ledger).used(progress) == 10.5  # nothing to read: no decoder is held


def test_a_killed_run_has_written_down_what_it_held(tmp_path):
    settings = {"out": str(tmp_path), "sources": ["x"], "cost": {"hourly_price": 3600.0, "budget": 100.0}}
    recipe, ledger, clock = build(ParseRecipe, settings), Ledger(str(tmp_path), "5e77"), Clock()
    progress = Progress(10, 0, stream=io.StringIO(), clock=clock)
    (tmp_path / "run.json").write_text('{"settings": "5e77", "cost": {"decoder_seconds": 10.0}}')
    killed, beside = Purse.of(recipe, ledger, "one"), Purse.of(recipe, ledger, "two")
    clock.now = 20.0
    killed.write(progress)
    clock.now = 30.0
    killed.write(progress)
    assert Purse.of(recipe, ledger, "three").used() == 40.0
    beside.write(progress)  # ran at the same time
    assert Purse.of(recipe, ledger, "three").used() == 60.0
    assert Purse.of(recipe, Ledger(str(tmp_path), "0ther")).used() == 0.0
    Purse.of(recipe, ledger, "idle").write(Progress(4, 4, stream=io.StringIO(), clock=clock))
    assert len(list((tmp_path / "runs" / "5e77").iterdir())) == 2


def test_a_ticker_calls_until_it_is_closed_and_once_more():
    calls, called = [], threading.Event()

    def call():
        calls.append(1)
        called.set()

    ticker = Ticker(call, every=0.01).start()
    assert called.wait(10)
    ticker.close()
    assert len(calls) >= 2


def test_an_engine_whose_start_kills_its_process_is_not_started_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def killed():
        raise SystemExit  # stands for a process that is gone: nothing is cleared

    monkeypatch.setattr("pathlib.Path.unlink", lambda self, missing_ok=False: None)
    for _ in range(DEATHS):
        with pytest.raises(SystemExit):
            open_guarded(killed, "actor")
    with pytest.raises(EngineError, match="processes died while the engine started"):
        open_guarded(FakeDecoder, "actor")
    assert open_guarded(FakeDecoder, "another").info.model == "fake"
    assert open_guarded(FakeDecoder, None).info.model == "fake"


def test_a_restarted_engine_waits_for_the_device_that_its_dead_process_still_holds():
    tries, waits = [], []

    def late():
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("CUDA out of memory")
        return FakeDecoder()

    assert open_guarded(late, None, restarted=True, wait=waits.append).info.model == "fake"
    assert len(waits) == 2
    tries.clear()
    with pytest.raises(EngineError, match="did not start"):
        open_guarded(late, None, wait=waits.append)
    assert len(waits) == 2
