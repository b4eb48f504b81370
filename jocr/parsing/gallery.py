"""Images for the report: the chosen pages rendered once more, small, after the run.

A run therefore keeps no pixels; the price is a moment per shown page, bounded as a whole.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from PIL import Image

from jocr.config import ParseRecipe
from jocr.parsing.rendering import Renderer, RendererFactory
from jocr.records import DocRef, PageFailure, PageRef, ParsedPage

SECONDS = 60.0  # for all images of a report; pages beyond it show without


class Gallery(AbstractContextManager["Gallery"]):
    """``image(row)`` -> JPEG bytes of the page, or None where it cannot be had."""

    def __init__(
        self, recipe: ParseRecipe, factory: RendererFactory, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._recipe = recipe
        self._context = factory()
        self._clock = clock
        self._documents: dict[str, DocRef | None] = {}

    def __enter__(self) -> Gallery:
        self._renderer: Renderer = self._context.__enter__()
        self._end = self._clock() + SECONDS
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(None, None, None)

    def image(self, row: ParsedPage) -> bytes | None:
        if row.width is None or self._clock() > self._end:
            return None
        doc = self._document(row.uri)
        if doc is None:
            return None
        password = self._recipe.render.password
        side = self._recipe.report.image_side
        result = self._renderer.render(PageRef(doc, row.page - 1), long_side=side, password=password)
        return None if isinstance(result, PageFailure) else jpeg(result.png, side)

    def _document(self, uri: str) -> DocRef | None:
        if uri not in self._documents:
            result = self._renderer.open(uri, password=self._recipe.render.password)
            self._documents = {uri: None if isinstance(result, PageFailure) else result[0]}
        return self._documents[uri]


def jpeg(png: bytes, side: int) -> bytes:
    """``png`` as a JPEG of at most ``side`` pixels."""
    with Image.open(io.BytesIO(png)) as image:
        small = image.convert("RGB")
        small.thumbnail((side, side))
        out = io.BytesIO()
        small.save(out, "JPEG", quality=72, optimize=True)
    return out.getvalue()
