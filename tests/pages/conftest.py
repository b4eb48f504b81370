"""A shared renderer, and a fixture that draws every page of some bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from jocr.pages.render import Renderer, RenderLimits
from jocr.records import DocRef, PageFailure, PageImage, PageRef

from .made import Pdf


@pytest.fixture(scope="session")
def renderer() -> Iterator[Renderer]:
    """One renderer for all tests that do not need limits of their own: starting one takes a third of a second."""
    with Renderer(RenderLimits(seconds_open=30, seconds_page=30)) as shared:
        yield shared


Draw = Callable[..., Sequence[PageImage | PageFailure]]


@pytest.fixture
def pdf() -> type[Pdf]:
    return Pdf


@pytest.fixture
def draw(renderer: Renderer, tmp_path: Path) -> Draw:
    """bytes (or a path) -> every page of the document, or the one failure of opening it."""

    def _draw(
        data: bytes | Path, name: str = "file", long_side: int = 400, password: str | None = None
    ) -> Sequence[PageImage | PageFailure]:
        path = data if isinstance(data, Path) else tmp_path / name
        if isinstance(data, bytes):
            path.write_bytes(data)
        opened = renderer.open(str(path), password=password)
        if isinstance(opened, PageFailure):
            return [opened]
        doc, pages = opened
        assert isinstance(doc, DocRef)
        refs = [PageRef(doc, index) for index in range(pages)]
        return [renderer.render(ref, long_side=long_side, password=password) for ref in refs]

    return _draw
