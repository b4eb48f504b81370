"""The archive job on Ray: the rows of this process, whatever the shape of the run, and whatever dies in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs.parse import run
from jocr import storage
from jocr.archive.ledger import Ledger
from jocr.decoding.fake import FakeDecoder
from jocr.errors import EngineError
from pipelines.stages import project_error
from tests.pipelines.archive import page, parse_here, recipe, rows, tiff, timeless

pytestmark = pytest.mark.ray


@dataclass
class MakeLogged:
    """Makes decoders that note, in a file of their own, every page they are given."""

    folder: str
    marks: bool = True

    def __call__(self):
        folder = Path(self.folder)

        class Logged(FakeDecoder):
            def decode(self, pages):
                def noted():
                    for one in pages:
                        with (folder / "asked").open("a") as file:
                            file.write(one.page_id + "\n")
                        yield one

                yield from super().decode(noted())

        return Logged(marks=self.marks, batch=3)

    def asked(self):
        path = Path(self.folder, "asked")
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(autouse=True, scope="module")
def _by_value():
    """Workers cannot import this module."""
    import sys

    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def documents(folder, acts=(), count=3, pages=23):
    """``count`` documents of ``pages`` pages; ``acts``: (document, page, act) that breaks something."""
    folder.mkdir()
    marked = {(doc, index): act for doc, index, act in acts}
    for doc in range(count):
        images = [page(1 + doc * pages + index, marked.get((doc, index))) for index in range(pages)]
        (folder / f"{doc}.tif").write_bytes(tiff(images))
    return folder


def same(found, expected):
    return [timeless(row, without={"uri", "etag", "key"}) for row in found] == [
        timeless(row, without={"uri", "etag", "key"}) for row in expected
    ]


def test_rows_are_those_of_one_process_from_any_number_of_blocks(ray_cluster, tmp_path):
    sources = documents(tmp_path / "sources")
    parse_here(recipe(sources, tmp_path / "here", ray={"unit": 1}))
    expected = rows(tmp_path / "here")
    for blocks, shape in [(64, {}), (65, {"decoders": 2, "renderers": 2})]:
        out = tmp_path / f"out{blocks}"
        summary = run(recipe(sources, out, ray={"unit": 1, "blocks": blocks, "decoder_cpus": 0.5, **shape}))
        assert summary.counts["ok"] == 69
        assert same(rows(out), expected)
        assert {row.key for row in rows(out)} == {row.key for row in expected}
    assert (out / "report.html").exists()
    assert (out / "run.json").exists()


def test_pages_that_kill_or_hang_the_decoder_end_as_failed_and_no_other_page_does(ray_cluster, tmp_path):
    sources = documents(tmp_path / "sources", [(0, 3, "exit"), (1, 2, "hang"), (1, 4, "loop")], count=3, pages=6)
    make = MakeLogged(str(tmp_path))
    given = recipe(sources, tmp_path / "out", ray={"unit": 8}, job={"attempts": 2, "stall_seconds": 3})
    summary = run(given, make)
    assert {name: n for name, n in summary.counts.items() if n} == {"ok": 15, "loop": 1, "failed": 2}
    found = {(Path(row.uri).name, row.page): row for row in rows(tmp_path / "out")}
    assert len(found) == 18
    for place in [("0.tif", 4), ("1.tif", 3)]:
        assert (found[place].reason, found[place].attempts) == ("attempts_exhausted", 2)
    asked = make.asked()
    again = run(given, make)
    assert (again.pages_read, make.asked()) == (0, asked)


def test_a_run_that_was_broken_off_goes_on_with_the_rest(ray_cluster, tmp_path):
    sources = documents(tmp_path / "sources", count=2, pages=6)
    first = MakeLogged(str(tmp_path))
    run(recipe(sources, tmp_path / "out", ray={"unit": 2}, pages="1-4"), first)
    assert len(first.asked()) == 8
    run(recipe(sources, tmp_path / "out", ray={"unit": 2}), first)
    assert sorted(first.asked()) == sorted({row.page_id for row in rows(tmp_path / "out")})
    assert len(first.asked()) == 12  # the rows of the first were carried over


def test_an_engine_that_cannot_start_is_told_once(ray_cluster, tmp_path):
    def broken():
        raise RuntimeError("no CUDA device")

    sources = documents(tmp_path / "sources", count=1, pages=2)
    with pytest.raises(Exception, match="did not start: RuntimeError: no CUDA device") as caught:
        run(recipe(sources, tmp_path / "out"), broken)
    assert isinstance(project_error(caught.value), EngineError)


def test_on_s3_the_result_is_the_same(ray_cluster, s3, tmp_path):
    sources = documents(tmp_path / "sources", count=2, pages=5)
    bucket = s3()
    for path in sources.iterdir():
        storage.atomic_write(f"s3://{bucket}/scans/{path.name}", path.read_bytes())
    parse_here(recipe(sources, tmp_path / "here"))
    summary = run(recipe(f"s3://{bucket}/scans/", f"s3://{bucket}/out"))
    ledger = Ledger(f"s3://{bucket}/out", summary.settings)
    found = [row for commit in ledger.committed().values() for row in ledger.rows(commit)]
    assert same(sorted(found, key=lambda row: (row.uri, row.page)), rows(tmp_path / "here"))
    assert storage.exists(f"s3://{bucket}/out/report.html")


def test_rows_with_the_embedded_model(ray_cluster, tmp_path):
    examples = Path(__file__).resolve().parents[2] / "jocr" / "data" / "examples"
    more = {"model": {"name": "nano", "depth": "2", "batch": 4, "max_tokens": 60}, "render": {}}
    parse_here_with_model = run(recipe(examples, tmp_path / "there", **more))
    assert parse_here_with_model.pages == 6
    from jocr.parsing.command import parse
    from jocr.parsing.table import read_rows

    parse(recipe(examples, tmp_path / "here", **more))
    expected = list(read_rows(tmp_path / "here" / "pages.parquet"))
    without = {"member", "etag", "collection", "key"}
    assert [timeless(r, without=without) for r in rows(tmp_path / "there")] == [
        timeless(r, without=without) for r in expected
    ]
