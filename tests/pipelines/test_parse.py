"""The archive job in this process: the same functions that Ray runs, in the same order."""

from __future__ import annotations

import gzip
import json
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jobs._main import main, user_error
from jobs.parse import local_cpus, run, show
from jocr.archive import run as archive
from jocr.archive.commit import commit_unit
from jocr.archive.ledger import Ledger
from jocr.archive.manifest import latest
from jocr.archive.plan import make_plan, plan_redrive
from jocr.archive.run import Summary
from jocr.config import JobSettings, ParseRecipe, RaySettings, build
from jocr.decoding.fake import WORDS, FakeDecoder
from jocr.errors import CheckpointError, ConfigError, EngineError
from jocr.parsing.command import parse
from jocr.parsing.table import read_rows
from pipelines.inventory import run_inventory
from pipelines.parse import parse_archive, settle, stages, units_together
from pipelines.stages import run_local
from tests.archive.made import locked_zip
from tests.pipelines.archive import LOCAL, Counting, page, parse_here, recipe, rows, tiff, timeless

REPO = Path(__file__).resolve().parents[2]
EXAMPLES = REPO / "jocr" / "data" / "examples"
ONLY_ARCHIVE = {"member", "etag", "collection", "key"}


@pytest.fixture
def sources(tmp_path):
    """Three documents of 3, 4 and 2 pages."""
    folder = tmp_path / "sources"
    (folder / "b").mkdir(parents=True)
    (folder / "a.tif").write_bytes(tiff([page(n) for n in (1, 2, 3)]))
    (folder / "b" / "b.tif").write_bytes(tiff([page(n) for n in (4, 5, 6, 7)]))
    (folder / "c.tif").write_bytes(tiff([page(n) for n in (8, 9)]))
    return folder


def test_rows_are_those_of_the_parse_command(tmp_path):
    folder = tmp_path / "sources"
    folder.mkdir()
    for path in EXAMPLES.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "copy.png").write_bytes((EXAMPLES / "harbour.png").read_bytes())
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing follows")
    (folder / "notes.txt").write_text("no document")
    given = recipe(folder, tmp_path / "here", ray={"unit": 4})
    parse(given)
    expected = [timeless(row, without=ONLY_ARCHIVE) for row in read_rows(tmp_path / "here" / "pages.parquet")]
    parse_here(given.model_copy(update={"out": str(tmp_path / "there")}), FakeDecoder())
    found = rows(tmp_path / "there")
    assert [timeless(row, without=ONLY_ARCHIVE) for row in found] == expected
    assert len({row.key for row in found}) == len(found) == 8
    assert all(row.etag for row in found)


def test_what_is_not_there_is_told_alike_by_the_parse_command_and_the_job(sources, tmp_path):
    (sources / "gone.pdf").symlink_to("nowhere")
    (tmp_path / "lost").symlink_to("nowhere")
    named = {"sources": (str(sources), str(tmp_path / "lost"), str(sources / "b"))}
    given = recipe(sources, tmp_path / "here").model_copy(update=named)
    skipped = parse(given).run["skipped"]
    parse_here(given.model_copy(update={"out": str(tmp_path / "there")}))
    info = latest(str(tmp_path / "there"))
    left_out = [(row["uri"], row["reason"], row["detail"]) for row in pq.read_table(info.skipped_uri).to_pylist()]
    assert left_out == [(row["uri"], row["reason"], row["detail"]) for row in skipped]
    assert [uri for uri, _, _ in left_out] == [str(sources / "gone.pdf")]
    for found in (list(read_rows(tmp_path / "here" / "pages.parquet")), rows(tmp_path / "there")):
        (row,) = [row for row in found if row.status == "failed"]
        assert (Path(row.uri).name, row.reason) == ("lost", "unreadable_file")
        assert row.detail == "it is a link to 'nowhere', which leads nowhere"


def test_a_run_that_was_broken_off_goes_on_with_the_rest(sources, tmp_path):
    given = recipe(sources, tmp_path / "out", ray={"unit": 1})
    first = Counting(script={5: "die"})
    with pytest.raises(EngineError, match="died"):
        parse_here(given, first)
    done = len(rows(tmp_path / "out"))
    assert done == 5
    second = Counting()
    summary = parse_here(given, second)
    assert len(second.asked) == 9 - done
    assert summary.counts["ok"] == summary.pages == 9
    third = Counting()
    assert parse_here(given, third).pages_read == 0
    assert third.asked == []


