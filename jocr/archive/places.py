"""Where the bytes of a unit's documents lie on this machine: in place, or in the node's spool while they are needed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path

from jocr import storage
from jocr.archive.inventory import password_for
from jocr.archive.layout import ManifestPage
from jocr.archive.spool import Spool
from jocr.config import ParseRecipe
from jocr.errors import DocumentError

SHARE = 8  # one run takes at most this part of the spool, because other processes of the node use it too

Paths = dict[str, "str | DocumentError | None"]  # member ("" for a plain file) -> path, None for in place, or why not


def spool_of(recipe: ParseRecipe) -> Spool:
    """The spool that all jobs of this user on this machine share."""
    folder = Path(tempfile.gettempdir(), f"jocr-{os.getuid()}", "spool")
    return Spool(folder, int(recipe.job.spool_gb * 1e9), member_bytes=int(recipe.job.member_gb * 1e9))


class Places:
    """Brings documents to this machine, run by run."""

    def __init__(self, recipe: ParseRecipe, spool: Spool | None = None) -> None:
        self._recipe = recipe
        self._spool = spool or spool_of(recipe)
        self._room = int(recipe.job.spool_gb * 1e9) // SHARE

    def runs(self, pages: Iterable[ManifestPage]) -> Iterator[list[ManifestPage]]:
        """Neighbouring pages of one file, or of one container as far as their members fit into the spool together."""
        for _, same in groupby(pages, key=lambda page: page.uri):
            run: list[ManifestPage] = []
            size = 0
            for _, document in groupby(same, key=lambda page: page.member):
                more = list(document)
                if run and size + more[0].size > self._room:
                    yield run
                    run, size = [], 0
                run, size = run + more, size + more[0].size
            yield run

    @contextmanager
    def local(self, run: list[ManifestPage]) -> Iterator[Paths]:
        """Paths of a run's documents; they stay while the block lasts. What cannot be had is told, not raised."""
        first = run[0]
        with ExitStack() as stack:
            if first.member:
                yield self._members(run, stack)
            elif storage.is_s3(first.uri):
                yield {"": self._file(first, stack)}
            else:
                yield {"": None}

    def look(self, page: ManifestPage) -> None:
        """Bring the container of a page here and list it, without any member."""
        with contextlib.suppress(DocumentError), self._spool.members(page.uri, page.etag, []):
            pass

    def _file(self, page: ManifestPage, stack: ExitStack) -> str | DocumentError:
        try:
            return str(stack.enter_context(self._spool.local(page.uri, page.etag, size=page.size)))
        except DocumentError as error:
            return error

    def _members(self, run: list[ManifestPage], stack: ExitStack) -> Paths:
        first = run[0]
        container = first.name.removesuffix(f"/{first.member}")

        def password(name: str) -> str | None:
            return password_for(self._recipe, first.uri, f"{container}/{name}")

        wanted = list(dict.fromkeys(page.member for page in run))
        found = stack.enter_context(self._spool.members(first.uri, first.etag, wanted, password=password))
        return {name: str(path) if isinstance(path, Path) else path for name, path in found.items()}
