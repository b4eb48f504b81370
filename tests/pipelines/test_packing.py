"""Records as bytes: what goes in comes out, images included."""

from __future__ import annotations

import os

import pytest

from jocr.records import DocRef, PageImage, PageRef
from pipelines.packing import LARGE, pack, unpack


def _image(png: bytes, index: int = 0) -> PageImage:
    ref = PageRef(DocRef("a\udcff.pdf", "0" * 64, 3, "pdf"), index)
    return PageImage(ref, png, 1, 2, 3.0, 4.0, 72.0, 90, "fake", False, "ink", notes=("one", "two"))


@pytest.mark.parametrize("sizes", [(), (0,), (LARGE - 1,), (LARGE,), (LARGE + 1, 5, 3 * LARGE, LARGE)])
def test_records_survive(sizes: tuple[int, ...]) -> None:
    images = [_image(os.urandom(size), index) for index, size in enumerate(sizes)]
    data = pack((images, {"none": None}))
    assert unpack(memoryview(data)) == (images, {"none": None})
    assert unpack(memoryview(data.tobytes())) == (images, {"none": None})
    assert len(data) < sum(sizes) + 2000 + 200 * len(sizes)  # each image once


def test_an_image_that_occurs_twice_comes_back_twice() -> None:
    png = os.urandom(LARGE)
    first, second = unpack(memoryview(pack([_image(png), _image(png, 1)])))
    assert (first.png, second.png) == (png, png)


def test_what_is_unpacked_does_not_depend_on_the_bytes_it_came_from() -> None:
    data = pack(_image(b"x" * LARGE))
    image = unpack(memoryview(data))
    data[:] = 0
    assert image.png == b"x" * LARGE
