"""Bare loops to measure against: the same functions as the archive job's, and pypdfium2 by itself."""

from __future__ import annotations

import io
import multiprocessing
import time
from collections.abc import Sequence

import pyarrow.parquet as pq
import pypdfium2 as pdfium

from jocr import documents
from jocr.config import ModelSettings
from jocr.decoding.fake import make_fake
from jocr.pages.render import Renderer
from jocr.parsing import engine
from jocr.parsing.table import to_table
from jocr.records import PageFailure, PageImage, PageInput, PageRef, ParsedPage

ROWS = 64  # of one table


class Loop:
    """Open, render, decode, make the row, page after page; a table of rows in Parquet every ``ROWS`` pages."""

    def __init__(self, model: str, long_side: int) -> None:
        self._settings = ModelSettings(name=model)
        self._words = engine.instruction(self._settings)
        self._decoder = make_fake(model)
        self._origin = engine.origin(self._decoder.info, self._words)
        self._side = long_side
        self._renderer = Renderer()

    def read(self, path: str) -> int:
        """One document; its number of pages."""
        opened = self._renderer.open(path)
        if isinstance(opened, PageFailure):
            raise AssertionError(opened)
        doc, pages = opened
        rows: list[ParsedPage] = []
        for index in range(pages):
            image = self._renderer.render(PageRef(doc, index), long_side=self._side)
            assert isinstance(image, PageImage), image
            page = PageInput(image.ref.page_id, image.png, self._words.text, self._words.max_tokens)
            rows += (documents.transcribed(image, answer, self._origin) for answer in self._decoder.decode([page]))
            if len(rows) >= ROWS or index + 1 == pages:
                pq.write_table(to_table(rows), io.BytesIO(), compression="zstd")
                rows = []
        return pages


class Loops:
    """``count`` bare loops in processes of their own. Use it as a context manager; started and warm on entry."""

    def __init__(self, count: int, model: str, long_side: int, warm: str) -> None:
        self._made = (model, long_side)
        self._count, self._warm = count, warm

    def __enter__(self) -> Loops:
        self._pool = multiprocessing.get_context("spawn").Pool(self._count, _start, self._made)
        self._pool.map(_read, [self._warm] * (4 * self._count), chunksize=1)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.terminate()
        self._pool.join()

    def pages_per_second(self, paths: Sequence[str]) -> float:
        """Of these documents, which whichever loop is free takes next."""
        begin = time.perf_counter()
        pages = sum(self._pool.imap_unordered(_read, paths))
        return pages / (time.perf_counter() - begin)


def renderer_rate(paths: Sequence[str], long_side: int) -> float:
    """Pages/s of ``Renderer``: child process, blank judgement and PNG, while the next page is drawn."""
    with Renderer() as renderer:
        renderer.open(paths[0])  # starts the child
        begin, pages = time.perf_counter(), 0
        for path in paths:
            opened = renderer.open(path)
            assert not isinstance(opened, PageFailure)
            doc, count = opened
            for index in range(count):
                then = index + 1 if index + 1 < count else None
                assert isinstance(renderer.render(PageRef(doc, index), long_side=long_side, then=then), PageImage)
            pages += count
        return pages / (time.perf_counter() - begin)


def pypdfium2_rate(paths: Sequence[str], long_side: int, *, png: bool) -> float:
    """Pages/s of pypdfium2 in this process, to an RGB array or, with ``png``, to PNG bytes by Pillow at level 1."""
    begin, pages = time.perf_counter(), 0
    for path in paths:
        pdf = pdfium.PdfDocument(path)
        for page in pdf:
            bitmap = page.render(scale=long_side / max(page.get_size()), rev_byteorder=True)
            if png:
                bitmap.to_pil().save(io.BytesIO(), "PNG", compress_level=1)
            else:
                bitmap.to_numpy()
            page.close()
        pages += len(pdf)
        pdf.close()
    return pages / (time.perf_counter() - begin)


_loop: Loop | None = None


def _start(model: str, long_side: int) -> None:
    global _loop
    _loop = Loop(model, long_side)


def _read(path: str) -> int:
    assert _loop is not None
    return _loop.read(path)
