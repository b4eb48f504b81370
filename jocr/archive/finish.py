"""The last steps of an archive: merged tables, what is left over removed, the report, and last of all ``run.json``.

``shards`` before, ``outputs.write_shard`` for each in any order on any machine, ``finish`` behind. Each step may be
done again at any time; who finds a ``run.json`` finds the rest of that result, or a newer one, beside it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jocr import storage
from jocr.archive.groups import unit_name
from jocr.archive.inventory import password_for
from jocr.archive.layout import REPORT, RUN, ManifestPage, place
from jocr.archive.ledger import Commit, Ledger
from jocr.archive.manifest import ManifestInfo, read_groups, read_pages
from jocr.archive.merge import begin, merge
from jocr.archive.outputs import Written, read_written, total
from jocr.archive.places import Places
from jocr.archive.samples import Candidate, choose
from jocr.archive.shards import PAGES, Shard, plan_shards
from jocr.archive.summary import describe
from jocr.archive.work import document
from jocr.config import ParseRecipe
from jocr.errors import DocumentError, JocrError
from jocr.pages.render import Renderer
from jocr.parsing.command import render_limits
from jocr.parsing.gallery import SECONDS, jpeg
from jocr.records import PageFailure, PageRef, ParsedPage
from jocr.report.archive import report

ImageOf = Callable[[ManifestPage, ParsedPage], bytes | None]


def shards(recipe: ParseRecipe, info: ManifestInfo, ledger: Ledger, *, pages: int = PAGES) -> list[Shard]:
    """What is to be written, from the ledger as it stands; give each to ``write_shard``.

    Raises:
        StorageError, LedgerError: as ``Ledger.committed``.
    """
    planned = list(plan_shards(info, ledger.committed(), recipe.outputs, pages=pages))
    begin(ledger.out, planned)
    return planned


def finish(
    recipe: ParseRecipe,
    info: ManifestInfo,
    ledger: Ledger,
    planned: Sequence[Shard],
    *,
    decoder_seconds: float | None = None,
    alone: bool = False,
    image: ImageOf | None = None,
) -> dict[str, Any]:
    """Everything that comes after the shards.

    Args:
        recipe: of the run.
        info: the manifest.
        ledger: of these settings.
        planned: the shards, all of which were written.
        decoder_seconds: for which decoders were held, all runs together; None to count what they were busy.
        alone: nobody else is writing this result, so that every data file without a marker may go.
        image: JPEG bytes of a page; None for ``Images`` with the recipe's renderer.

    Returns:
        What ``run.json`` holds.

    Raises:
        JocrError: a shard was not written.
        StorageError, LedgerError: the result cannot be read or written.
    """
    out = ledger.out
    written = _written(out, planned)
    merge(out, written, recipe.outputs)
    units = [unit_name(keys) for *_, keys in read_groups(info)]
    ledger.prune(alone=alone)
    ledger.settle(set(units))
    history = list(ledger.history())
    highest: dict[str, Commit] = {}
    for commit in history:  # in order of generation
        highest[commit.unit] = commit
    current = [found for unit in units if (found := highest.get(unit))]
    whole = total(written)
    chosen = choose(whole.gallery, recipe.report.pages)
    chosen_pages = list(_chosen(ledger, highest, chosen))
    run = describe(
        recipe, info, ledger.settings, current, history, whole,
        decoder_seconds=decoder_seconds,
        example=next((row for _, row in chosen_pages if row.stop), None),
    )  # fmt: skip
    storage.atomic_write(place(out, REPORT), _report(recipe, run, chosen_pages, image).encode("utf-8", "replace"))
    data = json.dumps(run, indent=1, ensure_ascii=True, default=str).encode("ascii") + b"\n"
    storage.atomic_write(place(out, RUN), data)
    return run


def _written(out: str, planned: Sequence[Shard]) -> list[Written]:
    found = [(shard, read_written(out, shard.number)) for shard in planned]
    missing = [shard.number for shard, written in found if written is None or written.fingerprint != shard.fingerprint]
    if missing:
        raise JocrError(f"{len(missing)} of {len(planned)} shards are not written (first: {missing[0]}); run again")
    return [written for _, written in found if written is not None]


def _chosen(
    ledger: Ledger, commits: dict[str, Commit], chosen: list[Candidate]
) -> Iterator[tuple[ManifestPage, ParsedPage]]:
    """The chosen pages in the order of the manifest, with their rows; one unit's rows are read at a time."""
    unit, rows = "", {}
    for candidate in sorted(chosen, key=lambda c: (c.part, c.row)):
        if candidate.unit != unit:
            unit, rows = candidate.unit, {row.key: row for row in ledger.rows(commits[candidate.unit])}
        if candidate.key in rows:
            yield read_pages(candidate.part, candidate.row, candidate.row + 1)[0], rows[candidate.key]


def _report(
    recipe: ParseRecipe,
    run: dict[str, Any],
    pages: list[tuple[ManifestPage, ParsedPage]],
    image: ImageOf | None,
) -> str:
    by_key = {row.key: page for page, row in pages}
    rows = [row for _, row in pages]
    if image is not None:
        return report(run, rows, lambda row: image(by_key[row.key], row))
    with Renderer(render_limits(recipe)) as renderer:
        images = Images(recipe, renderer, Places(recipe))
        return report(run, rows, lambda row: images(by_key[row.key], row))


class Images:
    """Pages rendered once more, small, wherever their documents lie; None where one cannot be had, or time is up.

    Args:
        recipe: passwords, and the side of an image.
        renderer: a child process of its own.
        places: local files, remote files and members of containers.
        seconds: for all images together.
    """

    def __init__(
        self,
        recipe: ParseRecipe,
        renderer: Renderer,
        places: Places,
        *,
        seconds: float = 2 * SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recipe, self._renderer, self._places = recipe, renderer, places
        self._clock, self._end = clock, clock() + seconds

    def __call__(self, page: ManifestPage, row: ParsedPage) -> bytes | None:
        if row.width is None or self._clock() > self._end:
            return None
        side = self._recipe.report.image_side
        with self._places.local([page]) as paths:
            path = paths[page.member]
            if isinstance(path, DocumentError):
                return None
            password = password_for(self._recipe, page.uri, page.name)
            ref = PageRef(document(page), page.index)
            result = self._renderer.render(ref, long_side=side, password=password, path=path)
        return None if isinstance(result, PageFailure) else jpeg(result.png, side)
