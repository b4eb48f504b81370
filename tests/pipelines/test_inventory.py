"""The inventory as a whole: in this process, on Ray, on a folder and on S3."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from functools import partial
from pathlib import Path

import boto3
import pytest
from PIL import Image

from jocr import storage
from jocr.archive.manifest import latest, read_column, read_groups, read_pages
from jocr.config import ParseRecipe
from jocr.errors import ConfigError
from pipelines import inventory
from pipelines.inventory import describe, run_inventory
from pipelines.stages import run_local, run_ray


def png(shade: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (40, 30), (shade, 255 - shade, 7)).save(out, "PNG")
    return out.getvalue()


def tiff(pages: int) -> bytes:
    out = io.BytesIO()
    frames = [Image.new("L", (20, 20), shade) for shade in range(pages)]
    frames[0].save(out, "TIFF", save_all=True, append_images=frames[1:])
    return out.getvalue()


FILES = {
    "a/Vol 1 (2) #3 %41.png": png(1),
    "a/cafe\u0301.png": png(2),
    "a/caf\u00e9.png": png(3),
    "b/many.tif": tiff(5),
    "b/broken.pdf": b"%PDF-1.4 broken",
    "b/read.me": b"hello",
}
PAGES = 9  # 3 pictures, 5 frames, 1 that does not open


@pytest.fixture
def scans(tmp_path) -> Path:
    for name, data in FILES.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "in"


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """Names of the files that were really opened."""
    seen: list[str] = []
    real = inventory.open_file

    def noting(file, recipe, renderer, known, care=None):
        real_open = renderer.open

        class Noting:
            def open(self, uri, **more):
                seen.append(file.name)
                return real_open(uri, **more)

        return real(file, recipe, Noting(), known)

    monkeypatch.setattr(inventory, "open_file", noting)
    return seen


def recipe(*sources: object, out: object, **more: object) -> ParseRecipe:
    return ParseRecipe.model_validate(
        {"sources": [str(s) for s in sources], "out": str(out), "ray": {"unit": 4, "renderers": 2}} | more
    )


def local(*sources: object, out: object, **more: object):
    return run_inventory(recipe(*sources, out=out, **more), lambda listed, opened: None, run=run_local)


def pages(info) -> list:
    return [page for part in info.parts for page in read_pages(info.part_uri(part), 0, part.rows)]


def test_each_page_has_one_row_and_nothing_else_stays_behind(scans, tmp_path):
    info = local(scans, out=tmp_path / "out")
    rows = pages(info)
    assert [(row.name, row.index) for row in rows if not row.reason] == [
        ("a/Vol 1 (2) #3 %41.png", 0),
        ("a/cafe\u0301.png", 0),
        ("a/caf\u00e9.png", 0),
        *(("b/many.tif", n) for n in range(5)),
    ]
    assert [row.name for row in rows if row.reason] == ["b/broken.pdf"]
    assert len({row.key for row in rows}) == info.pages == PAGES
    assert (info.documents, info.failed, info.skipped) == (5, 1, 1)
    assert info.kinds == {"png": 3, "tiff": 1, "unknown": 1} or info.kinds == {"png": 3, "tiff": 1, "pdf": 1}
    files = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*") if p.is_file()}
    folder = f"manifest/{info.id}"
    assert files == {f"{folder}.json", f"{folder}/part-00000.parquet", f"{folder}/skipped.parquet"}
    assert f"{PAGES} pages in 5 documents" in describe(info)
    assert "left out: 1 not_a_document" in describe(info)


def test_a_second_inventory_opens_what_is_new_changed_or_failed(scans, tmp_path, opened):
    first = local(scans, out=tmp_path / "out")
    assert len(opened) == 5
    opened.clear()
    assert local(scans, out=tmp_path / "out").id == first.id
    assert opened == ["b/broken.pdf"]
    opened.clear()
    (scans / "a" / "new.png").write_bytes(png(9))
    (scans / "b" / "many.tif").write_bytes(tiff(6))
    os.utime(scans / "a" / "caf\u00e9.png")
    third = local(scans, out=tmp_path / "out")
    assert sorted(opened) == ["a/caf\u00e9.png", "a/new.png", "b/broken.pdf", "b/many.tif"]
    before, after = {row.key for row in pages(first)}, {row.key for row in pages(third)}
    touched = [row for row in pages(third) if row.name == "a/caf\u00e9.png"]
    assert touched[0].key in before
    assert len(after - before) == 1 + 6
    assert latest(str(tmp_path / "out")) == third


def test_an_unchanged_container_gives_an_equal_manifest_wherever_its_skipped_members_lie(scans, tmp_path):
    with zipfile.ZipFile(scans / "box.zip", "w") as box:
        for name, data in (("1.png", png(1)), ("read.me", b"hello"), ("2.png", png(2))):
            box.writestr(name, data)
    first = local(scans, out=tmp_path / "out")
    assert first.skipped == 2
    assert local(scans, out=tmp_path / "out").id == first.id


def test_an_inventory_that_was_stopped_goes_on(scans, tmp_path, opened, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(inventory, "assemble", stopped)
        with pytest.raises(KeyboardInterrupt):
            local(scans, out=tmp_path / "out")
    assert latest(str(tmp_path / "out")) is None
    opened.clear()
    assert local(scans, out=tmp_path / "out").pages == PAGES
    assert opened == ["b/broken.pdf"]


def test_an_inventory_whose_work_another_cleared_begins_again(scans, tmp_path):
    out = tmp_path / "out"
    runs: list[str] = []

    def robbed(records, stages):
        answers = list(run_local(records, stages))
        runs.append("run")
        if len(runs) == 1:
            shutil.rmtree(out / "manifest" / inventory.WORK)
        return answers

    info = run_inventory(recipe(scans, out=out), lambda listed, opened: None, run=robbed)
    assert (info.pages, len(runs)) == (PAGES, 2)


def test_chosen_pages_and_another_unit(scans, tmp_path):
    info = local(scans, out=tmp_path / "out", pages="2-3")
    assert [(row.name, row.index) for row in pages(info)] == [("b/broken.pdf", 0), ("b/many.tif", 1), ("b/many.tif", 2)]
    assert len(list(read_groups(info))) == info.groups >= 1


@pytest.mark.parametrize(
    ("sources", "more", "message"),
    [
        (["missing"], {}, "no such file or folder"),
        ([], {}, "name at least one"),
        (["in"], {"pages": "0"}, "--pages takes"),
        (["in"], {"out": ""}, "set out to a folder"),
        (["in"], {"out": "in/b/read.me/out"}, "cannot"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_opened(
    scans, tmp_path, opened, monkeypatch, sources, more, message
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        local(*sources, **{"out": "out"} | more)
    assert opened == []
    assert not (tmp_path / "out").exists()


def test_progress_is_told_while_listing_and_opening(scans, tmp_path, capsys):
    told: list[tuple[int, int | None]] = []
    run_inventory(recipe(scans, out=tmp_path / "out"), lambda *n: told.append(n), run=run_local)
    assert told[0] == (6, None)
    assert told[-1] == (6, 6)
    run_inventory(recipe(scans, out=tmp_path / "out"), run=run_local)
    assert "6 files listed, 6 opened" in capsys.readouterr().err


def filled(bucket: str, files: dict[str, bytes]) -> str:
    client = boto3.session.Session().client("s3")
    for name, data in files.items():
        client.put_object(Bucket=bucket, Key=f"scans/{name}", Body=data)
    client.close()
    return f"s3://{bucket}"


def test_a_prefix_gives_the_same_pages_as_a_folder(s3, scans, tmp_path):
    bucket = filled(s3(), FILES)
    here, there = local(scans, out=tmp_path / "out"), local(f"{bucket}/scans/", out=f"{bucket}/out")
    for name in ("name", "output", "collection", "sha256", "size", "kind", "index", "pages", "reason"):
        assert [getattr(row, name) for row in pages(there)] == [getattr(row, name) for row in pages(here)], name
    first = pages(there)[0]
    assert first.uri == f"{bucket}/scans/a/Vol 1 (2) #3 %41.png"
    assert first.etag == storage.etag(first.uri)
    left = [entry.uri for entry in storage.list_below(f"{bucket}/out")]
    assert len(left) == 3
    assert local(f"{bucket}/scans/", out=f"{bucket}/out").id == there.id


def test_refusals_that_pass_cost_nothing_and_one_that_stays_costs_a_file(s3, tmp_path, monkeypatch):
    from jocr.storage import s3 as backend

    bucket = filled(s3(), {f"{n}.png": png(n) for n in range(4)})
    refused = {"scans/1.png": 2, "scans/2.png": 10**6}
    monkeypatch.setattr(backend, "FIRST_WAIT", 0.01)

    def refuse(request, **_):
        for key, times in refused.items():
            if key in request.url and request.method == "GET" and times > 0:
                refused[key] -= 1
                from botocore.awsrequest import AWSResponse

                class Raw(io.BytesIO):
                    def stream(self, *_, **__):
                        return iter([self.read()])

                body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
                return AWSResponse(request.url, 403, {"content-type": "application/xml"}, Raw(body))
        return None

    backend.client().meta.events.register("before-send.s3", refuse)
    try:
        info = local(f"{bucket}/scans/", out=tmp_path / "out")
    finally:
        backend.client().meta.events.unregister("before-send.s3", refuse)
    assert [(row.name, row.reason) for row in pages(info)] == [
        ("0.png", None),
        ("1.png", None),
        ("2.png", "unreadable_file"),
        ("3.png", None),
    ]
    assert refused["scans/1.png"] == 0


def test_a_bucket_that_is_not_there_is_refused_in_seconds(s3, tmp_path):
    s3()
    with pytest.raises(ConfigError, match=r"s3://no-such-bucket/x/.*(bucket|Bucket)"):
        local("s3://no-such-bucket/x/", out=tmp_path / "out")
    with pytest.raises(ConfigError, match="holds no file"):
        local(f"s3://{s3()}/empty/", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.ray
def test_on_ray_the_manifest_is_that_of_one_process(ray_cluster, scans, tmp_path):
    alone = local(scans, out=tmp_path / "a")
    info = run_inventory(recipe(scans, out=tmp_path / "b"), lambda listed, opened: None)
    assert info.id == alone.id
    assert sum(table.num_rows for table in read_column(info, "uri")) == PAGES


@pytest.mark.ray
def test_on_ray_from_s3_to_s3(ray_cluster, s3):
    bucket = filled(s3(), FILES)
    one = run_inventory(recipe(f"{bucket}/scans/", out=f"{bucket}/out"), lambda listed, opened: None)
    two = run_inventory(
        recipe(f"{bucket}/scans/", out=f"{bucket}/other"), lambda listed, opened: None, run=partial(run_local)
    )
    assert one.id == two.id


def deadly_task(chunk, *, real, name):
    """``open_chunk`` whose process ends where it opens a file of this name."""
    import os

    from pipelines import inventory

    opening = inventory.open_file

    def guarded(file, *rest):
        if file.name == name:
            os._exit(11)
        return opening(file, *rest)

    inventory.open_file = guarded
    try:
        yield from real(chunk)
    finally:
        inventory.open_file = opening


@pytest.mark.ray
def test_a_container_that_kills_its_process_is_one_failed_document(ray_cluster, scans, tmp_path):
    import sys
    from dataclasses import replace

    from ray import cloudpickle

    (scans / "b" / "deadly.zip").write_bytes(b"PK\x03\x04 that ends whoever opens it")

    def run(chunks, stages):
        (stage,) = stages
        task = partial(deadly_task, real=stage.function, name="b/deadly.zip")
        return run_ray(chunks, [replace(stage, function=task)], blocks=None)

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        info = run_inventory(recipe(scans, out=tmp_path / "out", job={"attempts": 2}), run=run)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert (info.pages, info.reasons) == (PAGES + 1, {"corrupt": 1, "attempts_exhausted": 1})
    assert list((tmp_path / "out" / "manifest" / ".open").rglob("*")) == []
    again = run_inventory(recipe(scans, out=tmp_path / "out", job={"attempts": 2}), run=run_local)
    assert again.id == info.id  # what is given up stays so, and nobody opens it again
    redriven = recipe(scans, out=tmp_path / "out", job={"redrive": "attempts_exhausted"})
    assert run_inventory(redriven, run=run_local).reasons == {"corrupt": 2}
