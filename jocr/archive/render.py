"""The first stage of a pass: a unit's pages as images, rows that stand already left out.

A unit's images are held together as PNG, some 0.1 to 1 MB a page (decoded pixels stay in the renderer's process): in
the task that renders them, once in the object store, and in the decoder that takes them: up to ``ray.unit`` MB each.

Pages are rendered in a child, but remote files and members of containers are fetched and unpacked in the task's own
process. A file that kills that is found as at the inventory (``jocr.archive.trials``): after a death the record says
which container, and then which document in it, is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, zip_longest

from jocr.archive import trials
from jocr.archive.inventory import password_for
from jocr.archive.layout import ATTEMPTS, ManifestPage, Unit, place
from jocr.archive.ledger import Ledger
from jocr.archive.manifest import read_pages
from jocr.archive.names import digest
from jocr.archive.places import Places
from jocr.archive.settings import Reading
from jocr.archive.trials import Trial
from jocr.archive.work import Sheets, Shot, Work, document
from jocr.config import ParseRecipe
from jocr.errors import DocumentError
from jocr.pages.render import Renderer
from jocr.records import PageFailure, PageImage, PageRef, ParsedPage

Shoot = Callable[[list[ManifestPage]], Iterable[Shot]]


def render_unit(
    work: Work, recipe: ParseRecipe, reading: Reading, ledger: Ledger, renderer: Renderer, places: Places,
    run: str = "",
) -> Sheets:  # fmt: skip
    """Render the pages of a unit that have no row yet. A file whose reading killed the process ``job.attempts`` times
    is read no more: its pages fail.

    Args:
        run: that tries the unit, as for ``trials.begin``.

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
    left = [page for page in pages if page.key not in standing]

    def shooting(some: list[ManifestPage]) -> Iterator[Shot]:
        return shoot(some, recipe, reading, renderer, places)

    with trials.begin(_tries(ledger, unit), recipe.job.attempts, run) as trial:
        shots = tuple(_carefully(left, trial, shooting, places) if trial.careful else shooting(left))
    return Sheets(work, tuple(page.key for page in pages), kept, shots, earlier)


def _tries(ledger: Ledger, unit: Unit) -> str:
    return place(ledger.out, ATTEMPTS, ledger.settings, unit.name, str(unit.generation), "render")


def _carefully(pages: list[ManifestPage], trial: Trial, shooting: Shoot, places: Places) -> Iterator[Shot]:
    """Document by document, each recorded before it is read; a container first by itself, without its members."""
    for uri, same in groupby(pages, key=lambda page: page.uri):
        held = list(same)
        container = digest(uri)
        if any(page.member for page in held):
            if trial.exhausted(container):
                yield from (_given_up(page, trial, container) for page in held)
                continue
            trial.started(container)
            places.look(held[0])
        for member, of_it in groupby(held, key=lambda page: page.member):
            number = digest(f"{uri}\0{member}")
            if trial.exhausted(number):
                yield from (_given_up(page, trial, number) for page in of_it)
                continue
            trial.started(number)
            yield from shooting(list(of_it))


def _given_up(page: ManifestPage, trial: Trial, number: int) -> Shot:
    deaths = trial.charged(number)
    if page.reason is not None:  # it is not read at all
        return Shot(page, _unopened(page), 1)
    what = "its container" if number == digest(page.uri) else "it"
    detail = f"the process that read {what} died {deaths} times"
    failure = PageFailure(page.uri, page.sha256 or None, page.index, "render", "attempts_exhausted", detail)
    return Shot(page, failure, deaths)


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
            for page, following in zip_longest(run, run[1:]):
                then = following.index if following is not None and _alike(page, following) else None
                yield _shot(page, paths[page.member], recipe, reading.long_side, renderer, then)


def _alike(page: ManifestPage, other: ManifestPage) -> bool:
    """Whether both are pages of one document that opened."""
    return page.reason is None and (page.uri, page.member) == (other.uri, other.member)


def draw_again(
    page: ManifestPage, recipe: ParseRecipe, renderer: Renderer, places: Places, *, side: int, rotate: int
) -> PageImage | PageFailure:
    """One page in another size or turned, for the retry ladder."""
    with places.local([page]) as paths:
        return _picture(page, paths[page.member], recipe, renderer, side, rotate)


def _shot(
    page: ManifestPage,
    path: str | DocumentError | None,
    recipe: ParseRecipe,
    side: int,
    renderer: Renderer,
    then: int | None,
) -> Shot:
    if page.reason is not None:
        return Shot(page, _unopened(page), 1)
    result = _picture(page, path, recipe, renderer, side, 0, then)
    if isinstance(result, PageFailure) and result.retryable:
        return Shot(page, _picture(page, path, recipe, renderer, side, 0, then), 2)
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
    then: int | None = None,
) -> PageImage | PageFailure:
    if isinstance(path, DocumentError):
        return PageFailure(page.uri, page.sha256 or None, page.index, "open", path.reason, path.detail)
    password = password_for(recipe, page.uri, page.name)
    ref = PageRef(document(page), page.index)
    return renderer.render(ref, long_side=side, password=password, rotate=rotate, path=path, then=then)