def test_a_changed_file_is_read_again_and_nothing_else(sources, tmp_path):
    given = recipe(sources, tmp_path / "out", ray={"unit": 4})
    parse_here(given)
    before = {row.key: row for row in rows(tmp_path / "out")}
    (sources / "b" / "b.tif").write_bytes(tiff([page(n) for n in (4, 5, 16)]))
    again = Counting()
    summary = parse_here(given, again)
    assert len(again.asked) == 3
    assert summary.pages == 8
    now = {row.key: row for row in rows(tmp_path / "out") if "b.tif" not in row.uri}
    assert now == {key: row for key, row in before.items() if "b.tif" not in row.uri}


def test_other_groups_carry_rows_over(sources, tmp_path):
    parse_here(recipe(sources, tmp_path / "out", ray={"unit": 2}))
    again = Counting()
    summary = parse_here(recipe(sources, tmp_path / "out", ray={"unit": 64}), again)
    assert again.asked == []
    assert (summary.pages, summary.pages_read) == (9, 0)


@pytest.mark.parametrize(
    ("more", "read"),
    [
        ({"model": {"name": "fake", "max_tokens": 77}}, 9),
        ({"model": {"name": "fake", "instruction": "Read it aloud."}}, 9),
        ({"render": {"long_side": 65}}, 9),
        ({"retry": [{"scale": 0.8}]}, 9),
        ({"model": {"name": "fake", "batch": 2, "depth": "3", "page_seconds": 5}}, 0),
        ({"render": {"long_side": 64, "page_seconds": 5, "workers": 3}}, 0),
        ({"ray": {"decoders": 2}, "job": {"attempts": 9}, "outputs": {"jsonl": False}}, 0),
    ],
)
def test_what_changes_the_text_is_read_anew_and_what_does_not_is_not(sources, tmp_path, more, read):
    parse_here(recipe(sources, tmp_path / "out"))
    again = Counting()
    parse_here(recipe(sources, tmp_path / "out", **more), again)
    assert len(again.asked) == read


def test_a_redrive_takes_the_failed_pages_only(sources, tmp_path):
    parse_here(recipe(sources, tmp_path / "out"), Counting(script={2: "error", 5: "empty"}))
    failed = {row.key: row.reason for row in rows(tmp_path / "out") if row.status == "failed"}
    assert sorted(failed.values()) == ["empty_output", "engine_error"]
    again = Counting()
    summary = parse_here(recipe(sources, tmp_path / "out", job={"redrive": "engine_error"}), again)
    assert len(again.asked) == 1
    assert (summary.counts["ok"], summary.counts["failed"]) == (8, 1)
    redriven = next(row for row in rows(tmp_path / "out") if failed.get(row.key) == "engine_error")
    assert (redriven.status, redriven.attempts) == ("ok", 2)
    with pytest.raises(ConfigError, match="reasons in this result: empty_output"):
        parse_here(recipe(sources, tmp_path / "out", job={"redrive": "engine_error"}))


def broken_off(given, out, *positions):
    """Runs that end with their process at these pages (from 0) of those they ask for; what they asked, and how many
    rows are kept."""
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jocr.archive.attempts.Attempt.ended", lambda self: None)  # as where the process was gone
        for position in positions:
            decoder = Counting(script={position: "die"})
            with pytest.raises(EngineError):
                parse_here(given, decoder)
            asked.append(len(decoder.asked))
    return asked, len(list((out / "attempts").rglob("rows/*.json")))


def test_a_broken_off_run_charges_nobody_and_finished_pages_are_not_read_again(sources, tmp_path):
    given = recipe(sources, tmp_path / "out", ray={"unit": 64})
    _, kept = broken_off(given, tmp_path / "out", 4, 7)
    assert 1 <= kept < 9  # the first kept nothing, the second had its unit to itself and kept what was ready
    decoder = Counting()
    parse_here(given, decoder)
    assert len(decoder.asked) == 9 - kept
    found = rows(tmp_path / "out")
    assert sorted(row.attempts for row in found) == [1] * kept + [2] * (9 - kept)
    assert list((tmp_path / "out" / "attempts").rglob("*.json")) == []


