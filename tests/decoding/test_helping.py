"""Work in pieces: each is done once, by its owner or by one who waits, and what goes wrong is raised to the owner."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jocr.decoding.helping import Help

WAIT = 20.0  # seconds until a wait is called hopeless


def test_one_who_waits_takes_pieces_and_each_is_done_once() -> None:
    help, begin, both = Help(), threading.Event(), threading.Barrier(2)
    done: list[tuple[int, int]] = []

    def piece(i: int) -> None:
        if i < 2:
            both.wait(WAIT)  # passes only with two threads at work
        done.append((i, threading.get_ident()))

    def whole() -> str:
        begin.wait(WAIT)
        help.share(7, piece)
        return "whole"

    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(whole)
        begin.set()
        help.wait(future)
        assert future.done()
        assert future.result() == "whole"
    assert sorted(i for i, _ in done) == list(range(7))
    assert threading.get_ident() in {who for _, who in done}
    help.share(2, lambda i: None)  # nothing is left over for the next


def test_a_broken_piece_is_the_owners_error_whoever_did_it() -> None:
    help = Help()
    helper, broken = threading.Event(), threading.main_thread().ident

    def piece(i: int) -> None:
        if threading.get_ident() == broken:
            helper.set()
            raise ValueError("broken")
        helper.wait(WAIT)

    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(help.share, 2, piece)
        help.wait(future)
        with pytest.raises(ValueError, match="broken"):
            future.result()


def test_who_waits_for_work_without_pieces_only_waits() -> None:
    help, late = Help(), threading.Event()
    with ThreadPoolExecutor(1) as thread:
        threading.Timer(0.05, late.set).start()
        help.wait(thread.submit(late.wait, WAIT))
        assert late.is_set()
        help.wait(thread.submit(int))
