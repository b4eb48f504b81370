"""Files that kill the process which fetches or unpacks them for rendering: they cost their own pages, no other's."""

from __future__ import annotations

from functools import partial

import pytest

from jocr.archive import opening, trials
from jocr.archive.ledger import Ledger
from jocr.archive.places import Places
from jocr.archive.plan import make_plan
from jocr.archive.render import render_unit
from jocr.pages.render import Renderer
from jocr.parsing.command import render_limits
from jocr.records import PageFailure
from pipelines.inventory import run_inventory
from pipelines.parse import on_ray, parse_archive, settle
from pipelines.stages import run_local
from tests.archive.made import zipped
from tests.pipelines.archive import page, recipe, rows, tiff


class Died(BaseException):
    """What SIGKILL leaves: nothing is cleared."""


@pytest.fixture
def sources(tmp_path):
    """A zip of three documents and a plain one: seven pages."""
    folder = tmp_path / "sources"
    folder.mkdir()
    held = [(f"{name}.tif", tiff([page(n), page(n + 1)])) for n, name in ((1, "a"), (3, "b"), (5, "c"))]
    (folder / "box.zip").write_bytes(zipped(held))
    (folder / "plain.tif").write_bytes(tiff([page(9)]))
    return folder


@pytest.fixture
def mortal(monkeypatch):
    """A process that dies clears nothing."""
    ended = trials.Trial.__exit__
    monkeypatch.setattr(
        trials.Trial, "__exit__", lambda self, kind, *rest: None if kind is Died else ended(self, kind, *rest)
    )


class Deadly(Places):
    """Dies where one of ``members`` is unpacked; with ``container``, where the container is opened at all."""

    members: tuple[str, ...] = ()
    container = False
    opened = 0

    def look(self, page):
        if self.container:
            raise Died
        super().look(page)

    def local(self, run):
        if any(page.member in self.members or (page.member and self.container) for page in run):
            self.opened += 1
            raise Died
        return super().local(run)


def settled(sources, tmp_path, **more):
    given = recipe(sources, tmp_path / "out", ray={"unit": 64}, **more)
    info = run_inventory(given, lambda listed, opened: None, run=run_local)
    reading = settle(given)
    ledger = Ledger(given.out, reading.settings)
    (work,) = make_plan(info, ledger).works
    return given, reading, ledger, work


def render(given, reading, ledger, work, places, names):
    """Starts as Ray would make them; (sheets, starts)."""
    with Renderer(render_limits(given)) as renderer:
        for starts, name in enumerate(names, 1):
            try:
                return render_unit(work, given, reading, ledger, renderer, places, name), starts
            except Died:
                continue
    raise AssertionError("it never ended")


def outcomes(sheets):
    return [
        (shot.page.member or "plain", shot.result.reason if isinstance(shot.result, PageFailure) else "ok")
        for shot in sheets.shots
    ]


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_a_deadly_member_fails_alone(sources, tmp_path, mortal, budget):
    given, reading, ledger, work = settled(sources, tmp_path, job={"attempts": budget})
    places = Deadly(given)
    places.members = ("b.tif",)
    sheets, starts = render(given, reading, ledger, work, places, ["one"] * 9)
    bad = ("b.tif", "attempts_exhausted")
    assert outcomes(sheets) == [("a.tif", "ok")] * 2 + [bad] * 2 + [("c.tif", "ok")] * 2 + [("plain", "ok")]
    assert places.opened == budget == starts - 1
    assert {shot.attempts for shot in sheets.shots if shot.page.member == "b.tif"} == {budget}
    assert not [path for path in (tmp_path / "out" / "attempts").rglob("*") if path.is_file()]


def test_a_deadly_container_costs_what_it_holds(sources, tmp_path, mortal):
    given, reading, ledger, work = settled(sources, tmp_path)
    places = Deadly(given)
    places.container = True
    sheets, starts = render(given, reading, ledger, work, places, ["one"] * 9)
    assert [reason for _, reason in outcomes(sheets)] == ["attempts_exhausted"] * 6 + ["ok"]
    assert starts == 4
    assert "its container died 3 times" in sheets.shots[0].result.detail


def test_two_drivers_that_die_while_a_file_is_read_do_not_make_it_a_deadly_one(sources, tmp_path, mortal):
    given, reading, ledger, work = settled(sources, tmp_path)
    places = Deadly(given)
    places.members = ("b.tif",)
    for name in ("one", "two", "three"):  # each run dies once, with the file open
        with pytest.raises(AssertionError):
            render(given, reading, ledger, work, places, [name])
    places.members = ()
    sheets, _ = render(given, reading, ledger, work, places, ["four"])
    assert {reason for _, reason in outcomes(sheets)} == {"ok"}


def test_a_file_that_takes_every_driver_along_ends_too(sources, tmp_path, mortal):
    given, reading, ledger, work = settled(sources, tmp_path)
    places = Deadly(given)
    places.members = ("b.tif",)
    sheets, starts = render(given, reading, ledger, work, places, [str(number) for number in range(9)])
    assert outcomes(sheets).count(("b.tif", "attempts_exhausted")) == 2
    assert starts == 5


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_a_member_that_kills_the_inventory_costs_itself(sources, tmp_path, mortal, monkeypatch, budget):
    given = recipe(sources, tmp_path / "out", job={"attempts": budget})
    real, opened = opening.extract_run, []

    def guarded(path, wanted, target, **options):
        for member in wanted:
            for pair in real(path, [member], target, **options):
                opened.append(member.name)
                if member.name == "b.tif":
                    raise Died
                yield pair

    monkeypatch.setattr(opening, "extract_run", guarded)

    def run(chunks, stages):
        """As Ray does it: a task that dies is started again."""
        (stage,) = stages
        for chunk in chunks:
            for _ in range(9):
                try:
                    found = list(stage.function(chunk))
                    break
                except Died:
                    continue
            yield from found

    info = run_inventory(given, lambda listed, opened: None, run=run)
    assert (info.pages, info.documents, info.reasons) == (2 + 1 + 2 + 1, 4, {"attempts_exhausted": 1})
    assert opened.count("b.tif") == budget
    assert not [path for path in (tmp_path / "out" / "manifest").rglob("*") if ".tries" in str(path)]


def deadly_render(work, *, real, member):
    """``render`` whose process ends where it unpacks a member of this name."""
    import os

    from jocr.archive.spool import Spool

    unpack = Spool._unpack

    def guarded(self, uri, etag, run, *rest):
        if any(one.name == member for one in run):
            os._exit(11)
        return unpack(self, uri, etag, run, *rest)

    Spool._unpack = guarded
    try:
        yield from real(work)
    finally:
        Spool._unpack = unpack


@pytest.mark.ray
def test_on_ray_the_job_goes_on_without_the_pages_of_a_deadly_member(ray_cluster, sources, tmp_path):
    import sys
    from dataclasses import replace

    from ray import cloudpickle

    given = recipe(sources, tmp_path / "out", ray={"unit": 64})
    on = on_ray(given)

    def run(records, stages):
        return on.run(records, [
            replace(stage, function=partial(deadly_render, real=stage.function, member="b.tif"))
            if stage.name == "render" else stage
            for stage in stages
        ])  # fmt: skip

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        summary = parse_archive(given, replace(on, run=run))
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert (summary.pages, summary.counts["ok"], summary.counts["failed"]) == (7, 5, 2)
    failed = [row for row in rows(tmp_path / "out") if row.status == "failed"]
    assert {(row.member, row.reason, row.attempts) for row in failed} == {("b.tif", "attempts_exhausted", 3)}
