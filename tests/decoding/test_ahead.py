"""The next pages are made ready beside the ones that decode: some ahead, by whoever is free, with the same results."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from jocr.decoding.ahead import AHEAD, Ahead, Prefiller, encoder_thread
from jocr.decoding.engine import TorchDecoder
from jocr.decoding.load import make_decoder, make_encoder, make_steps
from jocr.records import PageInput, Transcript
from tests.decoding.models import VISION, byte_tokenizer, tiny_model
from tests.decoding.test_engine import PROCESSOR, page

WAIT = 20.0  # seconds until a wait is called hopeless


def decoder(batch: int, beside: bool = True) -> TorchDecoder:
    made = make_decoder(tiny_model(5, 0.6, VISION), byte_tokenizer(), PROCESSOR, depth=2, batch=batch, guard=False)
    made.close()
    made.encoder = encoder_thread(1) if beside else None
    if beside and made.steps.cache.slots == batch:
        made.steps.cache.add_spare(AHEAD)
    return made


def tokens(done: list[Transcript]) -> dict[str, tuple[int, ...]]:
    return {t.page_id: t.tokens for t in done}


def test_results_are_those_of_one_thread_and_broken_pages_cost_only_themselves() -> None:
    pages = [page(0), replace(page(1), png=b"no image"), page(2, width=200), page(3), replace(page(4), png=b"")]
    for batch in (1, 3):
        one, two = decoder(batch, beside=False), decoder(batch)
        assert tokens(list(two.decode(pages))) == tokens(list(one.decode(pages)))
        assert list(two.decode([])) == []
        two.close()
        assert len(list(two.decode(pages))) == 5  # after its end it works without


def test_so_many_pages_are_made_ready_ahead_and_no_more() -> None:
    engine, read, prepared = decoder(1), [], []
    plain = engine.prepare

    def prepare(page: PageInput):  # type: ignore[no-untyped-def]
        prepared.append(threading.get_ident())
        return plain(page)

    def pages() -> Iterator[PageInput]:
        for i in range(6):
            read.append(threading.get_ident())
            yield page(i)

    engine.prepare = prepare  # type: ignore[method-assign]
    for ended, _ in enumerate(engine.decode(pages()), 1):
        assert len(read) <= ended + AHEAD
    assert set(read) == {threading.get_ident()}
    assert len(prepared) == 6
    assert len(set(prepared) - {threading.get_ident()}) == 1


def test_who_waits_for_a_page_prepares_a_later_one() -> None:
    engine, met = decoder(1), threading.Barrier(2, timeout=WAIT)
    plain, prepared = engine.prepare, {}

    def prepare(page: PageInput):  # type: ignore[no-untyped-def]
        prepared[page.page_id] = threading.get_ident()
        if page.page_id in ("p0", "p1"):
            met.wait()  # broken by the time limit unless both are prepared at once
        return plain(page)

    engine.prepare = prepare  # type: ignore[method-assign]
    pages = [page(i) for i in range(4)]
    assert tokens(list(engine.decode(pages))) == tokens(list(decoder(1, beside=False).decode(pages)))
    assert prepared["p1"] == threading.get_ident() != prepared["p0"]


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a page only waits."""
    monkeypatch.setattr(Ahead, "_take_on", lambda self: False)


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch, apart: None) -> list[bool]:
    """Every page is filled by the encoder's thread, whether or not anybody waits; whether it could be is noted."""
    seen, plain = [], Prefiller.fill

    def noted(self, prime, job):  # type: ignore[no-untyped-def]
        asked = []

        def once() -> bool:  # whether pages draft may change meanwhile
            asked.append(prime())
            return asked[-1]

        job = plain(self, once, job)
        seen.append(job.filled is not None and [job.filled.primed] == asked)
        return job

    monkeypatch.setattr(Prefiller, "fill", noted)
    monkeypatch.setattr(
        Ahead, "_make", lambda self, page, number: self._fill(job) if (job := self._prepare(page)) else None
    )
    return seen


@pytest.mark.parametrize("batch", [1, 3])
def test_prompts_read_by_the_encoders_thread_give_the_same_tokens(filled: list[bool], batch: int) -> None:
    pages = [page(0), replace(page(1), png=b"no image"), page(2, width=200), page(3), page(4)]
    want = tokens(list(decoder(batch, beside=False).decode(pages)))
    assert not filled
    engine = decoder(batch)
    assert tokens(list(engine.decode(pages))) == want
    assert filled == [True] * 4
    assert len(engine.steps.cache.free) == batch + AHEAD
    ended = list(engine.decode([replace(p, temperature=0.7, seed=3) for p in pages]))
    plain = decoder(batch, beside=False).decode([replace(p, temperature=0.7, seed=3) for p in pages])
    assert tokens(ended) == tokens(list(plain))


def test_a_page_that_nobody_asks_for_any_more_gives_its_slot_back(filled: list[bool]) -> None:
    engine = decoder(1)
    run = engine.decode([page(i) for i in range(4)])
    next(run)
    run.close()
    assert sorted(engine.steps.cache.free) == [*range(1 + AHEAD)]
    assert len(list(engine.decode([page(0)]))) == 1


def test_a_prompt_longer_than_the_cache_is_left_to_the_thread_that_may_grow_it(filled: list[bool]) -> None:
    engine, long = decoder(1), replace(page(1), instruction="read " * 60)
    want = tokens(list(decoder(1, beside=False).decode([page(0), long])))
    assert tokens(list(engine.decode([page(0), long]))) == want
    assert filled == [True, False]


def test_running_pages_do_not_wait_for_one_that_is_slow_to_prepare(apart: None) -> None:
    engine, first_done = decoder(2), threading.Event()
    plain, seen = engine.prepare, []

    def prepare(page: PageInput):  # type: ignore[no-untyped-def]
        if page.page_id == "p1":
            seen.append(first_done.wait(WAIT))
        return plain(page)

    engine.prepare = prepare  # type: ignore[method-assign]
    for transcript in engine.decode([page(0), page(1)]):
        first_done.set()
        assert transcript.stop == "length"
    assert seen == [True]


def test_the_callers_operations_have_their_threads_again_when_all_is_decoded() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run = decoder(1).decode([page(0), page(1)])
        next(run)
        assert torch.get_num_threads() == 1
        assert len(list(run)) == 1
        assert torch.get_num_threads() == 2
        run = decoder(1).decode([page(0), page(1)])
        next(run)
        run.close()
        assert torch.get_num_threads() == 2
        first, second = (decoder(1).decode([page(0), page(1)]) for _ in range(2))
        next(first), next(second)
        first.close()
        assert torch.get_num_threads() == 1
        second.close()
        assert torch.get_num_threads() == 2
        run = decoder(1).decode([page(0), page(1)])
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(next, run).result()
            run.close()
            assert torch.get_num_threads() == 2
            elsewhere.submit(lambda: list(decoder(1).decode([page(0)]))).result()
        assert len(list(decoder(1).decode([page(0)]))) == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_encoders_thread_leaves_the_callers_operations_their_threads() -> None:
    before = torch.get_num_threads()
    with encoder_thread(1) as thread:
        assert thread.submit(torch.get_num_threads).result() == 1
    assert torch.get_num_threads() == before


def test_only_steps_that_leave_a_core_get_an_encoder() -> None:
    model = tiny_model(5, 0.6, VISION)
    assert make_encoder(make_steps(model, 1, "torch")) is None
