"""The first stage of a pass: a unit's pages as images, rows that stand already left out.

A unit's images are held together as PNG, some 0.1 to 1 MB a page (decoded pixels stay in the renderer's process): in
the task that renders them, once in the object store, and in the decoder that takes them, some ``ray.unit`` MB each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from jocr.archive.inventory import password_for
from jocr.archive.layout import ManifestPage, Unit
from jocr.archive.ledger import Ledger
from jocr.archive.manifest import read_pages
from jocr.archive.settings import Reading
from jocr.archive.work import Sheets, Shot, Work, document
from jocr.config import ParseRecipe
from jocr.errors import DocumentError
from jocr.pages.render import Renderer
from jocr.records import PageFailure, PageImage, PageRef, ParsedPage


class Documents(Protocol):
    """Where the bytes of a document lie on this machine."""

    def local(self, page: ManifestPage) -> AbstractContextManager[str | None]:
        """The path of a document while the block lasts; None where the renderer can read its uri itself.

        Raises:
            DocumentError: it cannot be had.
        """


class InPlace:
    """``Documents`` that lie where they are."""

    def local(self, page: ManifestPage) -> AbstractContextManager[str | None]:
        return nullcontext()


def render_unit(
    work: Work, recipe: ParseRecipe, reading: Reading, ledger: Ledger, renderer: Renderer, documents: Documents
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
    shots = shoot([page for page in pages if page.key not in standing], recipe, reading, renderer, documents)
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
    pages: list[ManifestPage], recipe: ParseRecipe, reading: Reading, renderer: Renderer, documents: Documents
) -> Iterator[Shot]:
    """The images of ``pages``, or why there is none."""
    for page in pages:
        if page.reason is not None:
            yield Shot(page, PageFailure(page.uri, page.sha256 or None, None, "open", page.reason, page.detail), 1)
            continue
        result, attempts = picture(page, recipe, renderer, documents, side=reading.long_side), 1
        if isinstance(result, PageFailure) and result.retryable:
            result, attempts = picture(page, recipe, renderer, documents, side=reading.long_side), 2
        yield Shot(page, result, attempts)


def picture(
    page: ManifestPage, recipe: ParseRecipe, renderer: Renderer, documents: Documents, *, side: int, rotate: int = 0
) -> PageImage | PageFailure:
    """One page, rendered."""
    password = password_for(recipe, page.uri, page.name)
    ref = PageRef(document(page), page.index)
    try:
        with documents.local(page) as path:
            return renderer.render(ref, long_side=side, password=password, rotate=rotate, path=path)
    except DocumentError as error:
        return PageFailure(page.uri, page.sha256 or None, page.index, "open", error.reason, error.detail)
