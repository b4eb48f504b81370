"""What the archive benchmarks rest on: generated archives are what they say, and the check of results can fail."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from jobs.archive_bench import chaos, corpus, papers
from jobs.archive_bench.driver import sets
from jobs.archive_bench.verify import verify
from jobs.bench_scale import memory
from jocr.config import ParseRecipe, build, load
from jocr.pages.render import Renderer, RenderLimits
from jocr.records import PageFailure, PageRef
from tests.pipelines.archive import LOCAL

HARMLESS = ("loop", "empty", "error")  # poison that leaves this process alive


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A result of 60 pages, and how they must end."""
    from pipelines.parse import parse_archive

    work = tmp_path_factory.mktemp("bench")
    made = corpus.plan(60, HARMLESS)
    corpus.write(made, work / "source")
    ends = corpus.reference(made, work / "reference")
    settings = chaos.settings(str(work / "source"), str(work / "out"), ray__unit=16, report__pages=0)
    words = [word for word in sets(settings) if word != "--set"]
    parse_archive(load(ParseRecipe, None, words), LOCAL)
    return work / "out", ends


@pytest.fixture
def out(good, tmp_path):
    shutil.copytree(good[0], tmp_path / "out")
    return tmp_path / "out"


def test_an_archive_has_the_pages_asked_for_and_the_poison_in_its_pdfs():
    for pages in (60, 150, 2000):
        made = corpus.plan(pages)
        acts = Counter(act for paper in made for act in paper.acts)
        assert acts.total() == pages
        assert {act: acts[act] for act in set(corpus.POISON)} == Counter(corpus.POISON)
        assert len({paper.full_name for paper in made}) == len(made)
        assert made == corpus.plan(pages)
    assert {paper.kind for paper in made} == {"pdf", "tif", "png", "broken"}
    assert len({paper.container for paper in made}) > 3


def test_poison_breaks_a_renderer_and_no_page_beside_it(tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(papers.pdf("a", ["ink", "render_crash", "ink", "render_hang", "ink"]))
    with Renderer(RenderLimits(seconds_page=8, memory_mb=papers.CRASH_MB)) as renderer:
        doc, pages = renderer.open(str(path))
        quick = Renderer(RenderLimits(seconds_page=1))
        ends = [(quick if index == 3 else renderer).render(PageRef(doc, index), long_side=64) for index in range(pages)]
        quick.close()
    assert [end.reason if isinstance(end, PageFailure) else "" for end in ends] == [
        "", "render_crash", "", "render_timeout", "",
    ]  # fmt: skip


def test_a_good_result_is_good(good):
    out, ends = good
    verdict = verify(str(out), ends)
    assert verdict.problems == []
    assert sum(verdict.counts.values()) == 60
    assert verdict.counts["failed"] == 3  # empty, error, and the document that does not open


def damage_marker(out):
    next(out.glob("commits/*/*.json")).unlink()


def double_marker(out):
    marker = next(out.glob("commits/*/*.json"))
    (marker.parent / f"{'0' * 24}.0.json").write_bytes(marker.read_bytes())


def lose_data(out):
    next(out.glob("pages/*/*.parquet")).unlink()


def stray_data(out):
    data = next(out.glob("pages/*/*.parquet"))
    shutil.copy(data, data.parent / "stray.parquet")


def empty_generation(out):
    marker = next(out.glob("commits/*/*.0.json"))
    told = json.loads(marker.read_bytes())
    (marker.parent / marker.name.replace(".0.json", ".1.json")).write_text(json.dumps(told | {"data": "none.parquet"}))


def change(column, value):
    def damage(out):
        for data in out.glob("pages/*/*.parquet"):
            table = pq.read_table(data)
            ok = pc.equal(table["status"], "ok")
            new = pc.if_else(ok, pa.scalar(value), table[column])
            pq.write_table(table.set_column(table.schema.get_field_index(column), column, new), data)

    damage.__name__ = f"change_{column}"
    return damage


def lose_document(out):
    next(out.glob("documents/reports/*.md")).unlink()


def cut_document(out):
    path = next(out.glob("documents/big/*.md"))
    path.write_text(path.read_text("utf-8").replace("<!-- page 2 -->", ""), "utf-8")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (damage_marker, "pages lost"),
        (double_marker, "pages twice"),
        (lose_data, "which is not there"),
        (stray_data, "data files that no marker names"),
        (empty_generation, "which is not there"),
        (change("markdown", "# Wrong"), "another text than the bare loop's"),
        (change("status", "truncated"), "another end than they must have"),
        (change("sha256", "0"), "another page than the manifest"),
        (lose_document, "documents without Markdown"),
        (cut_document, "Markdown is not their pages'"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_damage_is_seen(good, out, damage, told):
    damage(out)
    problems = verify(str(out), good[1]).problems
    assert any(told in problem for problem in problems), problems


def test_a_manifest_without_the_archive_is_seen(good):
    ends = {(f"other {name}", page): end for (name, page), end in good[1].items()}
    problems = verify(str(good[0]), ends).problems
    assert any("that the manifest does not know" in problem for problem in problems)
    assert any("that the archive does not hold" in problem for problem in problems)


def test_kills_are_drawn_from_the_seed_alone_and_all_kinds_occur():
    drawn = [chaos.draw(seed, 3) for seed in range(20)]
    assert drawn == [chaos.draw(seed, 3) for seed in range(20)]
    assert all(len(kills) == 3 for kills in drawn)
    assert {kill.kind for kills in drawn for kill in kills} == set(chaos.KINDS)
    assert {kill.share is None for kills in drawn for kill in kills} == {True, False}


def test_settings_reach_the_job_as_they_are():
    given = {"sources": ["/a b/é#1.pdf"], "out": "/o u t", "model.name": "fake:marks", "ray.unit": 64}
    recipe = load(ParseRecipe, None, [word for word in sets(given) if word != "--set"])
    assert recipe == build(ParseRecipe, {"sources": ["/a b/é#1.pdf"], "out": "/o u t", "model": {"name": "fake:marks"},
                                         "ray": {"unit": 64}})  # fmt: skip


def test_growth_is_told_from_a_plateau():
    flat = memory([(t, 50.0 + min(t, 2) * 100) for t in range(101)])
    assert flat["growth"] == 0
    assert flat["peak"] == 250
    assert memory([(t, 10.0 * t) for t in range(101)])["growth"] > 600


def test_a_driver_stays_light():
    words = "import jobs.parse, sys; print([name for name in ('torch', 'ray', 'transformers') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
