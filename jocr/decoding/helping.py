"""Pieces of one thread's work that another thread, which waits for the whole, may do as well."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Semaphore
from typing import Any


class Pieces:
    """Numbered pieces, each taken by one thread."""

    def __init__(self, count: int, do: Callable[[int], None]) -> None:
        self._do, self._left, self._count = do, deque(range(count)), count
        self._ended = Semaphore(0)
        self._error: Exception | None = None

    def take(self) -> bool:
        """Do one piece; False where all are taken."""
        try:
            piece = self._left.popleft()
        except IndexError:
            return False
        try:
            self._do(piece)
        except Exception as error:  # raised where the whole is wanted
            self._error = error
        self._ended.release()
        return True

    def finish(self) -> None:
        """Do what is left, and wait for pieces in other hands.

        Raises:
            Exception: what a piece raised.
        """
        while self.take():
            pass
        for _ in range(self._count):
            self._ended.acquire()
        if self._error is not None:
            raise self._error


class Help:
    """Where work in pieces is offered, and where those who wait look for it."""

    def __init__(self) -> None:
        self._offered: list[Pieces] = []
        self._waiting: list[SimpleQueue[None]] = []

    def share(self, count: int, do: Callable[[int], None]) -> None:
        """``do`` every piece, with the help of whoever waits."""
        pieces = Pieces(count, do)
        if count > 1:
            self._offered.append(pieces)
            for news in list(self._waiting):
                news.put(None)
        try:
            pieces.finish()
        finally:
            if count > 1:
                self._offered.remove(pieces)

    def wait(self, whole: Future[Any], otherwise: Callable[[], bool] = lambda: False) -> None:
        """Until ``whole`` is done, do pieces of whatever is offered; where there are none, what ``otherwise`` finds to
        do (False where nothing)."""
        news: SimpleQueue[None] = SimpleQueue()
        self._waiting.append(news)
        try:
            whole.add_done_callback(lambda _: news.put(None))
            while not whole.done():
                if not any(pieces.take() for pieces in list(self._offered)) and not otherwise():
                    news.get()
        finally:
            self._waiting.remove(news)
