"""The first stage of a pass: a unit's pages as images, rows that stand already left out.

A unit's images are held together as PNG, some 0.1 to 1 MB a page (decoded pixels stay in the renderer's process): in
the task that renders them, once in the object store, and in the decoder that takes them: up to ``ray.unit`` MB each.
"""

from __future__ import annotations

from collections.abc import Iterator

from jocr.archive.inventory import password_for
from jocr.archive.layout import ManifestPage, Unit
from jocr.archive.ledger import Ledger
from jocr.archive.manifest import read_pages
from jocr.archive.places import Places
from jocr.archive.settings import Reading
from jocr.archive.work import Sheets, Shot, Work, document
from jocr.config import ParseRecipe
from jocr.errors import DocumentError
from jocr.pages.render import Renderer
from jocr.records import PageFailure, PageImage, PageRef, ParsedPage


def render_unit(
    work: Work, recipe: ParseRecipe, reading: Reading, ledger: Ledger, renderer: Renderer, places: Places
) -> Sheets:
    """Render the pages of a unit that have no row yet.

    Raises:
        StorageError: manifest or ledger cannot be read.
        LedgerError: rows that are to be copied are not what their marker says.
    """
    unit = work.unit
    if ledger.has(unit):
        return Sheets(work, (), (), (), done=True)
    pages = read_pages(unit.part, unit.start, unit.stop)
    kept, earlier = _standing(work, ledger, {page.key for page in pages})
    standing = {row.key for row in kept}
    shots = shoot([page for page in pages if page.key not in standing], recipe, reading, renderer, places)
    return Sheets(work, tuple(page.key for page in pages), kept, tuple(shots), earlier)


def _standing(work: Work, ledger: Ledger, keys: set[int]) -> tuple[tuple[ParsedPage, ...], dict[int, int]]:
    """Rows to copy, and how often the pages to be read anew were tried before."""
    if work.redo is None:
        rows = [row for commit in ledger.read(work.carried) for row in ledger.rows(commit) if row.key in keys]
        return tuple({row.key: row for row in rows}.values()), {}
    before = Unit(work.unit.name, work.unit.part, work.unit.start, work.unit.stop, work.unit.generation - 1)
    (commit,) = ledger.read([(before.name, before.generation)])
    rows = ledger.rows(commit)
    again = {row.key: row.attempts for row in rows if row.reason == work.redo}
    return tuple(row for row in rows if row.key not in again), again


def shoot(
    pages: list[ManifestPage], recipe: ParseRecipe, reading: Reading, renderer: Renderer, places: Places
) -> Iterator[Shot]:
    """The images of ``pages``, or why there is none."""
    for run in places.runs(pages):
        if run[0].reason is not None and len(run) == 1:
            yield Shot(run[0], _unopened(run[0]), 1)
            continue
        with places.local(run) as paths:
            for page in run:
                yield _shot(page, paths[page.member], recipe, reading.long_side, renderer)


def draw_again(
    page: ManifestPage, recipe: ParseRecipe, renderer: Renderer, places: Places, *, side: int, rotate: int
) -> PageImage | PageFailure:
    """One page in another size or turned, for the retry ladder."""
    with places.local([page]) as paths:
        return _picture(page, paths[page.member], recipe, renderer, side, rotate)


def _shot(
    page: ManifestPage, path: str | DocumentError | None, recipe: ParseRecipe, side: int, renderer: Renderer
) -> Shot:
    if page.reason is not None:
        return Shot(page, _unopened(page), 1)
    result = _picture(page, path, recipe, renderer, side, 0)
    if isinstance(result, PageFailure) and result.retryable:
        return Shot(page, _picture(page, path, recipe, renderer, side, 0), 2)
    return Shot(page, result, 1)


def _unopened(page: ManifestPage) -> PageFailure:
    return PageFailure(page.uri, page.sha256 or None, None, "open", page.reason or "corrupt", page.detail)


def _picture(
    page: ManifestPage,
    path: str | DocumentError | None,
    recipe: ParseRecipe,
    renderer: Renderer,
    side: int,
    rotate: int,
) -> PageImage | PageFailure:
    if isinstance(path, DocumentError):
        return PageFailure(page.uri, page.sha256 or None, page.index, "open", path.reason, path.detail)
    password = password_for(recipe, page.uri, page.name)
    ref = PageRef(document(page), page.index)
    return renderer.render(ref, long_side=side, password=password, rotate=rotate, path=path)
