"""What every engine looks like from outside: pages in, transcripts out, one for each page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jocr.records import PageInput, Transcript


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What a result's provenance says of the engine that made it."""

    model: str  # "nano", a path or a hub id
    revision: str  # sha256 prefix of the checkpoint's weights index
    engine: str  # "jocr-torch 0.1.0 (torch 2.13.0)"
    device: str
    dtype: str
    draft_depth: str  # "0".."5" or "auto"
    guarantee: str  # "exact" or "up to near-ties": what speculation promises against plain greedy


@runtime_checkable
class Decoder(Protocol):
    """Decodes pages continuously.

    ``decode`` pulls pages as it has room, and yields one transcript for each, in order of completion. A page that
    fails yields a transcript with ``stop="error"`` and the reason in ``detail``; it costs no other page anything.
    """

    info: EngineInfo

    def decode(self, pages: Iterable[PageInput]) -> Iterator[Transcript]: ...

    def close(self) -> None: ...
