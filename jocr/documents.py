"""From what the stages return to the terminal row of a page, and from pages to a document's Markdown.

Every input page ends as exactly one ``ParsedPage``: transcribed, blank or failed. A page that is not ``ok`` shows in
the document's Markdown as a comment with its reason, so that a reader never takes a gap for the author's silence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jocr.records import (
    REASONS,
    DocRef,
    PageFailure,
    PageImage,
    ParsedDocument,
    ParsedPage,
    Status,
    Transcript,
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Which model, prompt and engine made the text of a page; goes into every row."""

    model: str
    revision: str
    prompt_hash: str
    engine: str


def transcribed(image: PageImage, transcript: Transcript, origin: Origin, *, attempts: int = 1) -> ParsedPage:
    """Row of a page that went through the decoder."""
    status, reason = judge(transcript)
    drafted = sum(transcript.drafted)
    return ParsedPage(
        **_image_fields(image),
        **_origin_fields(origin),
        status=status,
        reason=reason,
        detail=transcript.detail,
        markdown=transcript.text.strip(),
        tokens=len(transcript.tokens),
        prompt_tokens=transcript.prompt_tokens,
        stop=transcript.stop,
        seconds=image.seconds + transcript.seconds,
        decode_seconds=transcript.seconds,
        tau=transcript.tau,
        acceptance=sum(transcript.accepted) / drafted if drafted else None,
        attempts=attempts,
    )


def judge(transcript: Transcript) -> tuple[Status, str | None]:
    """Status and reason code that a transcript earns. A page with ink and no text has failed, however it stopped."""
    if transcript.stop == "error":
        return "failed", "decode_timeout" if transcript.detail.startswith("decode_timeout") else "engine_error"
    if transcript.stop == "loop":
        return "loop", "loop"
    if transcript.stop == "length":
        return "truncated", "length"
    return ("ok", None) if transcript.text.strip() else ("failed", "empty_output")


def blank(image: PageImage, origin: Origin, *, attempts: int = 1) -> ParsedPage:
    """Row of a page that shows nothing to read; the decoder never saw it."""
    return ParsedPage(
        **_image_fields(image),
        **_origin_fields(origin),
        **_undecoded("blank", "blank_page", image.evidence),
        seconds=image.seconds,
        attempts=attempts,
    )


def failed(failure: PageFailure, origin: Origin, *, attempts: int = 1) -> ParsedPage:
    """Row of a page that never became an image. A document that does not open is one row, for its page 1."""
    sha256 = failure.sha256 or ""
    index = failure.index or 0
    identity = sha256 or "uri-" + hashlib.sha256(failure.uri.encode("utf-8", "surrogatepass")).hexdigest()
    return ParsedPage(
        page_id=f"{identity}:{index}",
        uri=failure.uri,
        sha256=sha256,
        page=index + 1,
        **_origin_fields(origin),
        **_undecoded("failed", failure.reason, failure.detail),
        seconds=0.0,
        render_seconds=0.0,
        width=None,
        height=None,
        rotation=None,
        dpi=None,
        blank_evidence="",
        notes="",
        renderer=None,
        attempts=attempts,
    )


def assemble(doc: DocRef, pages: Iterable[ParsedPage]) -> ParsedDocument:
    """Sort pages by number (never by arrival) and join their Markdown.

    Raises:
        ValueError: two rows for one page, which would be a fault of the runner.
    """
    ordered = tuple(sorted(pages, key=lambda page: page.page))
    numbers = [page.page for page in ordered]
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"{doc.uri}: more than one row for a page among {numbers}")
    return ParsedDocument(doc, ordered, join(ordered))


def join(pages: Iterable[ParsedPage]) -> str:
    """Markdown of a document. Each page opens with ``<!-- page N -->``; a lone page that is ok needs no marker."""
    return compose([(page, page.markdown) for page in pages])[0]


def compose(pages: Sequence[tuple[ParsedPage, str]]) -> tuple[str, list[tuple[int, int]]]:
    """Markdown of a document, and where in it each page's own text lies.

    Args:
        pages: each page with the text to show for it, which may be less than its ``markdown``; in page order.

    Returns:
        The Markdown, and (start, end) per page in characters of it: ``markdown[start:end]`` is the page's text, without
        comments about it. A page without text has an empty span where its section ends.
    """
    if len(pages) == 1 and pages[0][0].status == "ok":
        text = pages[0][1]
        return text + "\n", [(0, len(text))]
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    at = 0
    for page, text in pages:
        before, text = _section(page, text)
        if pieces:
            before = "\n\n" + before
        at += len(before)
        spans.append((at, at + len(text)))
        at += len(text)
        pieces += [before, text]
    return "".join([*pieces, "\n"]), spans


def explain(page: ParsedPage) -> str:
    """Why a page is not ok, in words; empty where it is."""
    return REASONS.get(page.reason, page.reason) if page.reason else ""


def _section(page: ParsedPage, text: str) -> tuple[str, str]:
    """What opens a page's section, and the page's text."""
    if page.status == "ok":
        return f"<!-- page {page.page} -->\n\n", text
    comment = f"<!-- page {page.page}: {page.status}: {explain(page)} -->"
    if page.status == "failed":
        return f"{comment}\n\n*[Page {page.page} could not be read: {explain(page)}.]*", ""
    return (f"{comment}\n\n", text) if text else (comment, "")


def _image_fields(image: PageImage) -> dict:
    doc = image.ref.doc
    return {
        "page_id": image.ref.page_id,
        "uri": doc.uri,
        "sha256": doc.sha256,
        "page": image.ref.index + 1,
        "render_seconds": image.seconds,
        "width": image.width,
        "height": image.height,
        "rotation": image.rotation,
        "dpi": image.dpi,
        "blank_evidence": image.evidence,
        "notes": "; ".join(image.notes),
        "renderer": image.renderer,
    }


def _origin_fields(origin: Origin) -> dict:
    return {
        "model": origin.model,
        "revision": origin.revision,
        "prompt_hash": origin.prompt_hash,
        "engine": origin.engine,
    }


def _undecoded(status: Status, reason: str, detail: str) -> dict:
    return {
        "status": status,
        "reason": reason,
        "detail": detail,
        "markdown": "",
        "tokens": 0,
        "prompt_tokens": 0,
        "stop": None,
        "decode_seconds": 0.0,
        "tau": None,
        "acceptance": None,
    }