def test_after_a_death_of_its_own_pages_go_one_by_one(sources, tmp_path):
    given = recipe(sources, tmp_path / "out", ray={"unit": 64})
    before = broken_off(given, tmp_path / "out", 4, 1)[1]
    asked, kept = broken_off(given, tmp_path / "out", 3)
    assert (asked, kept) == ([4], before + 3)  # three were finished, the fourth was alone in flight


def test_a_resumed_run_tells_of_failures_before_it(sources, tmp_path):
    given = recipe(sources, tmp_path / "out", ray={"unit": 1})
    with pytest.raises(EngineError):
        parse_here(given, Counting(script={1: "error", 5: "die"}))
    ledger = Ledger(str(tmp_path / "out"), settle(given).settings)
    for plan in (make_plan(latest(given.out), ledger), plan_redrive(latest(given.out), ledger, "engine_error")):
        watch = archive.start(plan, given, ledger, lambda pages: None)
        watch.close()  # markers are read beside the run, and waited for at its end
        assert ", 1 failed, " in watch.progress.line()


def test_a_redrive_of_a_part_counts_no_page_as_done_that_has_no_row(sources, tmp_path, caplog):
    given = recipe(sources, tmp_path / "out", ray={"unit": 1})
    with pytest.raises(EngineError):
        parse_here(given, Counting(script={1: "error", 5: "die"}))
    done = len(rows(tmp_path / "out"))
    ledger = Ledger(str(tmp_path / "out"), settle(given).settings)
    plan = plan_redrive(latest(given.out), ledger, "engine_error")
    assert (plan.pages, plan.pages_done, plan.pages_missing) == (1, done - 1, 9 - done)
    summary = parse_here(given.model_copy(update={"job": JobSettings(redrive="engine_error")}))
    assert (summary.pages, summary.pages_read, summary.counts["ok"]) == (done, 1, done)
    assert f"{9 - done} pages have no row yet" in caplog.text


def test_a_page_over_its_budget_is_not_begun(sources, tmp_path):
    given = recipe(sources, tmp_path / "out", ray={"unit": 64}, job={"attempts": 2})
    kept = broken_off(given, tmp_path / "out", 4, 1, 2)[1]  # the driver's, the unit's, the page's
    decoder = Counting()
    parse_here(given, decoder)
    assert len(decoder.asked) == 9 - kept - 1
    (lost,) = [row for row in rows(tmp_path / "out") if row.status != "ok"]
    assert (lost.status, lost.reason, lost.attempts) == ("failed", "attempts_exhausted", 2)
    assert lost.width is not None
    assert "begun 2 times" in lost.detail


def test_with_a_budget_of_one_a_deadly_page_is_started_once_and_no_other_is_lost(sources, tmp_path):
    given = recipe(sources, tmp_path / "out", ray={"unit": 64}, job={"attempts": 1})
    asked, kept = broken_off(given, tmp_path / "out", 4)
    assert (asked, kept) == ([5], 4)
    decoder = Counting()
    summary = parse_here(given, decoder)
    assert len(decoder.asked) == 9 - 5
    assert (summary.counts["ok"], summary.counts["failed"]) == (8, 1)


