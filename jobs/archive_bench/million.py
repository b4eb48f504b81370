"""A manifest of very many pages, planned and scheduled: what the driver of a large archive does, without the archive.

The manifest's rows are those that an inventory of documents of ``PER_DOCUMENT`` pages would make, with no files behind
them. A tenth of its units have markers in the ledger. Every other unit goes through a Ray Data pass of the job's own
stages, except that the first makes page images of a few bytes instead of rendering (the fake engine reads those), and
the decoder's actor checks and counts rows instead of writing them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from jocr.archive import assemble as assembling
from jocr.archive import inventory, settings
from jocr.archive.groups import unit_name
from jocr.archive.layout import COMMITS, place
from jocr.archive.ledger import Commit, Ledger
from jocr.archive.manifest import ManifestInfo, read_groups, read_pages
from jocr.archive.plan import make_plan
from jocr.archive.work import Read, Receipt, Sheets, Shot, Work, document
from jocr.config import ParseRecipe
from jocr.parsing.plan import PageSelection
from jocr.records import PageImage, PageRef
from pipelines.parse import stages
from pipelines.stages import FunctionStage, run_ray

PER_DOCUMENT, CHUNK = 100, 256
COMMITTED = 10  # one unit in so many

Timed = Callable[[str, Callable[[], Any]], Any]  # name of a step, what to do -> its result


def run(recipe: ParseRecipe, pages: int, timed: Timed, connect: Callable[[], None]) -> dict[str, int]:
    """Assemble, plan, anti-join, schedule; ``timed`` measures each step, ``connect`` joins a cluster. Counts of what
    was done.

    Raises:
        AssertionError: a unit was lost or done twice.
    """
    info = timed("assemble", partial(_assemble, recipe, pages))
    reading = settings.reading(recipe)
    ledger = Ledger(recipe.out, reading.settings)
    marked = timed("mark a tenth committed", partial(_mark, info, ledger))
    plan = timed("plan and anti-join", partial(make_plan, info, ledger))
    if plan.units_done != marked or plan.pages + plan.pages_done != pages:
        raise AssertionError(f"{plan.units_done} of {marked} units known as done; {plan.pages} pages are left")
    _, decode = stages(recipe, reading, ledger, commit=count)
    line = [FunctionStage("render", make_up, batch=1), decode]
    timed("start Ray", connect)
    receipts = timed("schedule", partial(_schedule, plan.works, line, recipe))
    if sorted(receipts) != sorted(work.unit.name for work in plan.works):
        raise AssertionError(f"{len(receipts)} receipts for {len(plan.works)} units")
    return {"pages": pages, "units": info.groups, "units_committed": marked, "units_scheduled": len(receipts),
            "pages_scheduled": plan.pages}  # fmt: skip


def make_up(work: Work) -> Iterator[Sheets]:
    """A unit whose pages are images of a few bytes."""
    pages = read_pages(work.unit.part, work.unit.start, work.unit.stop)
    shots = []
    for page in pages:
        ref = PageRef(document(page), page.index)
        image = PageImage(ref, b"%d" % page.key, 8, 8, 8, 8, 72.0, 0, "none", False, "made up")
        shots.append(Shot(page, image, 1))
    yield Sheets(work, tuple(page.key for page in pages), (), tuple(shots))


def count(read: Read) -> Receipt:
    """The receipt of a commit, without the commit."""
    if len(read.rows) != read.work.unit.pages or {row.key for row in read.rows} != set(read.keys):
        raise AssertionError(f"unit {read.work.unit.name} came back with other rows than its own")
    return Receipt(read.work.unit.name, len(read.rows), mine=True)


def _assemble(recipe: ParseRecipe, pages: int) -> ManifestInfo:
    selection = PageSelection.parse(None)
    documents = -(-pages // PER_DOCUMENT)

    def tables() -> Iterator[Any]:
        for start in range(0, documents, CHUNK):
            yield inventory.to_table(
                [_document(n, pages) for n in range(start, min(start + CHUNK, documents))], selection
            )

    return assembling.assemble(tables, recipe.out, unit=recipe.ray.unit, sources=recipe.sources)


def _document(number: int, pages: int) -> inventory.Document:
    name = f"shelf {number // 1000:03}/volume {number:06}.pdf"
    own = min(PER_DOCUMENT, pages - number * PER_DOCUMENT)
    return inventory.Document(
        uri=f"/archive/{name}", member="", name=name, output=f"{name}.md", collection=f"shelf {number // 1000:03}",
        etag=f"e{number}", sha256=f"{number:064x}", size=1_000_000, kind="pdf", pages=own, reason="", detail="",
    )  # fmt: skip


def _mark(info: ManifestInfo, ledger: Ledger) -> int:
    """Markers for some units, as another run would have left them."""
    marked = 0
    for number, (_, start, stop, keys) in enumerate(read_groups(info)):
        if number % COMMITTED == 0:
            name, pages = unit_name(keys), stop - start
            packed = keys.astype(">i8").tobytes()
            commit = Commit(name, 0, f"{name}.0-0.parquet", pages, {"ok": pages}, {}, 0, 0, 0, 0, 0, 0, "", {}, packed)
            path = Path(place(ledger.out, COMMITS, ledger.settings, f"{name}.0.json"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(commit.to_json())
            marked += 1
    return marked


def _schedule(works: tuple[Work, ...], line: list[Any], recipe: ParseRecipe) -> list[str]:
    """In passes of ``ray.pass_units``, as the job does it."""
    most, units = recipe.ray.pass_units, []
    for start in range(0, len(works), most):
        units += [receipt.unit for receipt in run_ray(works[start : start + most], line, blocks=recipe.ray.blocks)]
    return units
