"""One decoder for many units: nothing waits for a unit to end, and a lost decoder keeps nobody waiting."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from jocr.archive.feed import Feed
from jocr.decoding.fake import FakeDecoder
from jocr.errors import EngineError
from jocr.records import PageInput, Transcript


def pages(unit, count):
    return [PageInput(f"{unit}:{i}", b"png", "read", 10) for i in range(count)]


class Slots(FakeDecoder):
    """Eight slots, filled as pages end, as the real engines do; ``log`` holds how many were in use after each end."""

    slots = 8

    def decode(self, pages):
        running, log, source, ended = [], self.__dict__.setdefault("log", []), iter(pages), False
        while running or not ended:
            while not ended and len(running) < self.slots:
                page = next(source, None)
                ended = page is None
                if page is not None:
                    running.append(page)
            if running:
                time.sleep(0.002)
                page = running.pop(0)
                log.append(len(running))
                yield Transcript(page.page_id, "text", (1,), "end", 1, 0.0)


def feed(decoder, **more):
    lost = []
    return Feed(decoder, lost.append, **{"stall_seconds": 60, "patience": 0.05, **more}), lost


def test_units_share_the_batch_and_it_does_not_drain_between_them():
    decoder = Slots()
    shared, lost = feed(decoder)

    def unit(number):
        with shared.shared():
            return sorted(answer.number for answer in shared.decode(pages(number, 40)))

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(unit, range(6)))
    assert found == [list(range(40))] * 6
    assert not lost
    assert len(decoder.log) == 240
    assert min(decoder.log[:-8]) == decoder.slots - 1  # full to the last page, five boundaries included


def test_one_unit_at_a_time_drains_at_every_boundary():
    decoder = Slots()
    shared, _ = feed(decoder)
    for number in range(3):
        list(shared.decode(pages(number, 20)))
    assert decoder.log.count(0) == 3


def test_equal_pages_of_two_units_each_get_their_answer():
    shared, _ = feed(FakeDecoder(batch=4))
    answers = list(shared.decode([*pages("same", 2), *pages("same", 2)]))
    assert sorted(answer.number for answer in answers) == [0, 1, 2, 3]
    assert {answer.transcript.page_id for answer in answers} == {"same:0", "same:1"}


def test_the_decoders_time_is_shared_out_without_loss():
    shared, _ = feed(FakeDecoder(seconds=0.02, batch=4))
    begun = time.monotonic()
    total = sum(answer.share for answer in shared.decode(pages("a", 8)))
    assert 0.15 < total <= time.monotonic() - begun


def test_whoever_wants_the_decoder_alone_gets_it_alone():
    shared, _ = feed(FakeDecoder())
    inside, overlaps = set(), []

    def together(number):
        with shared.shared():
            inside.add(number)
            time.sleep(0.01)
            inside.discard(number)

    def alone(number):
        with shared.exclusive():
            overlaps.append(set(inside))
            assert shared.alone(pages(number, 1)[0]).transcript.stop == "end"
            overlaps.append(set(inside))

    with ThreadPoolExecutor(8) as pool:
        for number in range(30):
            pool.submit(alone if number % 5 == 0 else together, number)
    assert overlaps == [set()] * 12


@pytest.mark.parametrize("script", [{1: "die"}, {0: "die"}])
def test_a_decoder_that_dies_is_told_and_nobody_waits_for_it(script):
    shared, lost = feed(FakeDecoder(script=script))
    with pytest.raises(EngineError, match="died"):
        list(shared.decode(pages("a", 5)))
    with pytest.raises(EngineError, match="died"):
        list(shared.decode(pages("b", 1)))
    assert len(lost) == 1


def test_a_decoder_that_hangs_is_found_by_the_watchdog():
    shared, lost = feed(FakeDecoder(script={2: "hang"}), stall_seconds=0.3)
    begun = time.monotonic()
    with pytest.raises(EngineError, match="1 pages in flight and none of them ended"):
        list(shared.decode(pages("a", 3)))
    assert 0.3 <= time.monotonic() - begun < 5
    assert len(lost) == 1


def test_a_slow_decoder_is_no_hanging_one():
    shared, lost = feed(FakeDecoder(seconds=0.2), stall_seconds=0.5)
    assert len(list(shared.decode(pages("a", 4)))) == 4
    time.sleep(0.6)  # nothing in flight is no stall either
    assert not lost


def test_a_decoder_that_answers_what_it_was_not_asked_is_lost():
    class Liar(FakeDecoder):
        def decode(self, pages):
            for _ in pages:
                yield Transcript("nobody", "", (), "end", 0, 0.0)

    shared, lost = feed(Liar())
    with pytest.raises(EngineError, match="was not given"):
        list(shared.decode(pages("a", 1)))
    assert lost


def test_closing_ends_the_thread():
    shared, _ = feed(FakeDecoder())
    list(shared.decode(pages("a", 1)))
    shared.close()
    deadline = time.monotonic() + 5
    while any(thread.name == "jocr-feed" and thread is shared._thread for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
