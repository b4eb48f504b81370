"""The straight line on one machine: render threads -> decoder -> rows, each page exactly once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from jocr import documents
from jocr.decoding.protocol import Decoder
from jocr.documents import Origin
from jocr.errors import EngineError
from jocr.parsing.plan import Plan
from jocr.parsing.rendering import Crew, Opened, RendererFactory, RenderJob
from jocr.records import PageFailure, PageImage, PageInput, ParsedPage

PATIENCE = 0.5  # seconds that pages being decoded may be held up for the next image


class Sink(Protocol):
    """Who takes the rows: the writer, the progress display, a test."""

    def opened(self, document: Opened) -> None: ...

    def page(self, number: int, row: ParsedPage) -> None: ...


@dataclass(frozen=True, slots=True)
class Instruction:
    """What the decoder is asked to do with each page."""

    text: str
    max_tokens: int


@dataclass
class Run:
    """One pass over a plan. ``sinks`` are called from one thread at a time."""

    plan: Plan
    job: RenderJob
    instruction: Instruction
    decoder: Decoder
    origin: Origin
    sinks: tuple[Sink, ...]
    _pending: dict[str, tuple[int, PageImage, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def execute(self, factory: RendererFactory) -> None:
        """Parse everything.

        Raises:
            EngineError: the decoder died, or did not answer each page exactly once.
        """
        with Crew(self.plan, self.job, factory) as crew:
            while not crew.finished:
                self._decode(crew)

    def _decode(self, crew: Crew) -> None:
        for transcript in self.decoder.decode(self._inputs(crew)):
            waiting = self._pending.pop(transcript.page_id, None)
            if waiting is None:
                raise EngineError(f"the decoder answered a page it was not given, or twice: {transcript.page_id}")
            number, image, attempts = waiting
            self._emit(number, documents.transcribed(image, transcript, self.origin, attempts=attempts))
        if self._pending:
            raise EngineError(f"the decoder gave no answer for {len(self._pending)} pages: {sorted(self._pending)[:3]}")

    def _inputs(self, crew: Crew) -> Iterator[PageInput]:
        """Pages as they become ready.

        Where none is for a while, the stream ends early: the decoder then finishes what it holds instead of waiting, so
        that a document that is slow to render costs no other page its time. ``execute`` comes back for the rest.
        """
        while True:
            item = crew.take(PATIENCE if self._pending else None)
            if item is None:
                return
            if isinstance(item, Opened):
                self._announce(item)
            elif isinstance(item.result, PageFailure):
                self._emit(item.number, documents.failed(item.result, self.origin, attempts=item.attempts))
            elif item.result.blank:
                self._emit(item.number, documents.blank(item.result, self.origin, attempts=item.attempts))
            else:
                yield self._admit(item.number, item.result, item.attempts)

    def _admit(self, number: int, image: PageImage, attempts: int) -> PageInput:
        """Remember the page under an id of its own: the same file may come twice under two names."""
        key = image.ref.page_id
        if key in self._pending:
            key = f"{key}@{number}"
        self._pending[key] = (number, image, attempts)
        return PageInput(key, image.png, self.instruction.text, self.instruction.max_tokens)

    def _announce(self, document: Opened) -> None:
        with self._lock:
            for sink in self.sinks:
                sink.opened(document)

    def _emit(self, number: int, row: ParsedPage) -> None:
        with self._lock:
            for sink in self.sinks:
                sink.page(number, row)
