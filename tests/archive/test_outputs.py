"""Documents from committed rows: whatever shards they fall into, in page order, with maps that point at the text."""

from __future__ import annotations

import gzip
import io
import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jocr.archive.layout import PARTS
from jocr.archive.outputs import read_written, total, write_shard
from jocr.archive.samples import Candidate, choose, reduce
from jocr.archive.shards import plan_shards
from jocr.config import OutputSettings
from jocr.documents import join

from .results import Doc, commit_all, manifest_pages, row_of, save_manifest

DOCS = [
    Doc("a/one.pdf", 1), Doc("a/two pages #1.pdf", 2), Doc("b/long.pdf", 27), Doc("b/broken.pdf", 0, reason="corrupt"),
    *[Doc(f"c/{i:02d}.png", 1) for i in range(8)], Doc("d/inner.zip/x/é.pdf", 5, member="x/é.pdf"), Doc("top.pdf", 9),
    Doc("e/b\udcffd.pdf", 3),
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    """A busy disk takes a second for each; what is lost at a power cut is not the matter here."""
    monkeypatch.setattr("os.fsync", lambda handle: None)


def text_of(page, rng):
    words = ["".join(rng.choices("abcdéßж😀", k=5)) for _ in range(20)]
    return f"THE ANNALS {page.index + 5}\n\nText of {' '.join(words)}."


def rows_for(pages, seed=1):
    rng = random.Random(seed)
    rows = {}
    for page in pages:
        if page.reason:
            rows[page.key] = row_of(page, status="failed", reason=page.reason, stop=None)
        elif page.index == 3:
            rows[page.key] = row_of(page, status="blank", reason="blank_page", stop=None, tokens=0)
        elif page.index == 4:
            rows[page.key] = row_of(page, "half", status="truncated", reason="length", attempts=2)
        else:
            rows[page.key] = row_of(page, text_of(page, rng))
    return rows


def write_all(out, info, ledger, *, pages=16, **settings):
    shards = list(plan_shards(info, ledger.committed(), OutputSettings(**settings), pages=pages))
    order = list(shards)
    random.Random(3).shuffle(order)
    receipts = [write_shard(ledger, shard, OutputSettings(**settings)) for shard in order]
    return shards, sorted(receipts, key=lambda receipt: receipt.number)


def made(tmp_path, docs=DOCS, **more):
    pages = manifest_pages(docs)
    info = save_manifest(str(tmp_path), pages)
    rows = rows_for(pages)
    return pages, info, rows, commit_all(str(tmp_path), info, pages, rows)


def lines(tmp_path):
    found = []
    for path in sorted(Path(tmp_path, "jsonl").glob("*.gz")):
        found += [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()]
    return found


def page_map(tmp_path):
    paths = sorted(Path(tmp_path, PARTS).glob("*.documents.parquet"))
    return [row for path in paths for row in pq.read_table(io.BytesIO(path.read_bytes())).to_pylist()]


@pytest.mark.parametrize("size", [1, 5, 16, 1000])
def test_shards_hold_every_page_once_and_whole_documents(tmp_path, size):
    pages, info, _, ledger = made(tmp_path)
    shards = list(plan_shards(info, ledger.committed(), OutputSettings(), pages=size))
    assert sum(shard.pages for shard in shards) == len(pages)
    assert [shard.number for shard in shards] == list(range(len(shards)))
    assert all(shard.pages >= size for shard in shards[:-1])
    at = 0
    for shard in shards:
        mine = pages[at : at + shard.pages]
        at += shard.pages
        assert at == len(pages) or pages[at].output != mine[-1].output
    assert len({shard.fingerprint for shard in shards}) == len(shards)
    assert all(stretch.commit for shard in shards for stretch in shard.stretches)


def test_documents_equal_what_one_process_would_write(tmp_path):
    pages, info, rows, ledger = made(tmp_path)
    write_all(tmp_path, info, ledger)
    for doc in DOCS:
        mine = [rows[page.key] for page in pages if page.name == doc.name]
        assert Path(tmp_path, "documents", f"{doc.name}.md").read_text("utf-8") == join(mine), doc.name
    assert sum(1 for path in Path(tmp_path, "documents").rglob("*") if path.is_file()) == len(DOCS)


def test_page_map_points_at_the_text_in_characters_and_bytes(tmp_path):
    pages, info, rows, ledger = made(tmp_path)
    write_all(tmp_path, info, ledger)
    mapped = page_map(tmp_path)
    assert [row["key"] for row in mapped] == [page.key for page in pages]
    plain = [row for row in mapped if "~bytes:" not in row["markdown"]]
    assert len(mapped) - len(plain) == 3
    for row in plain:
        data = Path(tmp_path, row["markdown"]).read_bytes()
        text, want = data.decode("utf-8"), rows[row["key"]]
        shown = "" if want.status == "failed" else want.markdown
        assert text[row["start"] : row["end"]] == shown
        assert data[row["byte_start"] : row["byte_end"]].decode("utf-8") == shown
        assert row["start"] <= row["header_end"] <= row["footer_start"] <= row["end"]
        assert row["reason"] == want.reason
    long = [row for row in mapped if row["name"] == "b/long.pdf" and row["status"] == "ok"]
    text = Path(tmp_path, "documents/b/long.pdf.md").read_text("utf-8")
    assert all(text[row["start"] : row["header_end"]].startswith("THE ANNALS") for row in long)


def test_running_lines_dropped_from_documents_and_lines_alone(tmp_path):
    _, info, rows, ledger = made(tmp_path)
    write_all(tmp_path, info, ledger, running_lines="drop")
    text = Path(tmp_path, "documents/b/long.pdf.md").read_text("utf-8")
    assert "THE ANNALS" not in text
    assert text.count("Text of") == 25
    assert "THE ANNALS" in Path(tmp_path, "documents/a/two pages #1.pdf.md").read_text("utf-8")  # too short to tell
    mapped = [row for row in page_map(tmp_path) if row["name"] == "b/long.pdf"]
    assert all(row["start"] == row["header_end"] and row["footer_start"] == row["end"] for row in mapped)
    long = next(line for line in lines(tmp_path) if line["metadata"]["name"] == "b/long.pdf")
    assert "THE ANNALS" not in long["text"]
    assert long["attributes"]["running_lines"] == []
    kept = [row for commit in ledger.committed().values() for row in ledger.rows(commit)]
    assert sum("THE ANNALS" in row.markdown for row in kept) == sum(
        "THE ANNALS" in row.markdown for row in rows.values()
    )


def test_lines_are_one_document_each_with_exact_spans(tmp_path):
    pages, info, rows, ledger = made(tmp_path)
    write_all(tmp_path, info, ledger)
    found = lines(tmp_path)
    assert [line["metadata"]["name"] for line in found][:-1] == [doc.name for doc in DOCS][:-1]
    assert len({line["id"] for line in found}) == len(DOCS)
    for doc, line in zip(DOCS, found, strict=True):
        mine = [rows[page.key] for page in pages if page.name == doc.name]
        spans = line["attributes"]["pdf_page_numbers"]
        assert [page for _, _, page in spans] == [row.page for row in mine]
        want = ["" if row.status == "failed" else row.markdown for row in mine]
        assert [line["text"][start:end] for start, end, _ in spans] == want
        assert line["text"] == "\n\n".join(text for text in want if text)
        assert sum(line["metadata"]["pages_by_status"].values()) == len(mine)
        assert {"id", "text", "source", "added", "created", "metadata", "attributes"} == set(line)
    assert found[4 + 8]["metadata"]["member"] == "x/é.pdf"
    kept = next(line for line in found if line["metadata"]["name"] == "b/long.pdf")
    assert all(kept["text"][a:b].startswith("THE ANNALS") for a, b, kind in kept["attributes"]["running_lines"])


def test_lines_are_valid_json_whatever_a_page_says(tmp_path):
    from jocr.archive import dolma
    from jocr.archive.page_map import texts_of

    page = manifest_pages([Doc("a/\udce9\u2028.pdf", 1)])[0]
    row = row_of(page, 'lone \udcff "quote"\u2028\x00\x1f\\( \\alpha')
    text = texts_of([row], drop=False)[0]
    line = dolma.line(page, [(row, text.shown, text.edges)], created="2026-01-01T00:00:00+00:00", running_lines="keep")
    assert line.count(b"\n") == 1
    assert json.loads(line)["text"] == 'lone \\udcff "quote"\u2028\x00\x1f\\( \\alpha'
    assert json.loads(line)["created"] == "2026-01-01T00:00:00Z"


def test_the_same_again_writes_nothing_and_a_change_only_its_shard(tmp_path):
    _, info, _, ledger = made(tmp_path)
    shards, first = write_all(tmp_path, info, ledger)
    stamps = {path: path.stat().st_mtime_ns for path in Path(tmp_path).rglob("*") if path.is_file()}
    _, again = write_all(tmp_path, info, ledger)
    assert again == first
    assert stamps == {path: path.stat().st_mtime_ns for path in Path(tmp_path).rglob("*") if path.is_file()}
    victim = Path(tmp_path, PARTS, "000001.json")
    data = {path: path.read_bytes() for path in Path(tmp_path, "jsonl").iterdir()}
    victim.unlink()  # as if its task had died just before the end
    assert read_written(str(tmp_path), 1) is None
    assert write_shard(ledger, shards[1], OutputSettings()) == first[1]
    assert data == {path: path.read_bytes() for path in Path(tmp_path, "jsonl").iterdir()}


def test_documents_with_pending_pages_wait(tmp_path):
    pages = manifest_pages(DOCS)
    info = save_manifest(str(tmp_path), pages)
    rows = rows_for(pages)
    missing = next(page for page in pages if page.name == "b/long.pdf" and page.index == 20)
    ledger = commit_all(str(tmp_path), info, pages, {key: row for key, row in rows.items() if key != missing.key})
    _, receipts = write_all(tmp_path, info, ledger)
    whole = total(receipts)
    assert whole.pages + whole.pending_pages == len(pages)
    assert whole.unfinished_documents >= 1
    assert not Path(tmp_path, "documents/b/long.pdf.md").exists()
    assert len(lines(tmp_path)) == whole.documents == len(DOCS) - whole.unfinished_documents
    before = {shard.fingerprint for shard in plan_shards(info, ledger.committed(), OutputSettings(), pages=16)}
    ledger = commit_all_rest(tmp_path, info, pages, rows, ledger)
    after = list(plan_shards(info, ledger.committed(), OutputSettings(), pages=16))
    assert 0 < sum(shard.fingerprint in before for shard in after) < len(after)
    write_all(tmp_path, info, ledger)
    assert Path(tmp_path, "documents/b/long.pdf.md").exists()


def commit_all_rest(tmp_path, info, pages, rows, ledger):
    from .results import units

    for unit, mine in units(info, pages):
        if not ledger.has(unit):
            ledger.commit(unit, [rows[p.key] for p in mine], [p.key for p in mine])
    return ledger


def test_failures_and_counts(tmp_path):
    pages, info, rows, ledger = made(tmp_path)
    _, receipts = write_all(tmp_path, info, ledger)
    whole = total(receipts)
    bad = {key for key, row in rows.items() if row.status in ("failed", "loop", "truncated")}
    tables = [pq.read_table(io.BytesIO(p.read_bytes())) for p in Path(tmp_path, PARTS).glob("*.failures.parquet")]
    assert {row["key"] for table in tables for row in table.to_pylist()} == bad
    assert whole.failures == len(bad)
    assert sum(whole.attempts.values()) == len(pages)
    assert whole.attempts[2] == sum(row.attempts == 2 for row in rows.values())
    assert sum(whole.tokens.values()) == sum(row.stop is not None for row in rows.values())
    assert {candidate.status for candidate in whole.gallery} == {row.status for row in rows.values()}


def test_nothing_but_what_was_asked_for(tmp_path):
    _, info, _, ledger = made(tmp_path)
    write_all(tmp_path, info, ledger, markdown=False, jsonl=False)
    assert not Path(tmp_path, "documents").exists()
    assert not Path(tmp_path, "jsonl").exists()


def candidates(n, seed=1):
    rng = random.Random(seed)
    statuses = ["ok"] * 80 + ["failed"] * 3 + ["blank"] * 17
    return [
        Candidate(rng.randrange(10**9), i, rng.choice(statuses), f"c{int(rng.expovariate(0.3))}", "u", "p", i)
        for i in range(n)
    ]


@pytest.mark.parametrize("cuts", [1, 7, 50])
def test_a_sample_of_samples_is_the_sample(cuts):
    everyone = candidates(3000)
    pieces = [reduce(everyone[i::cuts], limit=20) for i in range(cuts)]
    merged = []
    for piece in pieces:
        merged = reduce([*merged, *piece], limit=20)
    assert merged == reduce(everyone, limit=20)


@pytest.mark.parametrize("limit", [0, 1, 5, 30, 100])
def test_choice_is_fair_to_statuses_and_collections(limit):
    everyone = candidates(3000)
    chosen = choose(reduce(everyone), limit)
    assert len(chosen) == len(set(chosen)) == limit
    if limit >= 30:
        assert {c.status for c in chosen} == {"ok", "failed", "blank"}
        ok = [c.collection for c in chosen if c.status == "ok"]
        present = {c.collection for c in everyone if c.status == "ok"}
        assert len(set(ok)) == min(len(ok), len(present))
