"""The vocabulary of the project: what flows from a file to a parsed page.

``DocRef -> PageRef -> PageImage -> PageInput -> Transcript -> ParsedPage -> ParsedDocument``. Any stage may yield a
``PageFailure`` instead. Records hold no open handle, client or device tensor. ``None`` means "not known / does not
apply" for the field it stands in. Identity comes from content: a page is ``sha256 of its document's bytes : index``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

Status = Literal["ok", "blank", "truncated", "loop", "failed"]
STATUSES: tuple[Status, ...] = ("ok", "blank", "truncated", "loop", "failed")
Stop = Literal["end", "length", "loop", "error"]

REASONS: dict[str, str] = {
    "not_a_document": "the bytes are of no type this program reads",
    "empty_file": "the file has no bytes",
    "unreadable_file": "the file cannot be read from its storage",
    "encrypted": "the document needs a password",
    "wrong_password": "the password given does not open the document",
    "corrupt": "the document is damaged beyond opening",
    "no_pages": "the document opens and holds no page",
    "xfa_unsupported": "a dynamic XFA form: only its placeholder page could be seen",
    "zero_area": "the page has no area",
    "too_large": "the declared size is beyond the limit; nothing was allocated",
    "render_timeout": "rendering passed its time limit and was stopped",
    "render_crash": "the renderer's process died on this page",
    "render_error": "the renderer refused this page",
    "image_error": "the image cannot be decoded",
    "missing_package": "reading this type needs an optional package that is not installed",
    "blank_page": "the image shows nothing to read",
    "length": "the token limit was reached before the page ended",
    "loop": "the model repeated itself; the good part before the loop is kept",
    "empty_output": "there is ink on the page and the model returned nothing",
    "engine_error": "the decoder failed on this page",
    "decode_timeout": "decoding passed its time limit",
    "attempts_exhausted": "the page was begun as often as allowed, and each time its process died",
    "nested_container": "a container inside a container is not opened",
}


@dataclass(frozen=True, slots=True)
class DocRef:
    """One document: where it was found and what its bytes are."""

    uri: str
    sha256: str
    size: int  # bytes
    kind: str  # pdf, png, jpeg, tiff, ...


@dataclass(frozen=True, slots=True)
class PageRef:
    """One page of one document; ``index`` counts from 0."""

    doc: DocRef
    index: int

    @property
    def page_id(self) -> str:
        return f"{self.doc.sha256}:{self.index}"


@dataclass(frozen=True, slots=True)
class PageImage:
    """A rendered page: ``png`` bytes (grey or RGB, upright) and how they came about."""

    ref: PageRef
    png: bytes
    width: int  # pixels of the rendered image
    height: int
    source_width: float  # points for PDF, pixels for images, before rotation and scaling
    source_height: float
    dpi: float | None  # effective dots per inch of the rendering; None for plain images
    rotation: int  # degrees clockwise applied to make the page upright: 0, 90, 180, 270
    renderer: str  # "pypdfium2 5.x", "pillow 11.x"
    blank: bool  # decided from the image alone
    evidence: str  # why it is (not) blank, in numbers
    seconds: float = 0.0
    notes: tuple[str, ...] = ()  # warnings: bad EXIF orientation, low effective DPI, repaired header ...


@dataclass(frozen=True, slots=True)
class PageInput:
    """What a decoder takes: one page image and the instruction that goes with it."""

    page_id: str
    png: bytes
    instruction: str
    max_tokens: int
    temperature: float = 0.0  # 0: greedy; above, sampled without a draft
    seed: int = 0  # of the sampling; the same page, temperature and seed give the same text


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a decoder returns for one page."""

    page_id: str
    text: str
    tokens: tuple[int, ...]  # generated ids, without the end token
    stop: Stop
    prompt_tokens: int
    seconds: float  # wall time between admission and end
    rounds: int = 0  # verify rounds; 0 for plain decoding
    drafted: tuple[int, ...] = ()  # per draft position: how often a token was proposed there
    accepted: tuple[int, ...] = ()  # per draft position: how often it was accepted
    detail: str = ""  # evidence for stop = loop or error

    @property
    def tau(self) -> float | None:
        """Mean tokens committed per verify round (accepted + 1); None for plain decoding."""
        return 1.0 + sum(self.accepted) / self.rounds if self.rounds else None


@dataclass(frozen=True, slots=True)
class PageFailure:
    """A page (or, with ``index`` None, a whole document) that a stage could not finish."""

    uri: str
    sha256: str | None
    index: int | None
    stage: Literal["open", "render", "decode", "assemble"]
    reason: str
    detail: str = ""
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """The terminal row of one page: exactly one for every input page."""

    page_id: str
    uri: str
    sha256: str
    page: int  # counts from 1, as people do
    status: Status
    reason: str | None  # a code of REASONS; None where status is ok
    detail: str  # evidence or explanation, may be empty
    markdown: str
    tokens: int
    prompt_tokens: int
    stop: Stop | None  # None where nothing was decoded
    seconds: float  # rendering + decoding
    render_seconds: float
    decode_seconds: float
    tau: float | None
    acceptance: float | None  # accepted / drafted tokens
    width: int | None
    height: int | None
    rotation: int | None
    dpi: float | None
    blank_evidence: str
    notes: str
    renderer: str | None
    model: str | None
    revision: str | None
    prompt_hash: str | None
    engine: str | None
    attempts: int = 1
    sampling: str = "greedy"  # or "temperature 0.4, seed 1"
    member: str = ""  # path inside the container ``uri``; empty for a plain file
    etag: str = ""  # version of the source as its storage names it; empty where not asked
    collection: str = ""  # first folder of the source below the root of what was given
    key: int = 0  # identity of the page in an archive's manifest; 0 outside of one

    def row(self) -> dict[str, Any]:
        """The record as a flat dict of Arrow-friendly values."""
        return asdict(self)

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> ParsedPage:
        names = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in row.items() if k in names})


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """All pages of one document, in page order, and the Markdown made of them."""

    doc: DocRef
    pages: tuple[ParsedPage, ...]
    markdown: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A page with its reference: what training and scoring consume."""

    sample_id: str
    markdown: str
    kind: str = ""
    image: bytes | None = None  # PNG; None where the image lives at ``uri``
    uri: str | None = None
    checks: tuple[dict[str, Any], ...] = ()  # page unit tests, in the olmOCR-Bench JSONL form
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A sample that a rule took out, and why."""

    sample_id: str
    rule: str
    detail: str
