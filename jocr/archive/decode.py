"""The second stage of a pass: a unit's images to rows, through a decoder that other units use at the same time.

The journal is written before pages are decoded, so that an attempt that ends in the process's death is found by the
next one. That one has the decoder to itself; where a page may have been the cause, it takes one at a time, so that a
death charges the page that caused it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from jocr import documents
from jocr.archive.attempts import Attempt, Journal
from jocr.archive.feed import Answer, Feed
from jocr.archive.ledger import Ledger
from jocr.archive.retry import climb
from jocr.archive.settings import Reading
from jocr.archive.work import Read, Sheets, Shot, stamped
from jocr.config import Rung
from jocr.documents import Origin
from jocr.parsing import engine
from jocr.parsing.runner import Instruction
from jocr.records import PageFailure, PageImage, PageInput, ParsedPage, Transcript

CLIMBERS = 8  # pages of one unit on the retry ladder at a time
Again = Callable[[Shot, float, int], PageImage | PageFailure]  # page, scale, quarter turns in degrees -> image anew


@dataclass
class UnitReader:
    """Reads units; any number of threads may call it.

    Args:
        again: renders a page anew, for the ladder.
        budget: starts that a page gets in all.
        run: name of the run, for the journal.
        tell: told of every row as it is ready.
    """

    feed: Feed
    reading: Reading
    ledger: Ledger
    again: Again
    budget: int
    run: str = ""
    tell: Callable[[ParsedPage], None] = lambda row: None

    @property
    def origin(self) -> Origin:
        return engine.origin(self.feed.info, Instruction(self.reading.instruction, self.reading.max_tokens))

    def read(self, sheets: Sheets) -> Read:
        """A row for every page of the unit.

        Raises:
            EngineError: the decoder died, where that does not end the process.
            StorageError: the journal cannot be written.
        """
        work, keys = sheets.work, sheets.keys
        if sheets.done or self.ledger.has(work.unit):
            return Read(work, (), (), 0, 0.0, done=True)
        ready = [self._told(self._unasked(shot, sheets)) for shot in sheets.shots if not _asks(shot)]
        asked = [shot for shot in sheets.shots if _asks(shot)]
        rows, busy, kept = self._asked(asked, sheets) if asked else ([], 0.0, False)
        return Read(work, keys, (*sheets.kept, *ready, *rows), len(sheets.kept), busy, kept)

    def _asked(self, shots: list[Shot], sheets: Sheets) -> tuple[list[ParsedPage], float, bool]:
        """(rows, decoder's seconds, whether there is a journal to clear). An attempt begins when it is its turn."""
        journal = Journal(self.ledger.out, self.ledger.settings, sheets.work.unit, self.run)
        with self.feed.shared(), journal.begin(self.budget) as attempt:
            if attempt.mode == "together":
                pages = _Pages(self, sheets, attempt)
                return pages.together(shots), pages.busy, False
        with self.feed.exclusive(), journal.begin(self.budget) as attempt:
            pages = _Pages(self, sheets, attempt)
            if attempt.mode == "alone":
                return [pages.alone(shot) for shot in shots], pages.busy, True
            return pages.apart(shots), pages.busy, True

    def _unasked(self, shot: Shot, sheets: Sheets) -> ParsedPage:
        attempts = shot.attempts + sheets.earlier.get(shot.page.key, 0)
        if isinstance(shot.result, PageFailure):
            row = documents.failed(shot.result, self.origin, attempts=attempts)
        else:
            row = documents.blank(shot.result, self.origin, attempts=attempts)
        return stamped(row, shot.page)

    def _told(self, row: ParsedPage) -> ParsedPage:
        self.tell(row)
        return row


class _Pages:
    """The pages of one unit on their way through the decoder; ``busy`` adds up its time."""

    def __init__(self, reader: UnitReader, sheets: Sheets, attempt: Attempt) -> None:
        self._reader, self._earlier, self._attempt = reader, sheets.earlier, attempt
        self.busy = 0.0
        self._adding = threading.Lock()

    def together(self, shots: list[Shot], keep: Callable[[ParsedPage], None] = lambda row: None) -> list[ParsedPage]:
        """All at once; a page on the ladder holds up no other. ``keep`` is told of each row as it is ready."""

        def finished(shot: Shot, transcript: Transcript) -> ParsedPage:
            row = self._row(shot, transcript, max(shot.attempts, 1 + self._attempt.charged(shot.page.key)))
            keep(row)
            return row

        with ThreadPoolExecutor(CLIMBERS, "jocr-climb") as pool:
            inputs = (self._input(shot.result, None) for shot in shots)
            rows = []
            for answer in self._reader.feed.decode(inputs):
                rows.append(pool.submit(finished, shots[answer.number], self._took(answer)))
            return [row.result() for row in rows]

    def apart(self, shots: list[Shot]) -> list[ParsedPage]:
        """All that have no row yet at once, each row kept."""
        done = dict(self._attempt.rows)
        left = [shot for shot in shots if shot.page.key not in done]
        self._attempt.parted()
        fresh = self.together(left, self._attempt.saved)
        return [*(done[shot.page.key] for shot in shots if shot.page.key in done), *fresh]

    def alone(self, shot: Shot) -> ParsedPage:
        """One by itself, unless it was finished before or has no start left."""
        key, attempt = shot.page.key, self._attempt
        if (row := attempt.rows.get(key)) is not None:
            return row
        if attempt.exhausted(key):
            return self._reader._told(self._exhausted(shot, attempt.charged(key)))
        attempt.started(key)
        answer = self._reader.feed.alone(self._input(shot.result, None))
        row = self._row(shot, self._took(answer), max(shot.attempts, 1 + attempt.charged(key)))
        attempt.saved(row)
        return row

    def _row(self, shot: Shot, transcript: Transcript, attempts: int) -> ParsedPage:
        image, origin = _image(shot), self._reader.origin
        attempts += self._earlier.get(shot.page.key, 0)
        first = documents.transcribed(image, transcript, origin, attempts=attempts)
        ladder = self._reader.reading.ladder
        again = partial(self._reader.again, shot)
        row = climb(first, image, ladder, self._ask, again)
        return self._reader._told(stamped(row, shot.page))

    def _ask(self, image: PageImage, rung: Rung) -> Transcript:
        page = self._input(image, rung)
        if self._attempt.mode == "alone":
            return self._took(self._reader.feed.alone(page))
        (answer,) = self._reader.feed.decode([page])
        return self._took(answer)

    def _took(self, answer: Answer) -> Transcript:
        with self._adding:
            self.busy += answer.share
        return answer.transcript

    def _input(self, image: PageImage | PageFailure, rung: Rung | None) -> PageInput:
        assert isinstance(image, PageImage)
        reading = self._reader.reading
        page = PageInput(image.ref.page_id, image.png, reading.instruction, reading.max_tokens)
        if rung is None:
            return page
        limit = rung.max_tokens or page.max_tokens
        return replace(page, max_tokens=limit, temperature=rung.temperature, seed=rung.seed)

    def _exhausted(self, shot: Shot, starts: int) -> ParsedPage:
        detail = f"begun {starts} times, and each time the decoder's process died"
        nothing = Transcript("", "", (), "error", 0, 0.0, detail=detail)
        attempts = starts + self._earlier.get(shot.page.key, 0)
        row = documents.transcribed(_image(shot), nothing, self._reader.origin, attempts=attempts)
        return stamped(replace(row, reason="attempts_exhausted", stop=None), shot.page)


def _asks(shot: Shot) -> bool:
    """Whether the decoder is asked: there is an image, with something on it."""
    return isinstance(shot.result, PageImage) and not shot.result.blank


def _image(shot: Shot) -> PageImage:
    assert isinstance(shot.result, PageImage)
    return shot.result