def test_two_drivers_at_once_leave_one_result(sources, tmp_path):
    given = recipe(sources, tmp_path / "out", ray={"unit": 2})
    summaries = []
    drivers = [threading.Thread(target=lambda: summaries.append(parse_here(given))) for _ in range(2)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert [summary.counts["ok"] for summary in summaries] == [9, 9]
    assert len({row.key for row in rows(tmp_path / "out")}) == len(rows(tmp_path / "out")) == 9


def test_the_retry_ladder_reads_a_page_again_in_another_size(sources, tmp_path):
    given = recipe(sources, tmp_path / "out", retry=[{"on": ["loop"], "scale": 0.5}])
    decoder = Counting(script={3: "loop"})
    parse_here(given, decoder)
    (row,) = [row for row in rows(tmp_path / "out") if row.attempts > 1]
    assert (row.status, row.width) == ("ok", 32)
    assert len(decoder.asked) == 10


def test_selected_pages(sources, tmp_path):
    parse_here(recipe(sources, tmp_path / "out", pages="2-3"))
    assert [row.page for row in rows(tmp_path / "out")] == [2, 3, 2, 3, 2]


def test_a_budget_that_is_spent_ends_the_run_and_the_next_one_says_so(sources, tmp_path):
    cost = {"hourly_price": 3600.0, "budget": 1e-6}
    given = recipe(sources, tmp_path / "out", ray={"unit": 1}, cost=cost)
    summary = parse_here(given)
    assert 0 < summary.pages_left < 9
    assert summary.exit_code(None) == 4
    assert "raise cost.budget" in show(summary)
    left = parse_here(given)
    assert (left.pages_read, left.exit_code(None)) == (0, 4)
    assert parse_here(recipe(sources, tmp_path / "out", ray={"unit": 1})).pages_left == 0


def test_an_engine_that_does_not_start_is_told_at_once(sources, tmp_path):
    def broken():
        raise RuntimeError("CUDA driver version is insufficient")

    with pytest.raises(EngineError, match="did not start: RuntimeError: CUDA driver"):
        parse_archive(recipe(sources, tmp_path / "out"), LOCAL, broken)


def test_a_model_that_is_not_there_is_told_before_any_file_is_opened(sources, tmp_path):
    def never(records, stages):
        raise AssertionError("it went on")

    with pytest.raises(CheckpointError):
        parse_archive(
            recipe(sources, tmp_path / "out", model={"name": str(tmp_path / "none")}), replace(LOCAL, run=never)
        )


def test_settings_that_change_text_have_another_hash(tmp_path):
    first = settle(recipe("x", tmp_path))
    assert first == settle(recipe("y", tmp_path / "elsewhere", force=True))
    assert len({first.settings, settle(recipe("x", tmp_path, model={"name": "nano"})).settings}) == 2


def test_how_many_units_a_decoder_works_on():
    assert units_together(batch=8, unit=128) == 2
    assert units_together(batch=32, unit=64) == 3
    assert units_together(batch=8, unit=1) == 9
    assert units_together(batch=512, unit=1) == 16


def test_bad_settings_are_refused_before_ray_starts(capsys, tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main(ParseRecipe, run, "doc", ["--set", "modle.name=x"])
    assert stopped.value.code == 2
    assert "did you mean" in capsys.readouterr().err
    for more, remedy in [
        ({"out": ""}, "set out"),
        ({"sources": []}, "set sources"),
        ({"pages": "x"}, "pages"),
        ({"cost": {"budget": 3}}, "hourly_price"),
        ({"job": {"redrive": "bad_luck"}}, "attempts_exhausted"),
        ({"ray": {"decoders": 3, "max_decoders": 2}}, "max_decoders"),
        ({"out": "/proc/nowhere"}, "/proc"),
    ]:
        given = {"sources": [str(EXAMPLES)], "out": str(tmp_path / "out"), "model": {"name": "fake"}, **more}
        with pytest.raises(ConfigError, match=remedy):
            run(build(ParseRecipe, given))
    assert list(tmp_path.iterdir()) == []


def test_a_job_runs_its_recipe_with_shortcuts(tmp_path):
    seen = []
    path = tmp_path / "r.toml"
    path.write_text('out = "a"\n')
    argv = [str(path), "--set", "pages=2", "--redrive", "loop", "--fail-above", "0.25"]
    shortcuts = {"redrive": "job.redrive", "fail-above": "fail_above"}
    with pytest.raises(SystemExit) as stopped:
        main(ParseRecipe, lambda given: seen.append(given) or 3, "doc", argv, shortcuts=shortcuts)
    assert stopped.value.code == 3
    assert (seen[0].out, seen[0].pages, seen[0].job.redrive, seen[0].fail_above) == ("a", "2", "loop", 0.25)


def test_exit_codes():
    summary = Summary("out", "s", 4, {"failed": 1, "ok": 3}, {"corrupt": 1}, 4, 2.0, 1)
    assert [summary.exit_code(share) for share in (None, 0.2, 0.25)] == [0, 3, 0]
    assert "1 x corrupt" in show(summary)


def test_the_error_behind_what_ray_raises():
    outer = RuntimeError("outer")
    outer.__cause__ = EngineError("inner")
    assert str(user_error(outer)) == "inner"
    assert user_error(ValueError("bug")) is None

    class Wrapped(EngineError):  # as RayTaskError.as_instanceof_cause makes it
        cause = EngineError("inner")

    assert str(user_error(Wrapped("Traceback ..."))) == "inner"


@dataclass
class Headed(Counting):
    """Every page is a running line and a line of its own."""

    def decode(self, pages):
        for transcript in super().decode(pages):
            number = len(self.asked)
            body = f"The {WORDS[number % 13]} of {WORDS[5 * number % 13]} was sold in {1800 + number}."
            yield replace(transcript, text=f"ANNALS OF THE TOWN\n\n{body}")


@pytest.mark.parametrize("policy", ["keep", "drop"])
def test_running_lines_of_two_line_pages_are_kept_or_dropped_in_every_output(sources, tmp_path, policy):
    out = tmp_path / "out"
    parse_here(recipe(sources, out, outputs={"running_lines": policy}), Headed())
    kept = 4 if policy == "keep" else 0
    assert all(row.markdown.startswith("ANNALS OF THE TOWN\n\n") for row in rows(out))  # the page table has all
    text = (out / "documents" / "b" / "b.tif.md").read_text()
    assert (text.count("ANNALS OF THE TOWN"), text.count("was sold in")) == (kept, 4)
    pages = [row for row in pq.read_table(out / "documents.parquet").to_pylist() if row["name"] == "b/b.tif"]
    bodies = [text[row["header_end"] : row["footer_start"]].strip() for row in pages]
    assert all(body.startswith("The ") and body.endswith(".") for body in bodies)
    assert [row["header_end"] > row["start"] for row in pages] == [policy == "keep"] * 4
    texts = [gzip.decompress(part.read_bytes()) for part in (out / "jsonl").rglob("*.gz")]
    lines = [json.loads(line) for part in texts for line in part.splitlines()]
    (line,) = [line for line in lines if line["metadata"]["name"] == "b/b.tif"]
    assert line["text"].count("ANNALS OF THE TOWN") == len(line["attributes"]["running_lines"]) == kept
    for start, end, number in line["attributes"]["pdf_page_numbers"]:
        assert line["text"][start:end].endswith(bodies[number - 1])


@pytest.mark.parametrize(
    ("passwords", "reason"),
    [({}, "encrypted"), ({"*.zip/*": "guess"}, "wrong_password"), ({"*.zip/*": "sesame"}, None)],
)
def test_an_encrypted_member_is_a_row_with_its_reason(tmp_path, passwords, reason):
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "box.zip").write_bytes(locked_zip("deep/scan.tif", tiff([page(5)]), b"sesame"))
    (folder / "beside.tif").write_bytes(tiff([page(6)]))
    given = recipe(folder, tmp_path / "out", render={"long_side": 64, "passwords": passwords})
    parse_here(given)
    beside, inside = rows(tmp_path / "out")
    assert beside.status == "ok"
    assert (inside.member, inside.reason, inside.status) == ("deep/scan.tif", reason, "failed" if reason else "ok")


def test_a_ray_of_this_machine_has_room_for_its_decoders_and_for_one_renderer_more_than_there_are_cores(monkeypatch):
    monkeypatch.setattr("jobs.parse.os.sched_getaffinity", lambda process: {0, 1})
    assert local_cpus(RaySettings(decoders=1, decoder_cpus=1.0)) == 4
    assert local_cpus(RaySettings(decoders=2, decoder_cpus=0.5)) == 4
    assert local_cpus(RaySettings(decoders=1, max_decoders=3, decoder_cpus=0.5)) == 5


def test_a_unit_is_committed_by_the_decoder_that_read_it(sources, tmp_path):
    given = recipe(sources, tmp_path / "out", ray={"unit": 4})
    reading = settle(given)
    info = run_inventory(given, lambda *_: None, run=run_local)
    ledger = Ledger(given.out, reading.settings)
    works = make_plan(info, ledger).works
    seen = []

    def commit(read):
        seen.append(read.work.unit.name)
        return commit_unit(read, ledger)

    line = stages(given, reading, ledger, Counting, commit=commit)
    receipts = list(run_local(works, line))
    assert [receipt.unit for receipt in receipts] == seen == [work.unit.name for work in works]
    assert set(ledger.names()) == set(seen)
    assert not make_plan(info, ledger).works
