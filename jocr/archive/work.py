"""What flows through a pass over an archive: ``Work -> Sheets -> Read -> Receipt``, one of each for a unit of pages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from jocr.archive.layout import ManifestPage, Unit
from jocr.archive.ledger import Commit
from jocr.records import DocRef, PageFailure, PageImage, ParsedPage


@dataclass(frozen=True, slots=True)
class Work:
    """A unit to do. It names pages and holds none, so that a million of them are planned in a little memory."""

    unit: Unit
    carried: tuple[tuple[str, int], ...] = ()  # committed units (and generations) that hold rows of some of its pages
    redo: str | None = None  # reason code: of the generation before, only pages that failed for it are read anew


@dataclass(frozen=True, slots=True)
class Shot:
    """A page of the unit with its image, or why there is none; ``attempts`` is how often rendering was tried."""

    page: ManifestPage
    result: PageImage | PageFailure
    attempts: int


@dataclass(frozen=True, slots=True)
class Sheets:
    """A unit rendered."""

    work: Work
    keys: tuple[int, ...]  # of all its pages, in the order of the manifest
    kept: tuple[ParsedPage, ...]  # rows that stand already
    shots: tuple[Shot, ...]  # all other pages
    earlier: dict[int, int] = field(default_factory=dict)  # key -> attempts of a generation before
    done: bool = False  # somebody committed the unit meanwhile


@dataclass(frozen=True, slots=True)
class Read:
    """A unit read: a row for each of ``keys``, unless it is done."""

    work: Work
    keys: tuple[int, ...]
    rows: tuple[ParsedPage, ...]
    carried: int  # of ``rows``, how many stood already
    busy_seconds: float  # of a decoder's time
    kept: bool = False  # there is a journal to clear
    done: bool = False


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the driver is told of a unit: counts. ``mine`` is false where somebody else had committed it."""

    unit: str
    pages: int
    mine: bool
    counts: dict[str, int] = field(default_factory=dict)  # per status
    reasons: dict[str, int] = field(default_factory=dict)
    carried: int = 0
    tokens: int = 0
    busy_seconds: float = 0.0

    @classmethod
    def of(cls, commit: Commit, *, mine: bool = True) -> Receipt:
        return cls(
            commit.unit, commit.pages, mine, commit.counts, commit.reasons, commit.carried, commit.tokens,
            commit.busy_seconds,
        )  # fmt: skip


def document(page: ManifestPage) -> DocRef:
    """The document of a page, as a renderer knows it."""
    return DocRef(page.uri, page.sha256, page.size, page.kind)


def stamped(row: ParsedPage, page: ManifestPage) -> ParsedPage:
    """``row`` with what only the manifest knows of its page."""
    return replace(
        row, uri=page.uri, member=page.member, etag=page.etag, collection=page.collection, key=page.key
    )  # fmt: skip
