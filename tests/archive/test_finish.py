"""The end of an archive's run: complete tables, nothing stale, a summary that adds up, and the same when done again."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jocr.archive.cost import Meter
from jocr.archive.figures import cost, sessions, speed
from jocr.archive.finish import finish, shards
from jocr.archive.outputs import write_shard
from jocr.archive.summary import histogram
from jocr.config import CostSettings, ParseRecipe, build
from jocr.errors import JocrError
from jocr.records import STATUSES

from .results import Doc, commit_all, manifest_pages, row_of, save_manifest

DOCS = [
    Doc("a/one.pdf", 1),
    Doc("a/four.pdf", 4),
    Doc("b/long.pdf", 21),
    Doc("b/bad.pdf", 0, reason="corrupt"),
    Doc("c.png", 1),
]


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)


def recipe(out, **more):
    return build(
        ParseRecipe, {"out": str(out), "sources": ["x"], "cost": {"hourly_price": 1.8, "forecast_pages": 10}, **more}
    )


def rows_for(pages):
    rows = {}
    for page in pages:
        if page.reason:
            rows[page.key] = row_of(page, status="failed", reason=page.reason, stop=None, tokens=0)
        elif page.index == 2:
            rows[page.key] = row_of(page, "again again", status="loop", reason="loop", stop="loop")
        else:
            rows[page.key] = row_of(page, f"<script>x</script> Page {page.index}")
    return rows


def committed(tmp_path, docs=DOCS):
    pages = manifest_pages(docs)
    info = save_manifest(str(tmp_path), pages)
    rows = rows_for(pages)
    return info, pages, rows, commit_all(str(tmp_path), info, pages, rows)


def run(settings, info, ledger, **more):
    planned = shards(settings, info, ledger, pages=8)
    for shard in planned:
        write_shard(ledger, shard, settings.outputs)
    return finish(settings, info, ledger, planned, image=lambda page, row: b"JPEG", alone=True, **more)


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


def test_tables_and_summary_add_up(tmp_path):
    info, pages, rows, ledger = committed(tmp_path)
    found = run(recipe(tmp_path), info, ledger)
    assert json.loads(Path(tmp_path, "run.json").read_text()) == found
    mapped = pq.read_table(tmp_path / "documents.parquet").to_pylist()
    assert [row["key"] for row in mapped] == [page.key for page in pages]
    failures = pq.read_table(tmp_path / "failures.parquet").to_pylist()
    assert [row["key"] for row in failures] == [key for key, row in rows.items() if row.status != "ok"]
    assert any(row["markdown"] for row in failures)
    assert found["pages"] == len(pages) == sum(found["counts"].values()) == sum(found["attempts"].values())
    assert (found["pending"], found["failures"]) == (0, len(failures))
    assert found["counts"] == {s: sum(row.status == s for row in rows.values()) for s in STATUSES}
    assert found["reasons"] == {"loop": 2, "corrupt": 1}
    assert {c["name"]: c["pages"] for c in found["collections"]} == {"a": 5, "b": 22, "": 1}
    assert sum(found["tokens_per_page"]["pages"]) == len(pages) - 1
    units = len(ledger.committed())
    assert found["cost"]["decoder_seconds"] == pytest.approx(2.0 * units)
    assert found["cost"]["money"] == pytest.approx(units * 0.001)
    assert found["cost"]["forecast"]["total"] == len(pages)
    assert (found["model"], found["engine"]) == ("m", "e")
    assert found["documents"]["written"] == len(DOCS)


def test_report_is_safe_and_shows_every_status_and_collection(tmp_path):
    info, _, _, ledger = committed(tmp_path)
    run(recipe(tmp_path, report={"pages": 8}), info, ledger)
    html = (tmp_path / "report.html").read_text("utf-8")
    assert "<script" not in html
    assert html.count('<section class="page') == 8
    assert {s for s in STATUSES if f'<section class="page {s}"' in html} == {"ok", "loop", "failed"}
    assert all(f"<span>{name}</span>" in html for name in ("a", "b"))
    assert "8 of 28 pages shown" in html
    assert html.count("<svg") == 2
    assert "USD per million pages" in html
    assert "forecast for 28 pages from the first" in html


def test_done_again_it_is_the_same(tmp_path):
    info, _, _, ledger = committed(tmp_path)
    run(recipe(tmp_path), info, ledger)
    first = files(tmp_path)
    run(recipe(tmp_path), info, ledger)
    again = files(tmp_path)
    changed = {name for name in first if first[name] != again.get(name)}
    assert set(first) == set(again)
    assert changed <= {"run.json", "report.html"}  # the time of writing


def test_what_a_result_no_longer_holds_goes(tmp_path):
    info, pages, rows, ledger = committed(tmp_path)
    run(recipe(tmp_path), info, ledger)
    stray = Path(tmp_path, "pages", ledger.settings, f"{'0' * 24}.0-{'a' * 20}.parquet")
    stray.write_bytes(b"half")
    mine = Path(tmp_path, "documents", "notes by hand.md")
    mine.write_text("kept")
    fewer = [page for page in pages if page.name != "a/four.pdf"]
    info = save_manifest(str(tmp_path), fewer)
    commit_all(str(tmp_path), info, fewer, rows)
    run(recipe(tmp_path), info, ledger)
    assert not stray.exists()
    assert mine.exists()
    assert not Path(tmp_path, "documents/a/four.pdf.md").exists()
    assert Path(tmp_path, "documents/a/one.pdf.md").exists()
    assert {row["name"] for row in pq.read_table(tmp_path / "documents.parquet").to_pylist()} == {p.name for p in fewer}
    run(recipe(tmp_path, outputs={"markdown": False, "jsonl": False}), info, ledger)
    left = {name.split("/")[0] for name in files(tmp_path)}
    assert "jsonl" not in left
    assert "documents.parquet" not in left
    assert [str(p) for p in Path(tmp_path, "documents").rglob("*.md")] == [str(mine)]


def keys_in(folder):
    return sorted(row["key"] for file in Path(folder).glob("*.parquet") for row in pq.read_table(file).to_pylist())


def test_the_folder_of_pages_holds_each_page_of_the_manifest_once_and_what_left_it_comes_back(tmp_path):
    info, pages, rows, ledger = committed(tmp_path)
    run(recipe(tmp_path), info, ledger)
    folder = Path(tmp_path, "pages", ledger.settings)
    before = files(folder)
    assert keys_in(folder) == sorted(page.key for page in pages)
    fewer = [page for page in pages if page.name != "a/four.pdf"]
    less = save_manifest(str(tmp_path), fewer)
    commit_all(str(tmp_path), less, fewer, rows)
    found = run(recipe(tmp_path), less, ledger)
    assert keys_in(folder) == sorted(page.key for page in fewer)
    assert found["pages"] == len(fewer)
    held = [row.key for commit in ledger.committed().values() for row in ledger.rows(commit)]
    assert {page.key for page in pages} == set(held)  # what is no longer named is still there to be carried over
    run(recipe(tmp_path), info, ledger)
    assert files(folder) == before


def test_a_change_back_never_leaves_the_other_variant(tmp_path):
    """Dropping, killed before its end, then keeping again: documents and receipts agree."""
    docs = [Doc("x/book.pdf", 12), Doc("x/more.pdf", 12)]
    pages = manifest_pages(docs)
    info = save_manifest(str(tmp_path), pages)
    rows = {
        p.key: row_of(p, f"THE BOOK OF HOURS {p.index + 1}\n\nText {'abcdefghijklm'[p.index] * 9} of it.")
        for p in pages
    }
    ledger = commit_all(str(tmp_path), info, pages, rows)
    keep, drop = recipe(tmp_path), recipe(tmp_path, outputs={"running_lines": "drop"})
    run(keep, info, ledger)
    kept = files(Path(tmp_path, "documents"))
    planned = shards(drop, info, ledger, pages=8)
    write_shard(ledger, planned[0], drop.outputs)  # and there it dies
    assert files(Path(tmp_path, "documents")) != kept
    run(keep, info, ledger)
    assert files(Path(tmp_path, "documents")) == kept


def test_a_missing_shard_is_told(tmp_path):
    info, _, _, ledger = committed(tmp_path)
    settings = recipe(tmp_path)
    planned = shards(settings, info, ledger, pages=8)
    for shard in planned[1:]:
        write_shard(ledger, shard, settings.outputs)
    with pytest.raises(JocrError, match="shards are not written"):
        finish(settings, info, ledger, planned, image=lambda page, row: None)
    assert not Path(tmp_path, "run.json").exists()


def test_pending_pages_are_said(tmp_path):
    pages = manifest_pages(DOCS)
    info = save_manifest(str(tmp_path), pages)
    rows = rows_for(pages)
    del rows[pages[10].key]
    ledger = commit_all(str(tmp_path), info, pages, rows)
    found = run(recipe(tmp_path), info, ledger)
    assert found["pending"] > 0
    assert found["pages"] + found["pending"] == len(pages)
    assert "pages have no row yet" in (tmp_path / "report.html").read_text("utf-8")


def commits(tmp_path, moments, busy=1.0):
    _, _, _, ledger = committed(tmp_path)
    one = next(iter(ledger.committed().values()))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        replace(one, unit=str(i), created=(start + timedelta(seconds=m)).isoformat(), busy_seconds=busy, carried=0)
        for i, m in enumerate(moments)
    ]


def test_pauses_are_no_working_time(tmp_path):
    done = commits(tmp_path, [10, 20, 30, 40, 90_000, 90_010, 90_020])
    work = sessions(reversed(done))
    assert [len(session.commits) for session in work] == [4, 3]
    assert [session.seconds for session in work] == [31.0, 21.0]
    facts = speed(work)
    pages = sum(commit.pages for commit in done)
    assert facts["pages_per_second"] == pytest.approx(pages / 52, rel=1e-3)
    steps = facts["over_time"]
    assert sum(value for _, value in steps) * 52 / len(steps) == pytest.approx(pages, rel=1e-3)
    assert speed([])["over_time"] == []


def test_forecast_comes_from_the_first_pages_alone(tmp_path):
    done = commits(tmp_path, range(10, 90, 10), busy=2.0)
    done += [
        replace(commit, unit=f"late{i}", created="2026-02-01T00:00:00+00:00", busy_seconds=50.0)
        for i, commit in enumerate(done)
    ]
    size = done[0].pages
    meter = Meter(CostSettings(hourly_price=3600.0, forecast_pages=3 * size), 1)
    facts = cost(done, meter, pages=16 * size, total=16 * size, decoder_seconds=None)
    assert facts["forecast"]["done"] == 3 * size
    assert facts["forecast"]["decoder_seconds"] == pytest.approx(32.0)
    assert facts["money"] == pytest.approx(8 * 2.0 + 8 * 50.0)
    assert cost([], meter, pages=0, total=5, decoder_seconds=None)["forecast"] is None


def test_histogram_keeps_every_page():
    tokens = {0: 5, 3: 2, 200: 1}
    found = histogram(tokens)
    assert sum(found["pages"]) == 8
    assert len(found["pages"]) <= 64
    assert found["pages"][-1] == 1
    assert histogram({}) == {"step": 64, "pages": []}
    assert histogram({1: 4}) == {"step": 64, "pages": [0, 4]}


def test_images_are_rendered_where_the_documents_lie(tmp_path):
    """A real renderer: a plain file, a member of a zip, and one that is gone."""
    import hashlib

    from PIL import Image

    from jocr.archive.finish import Images
    from jocr.archive.places import Places
    from jocr.archive.spool import Spool
    from jocr.pages.render import Renderer

    from .made import zipped

    picture = io.BytesIO()
    Image.new("RGB", (300, 200), "white").save(picture, "PNG")
    data = picture.getvalue()
    (tmp_path / "p.png").write_bytes(data)
    (tmp_path / "box.zip").write_bytes(zipped([("in/p.png", data)]))
    settings = recipe(tmp_path, report={"image_side": 64})
    base = replace(manifest_pages([Doc("p.png", 1)])[0], sha256=hashlib.sha256(data).hexdigest(), kind="png", etag="")
    plain = replace(base, uri=str(tmp_path / "p.png"))
    member = replace(base, uri=str(tmp_path / "box.zip"), member="in/p.png")
    gone = replace(base, uri=str(tmp_path / "gone.png"))
    with Renderer() as renderer:
        images = Images(settings, renderer, Places(settings, Spool(tmp_path / "spool", 1 << 20)))
        for page in (plain, member):
            with Image.open(io.BytesIO(images(page, row_of(page)))) as image:
                assert (image.format, image.size) == ("JPEG", (64, 43))
        assert images(gone, row_of(gone)) is None
        assert images(plain, row_of(plain, width=None)) is None
        late = Images(settings, renderer, Places(settings), seconds=-1)
        assert late(plain, row_of(plain)) is None


def test_on_object_storage_it_is_the_same_result(tmp_path, s3):
    from jocr import storage

    docs = [Doc("a/four #1.pdf", 4), Doc("é/bad.pdf", 0, reason="corrupt")]
    pages = manifest_pages(docs)
    results = []
    for out in (str(tmp_path / "out"), f"s3://{s3()}/out"):
        info = save_manifest(out, pages)
        found = run(recipe(out), info, commit_all(out, info, pages, rows_for(pages)))
        names = [entry.uri.removeprefix(out) for entry in storage.list_below(out)]
        documents = {name: storage.read_bytes(out + name) for name in names if name.endswith(".md")}
        results.append((sorted(name for name in names if "/pages/" not in name), documents, found["counts"]))
    assert results[0] == results[1]
    assert len(results[0][1]) == 2
