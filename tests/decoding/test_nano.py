"""The shipped checkpoint: the same tokens at every depth and batch size, on held-out pages of every kind."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest
from torch import Tensor

from jocr.decoding.greedy import greedy
from jocr.decoding.load import Parts, load_parts
from jocr.decoding.stats import tau
from jocr.decoding.stopping import Stopper
from jocr.model.ocr import PageViews
from jocr.records import PageInput, Transcript


@pytest.fixture(scope="module")
def nano() -> Parts:
    return load_parts("nano", device="cpu", dtype="float32")


def held_out(count: int) -> list[PageInput]:
    """``count`` pages of each kind."""
    reading = pytest.importorskip("jocr.evaluation.reading")
    pages = [page for which in reading.SETS for page in reading.pages_of(which, count, 960_000_000)]
    return list(reading.inputs_of(pages, max_tokens=600))


SEEN: dict[bytes, Tensor] = {}


def transcripts(nano: Parts, pages: Sequence[PageInput], depth: int | str, batch: int) -> dict[str, Transcript]:
    """Depth and batch size do not reach the towers, so a page is looked at once for all of them."""
    decoder = nano.decoder(depth=depth, batch=batch)
    encode = decoder.encode

    def look(views: PageViews) -> Tensor:
        pixels = views.global_view.numpy().tobytes() + views.tiles.numpy().tobytes()
        key = hashlib.sha256(pixels).digest()
        if key not in SEEN:
            SEEN[key] = encode(views)
        return SEEN[key]

    decoder.encode = look
    return {t.page_id: t for t in decoder.decode(pages)}


def same(nano: Parts, pages: Sequence[PageInput], depths: Sequence[int | str], batches: Sequence[int]) -> None:
    want = transcripts(nano, pages, 0, 1)
    for depth in depths:
        for batch in batches:
            got = transcripts(nano, pages, depth, batch)
            assert {i: (t.tokens, t.stop) for i, t in got.items()} == {i: (t.tokens, t.stop) for i, t in want.items()}


def test_a_few_pages_at_every_depth(nano: Parts) -> None:
    same(nano, held_out(1), (1, 3, 5, "auto"), (4,))


def test_the_readable_oracle_agrees(nano: Parts) -> None:
    pages = held_out(1)
    decoder = nano.decoder(depth=0, batch=1)
    for page, got in zip(pages, decoder.decode(pages), strict=True):
        job = decoder.prepare(page)
        if got.stop != "loop":
            stopper = Stopper(nano.model.cfg.text.eos_token_id, job.limit)
            assert greedy(nano.model, job.ids.tolist(), job.visual, stopper) == list(got.tokens)


@pytest.mark.slow
def test_two_hundred_pages_at_every_depth_and_batch_size(nano: Parts) -> None:
    pages = held_out(40)
    assert len(pages) >= 200
    same(nano, pages, range(6), (1, 8))
    assert (tau(transcripts(nano, pages, 3, 8).values()) or 0.0) > 1.5
