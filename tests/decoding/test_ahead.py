"""The next page is made ready beside the ones that decode: one ahead, nobody waits for it, results stay the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import torch

from jocr.decoding.ahead import encoder_thread
from jocr.decoding.engine import TorchDecoder
from jocr.decoding.load import make_decoder, make_encoder, make_steps
from jocr.records import PageInput, Transcript
from tests.decoding.models import VISION, byte_tokenizer, tiny_model
from tests.decoding.test_engine import PROCESSOR, page

WAIT = 20.0  # seconds until a wait is called hopeless


def decoder(batch: int, beside: bool = True) -> TorchDecoder:
    made = make_decoder(tiny_model(5, 0.6, VISION), byte_tokenizer(), PROCESSOR, depth=2, batch=batch, guard=False)
    made.encoder = encoder_thread(1) if beside else None
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


def test_one_page_is_made_ready_ahead_and_no_more() -> None:
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
        assert len(read) <= ended + 1
    assert set(read) == {threading.get_ident()}
    assert len(prepared) == 6
    assert threading.get_ident() not in prepared


def test_running_pages_do_not_wait_for_one_that_is_slow_to_prepare() -> None:
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


def test_the_encoders_thread_leaves_the_callers_operations_their_threads() -> None:
    before = torch.get_num_threads()
    with encoder_thread(1) as thread:
        assert thread.submit(torch.get_num_threads).result() == 1
    assert torch.get_num_threads() == before


def test_only_steps_that_leave_a_core_get_an_encoder() -> None:
    model = tiny_model(5, 0.6, VISION)
    assert make_encoder(make_steps(model, 1, "torch")) is None
