"""One self-contained HTML file about a benchmark run: the table, then the worst pages with image, texts and failures.

Shared by both benchmarks. Page contents are rebuilt from an allow-list of tags, so nothing a model wrote can run.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from jocr.records import PageFailure, PageRef
from jocr.report.render import to_html

CSP = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
IMAGE_SIDE = 900  # pixels of the longer side in the report
LONGEST_TEXT = 60_000  # characters of one page shown
STYLE = """
.pair { grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)) }
.half { padding: 0 16px 16px; overflow: auto; max-height: 1100px; border-left: 1px solid var(--line) }
.half h3, .scan h3 { font-size: 13px; color: var(--soft); margin: 10px 0; text-align: left }
.half pre { white-space: pre-wrap; background: var(--ground); padding: 8px }
.half table { border-collapse: collapse } .half td, .half th { border: 1px solid #b9c2ca; padding: 2px 8px }
ul.why { margin: 8px 16px }
"""


@dataclass(frozen=True)
class WorstPage:
    """One page of the report. ``failures`` are sentences; ``reference`` is Markdown, None where there is none."""

    name: str
    score: str
    failures: Sequence[str]
    prediction: str
    reference: str | None = None
    image: bytes | None = None  # JPEG
    image_note: str = ""  # why there is no image


@dataclass(frozen=True)
class Table:
    """A plain table: head and rows of cells as text."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class Report:
    """What :func:`render` turns into HTML."""

    title: str
    tables: Sequence[Table]
    pages: Iterable[WorstPage]
    provenance: Mapping[str, Any] = field(default_factory=dict)


class PageImages:
    """Page images for the report, by the project's own renderer. Use it as a context manager."""

    def __init__(self, side: int = IMAGE_SIDE) -> None:
        from jocr.pages.render import Renderer

        self.side = side
        self._renderer = Renderer()

    def __enter__(self) -> PageImages:
        return self

    def __exit__(self, *_: object) -> None:
        self._renderer.close()

    def jpeg(self, path: Path, page: int = 1) -> tuple[bytes | None, str]:
        """The page (counted from 1) of a PDF or image file as JPEG, and, where it cannot be had, why."""
        if not path.is_file():
            return None, f"no file {path}"
        opened = self._renderer.open(str(path))
        if isinstance(opened, PageFailure):
            return None, f"{opened.reason}: {opened.detail}"
        rendered = self._renderer.render(PageRef(opened[0], page - 1), long_side=self.side)
        if isinstance(rendered, PageFailure):
            return None, f"{rendered.reason}: {rendered.detail}"
        return _as_jpeg(rendered.png), ""


def _as_jpeg(png: bytes) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").save(out, "JPEG", quality=75)
    return out.getvalue()


def render(report: Report) -> str:
    """The whole HTML file."""
    return "".join(_parts(report))


def _parts(report: Report) -> Iterator[str]:
    style = (resources.files("jocr") / "data" / "report.css").read_text("utf-8") + STYLE
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{CSP}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(report.title)}</title><style>{style}</style></head><body><header>"
    yield f"<h1>{escape(report.title)}</h1>"
    for table in report.tables:
        yield _table(table)
    if report.provenance:
        facts = json.dumps(report.provenance, indent=1, ensure_ascii=False, default=str)
        yield f"<details><summary>Provenance</summary><pre>{escape(facts)}</pre></details>"
    yield "</header><main><h2>Worst pages</h2>"
    shown = 0
    for page in report.pages:
        shown += 1
        yield _page(page)
    if not shown:
        yield '<p class="none">No page has a failure to show.</p>'
    yield "</main></body></html>\n"


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    note = f"<p>{escape(table.note)}</p>" if table.note else ""
    return f'<h2>{escape(table.title)}</h2><table class="facts"><tr>{head}</tr>{rows}</table>{note}'


def _page(page: WorstPage) -> str:
    failures = "".join(f"<li>{escape(text)}</li>" for text in page.failures)
    reference = "" if page.reference is None else _half("reference", page.reference)
    return (
        f'<section class="page failed"><div class="bar"><span class="badge">{escape(page.score)}</span>'
        f"<b>{escape(page.name)}</b></div>"
        f'<ul class="why">{failures}</ul><div class="pair"><div class="scan"><h3>image</h3>{_image(page)}</div>'
        f"{_half('prediction', page.prediction)}{reference}</div></section>"
    )


def _image(page: WorstPage) -> str:
    if page.image is None:
        return f'<p class="none">no image: {escape(page.image_note or "none given")}</p>'
    return f'<img alt="page image" src="data:image/jpeg;base64,{base64.b64encode(page.image).decode()}">'


def _half(title: str, markdown: str) -> str:
    cut = markdown[:LONGEST_TEXT]
    more = f'<p class="none">cut after {LONGEST_TEXT} characters</p>' if len(cut) < len(markdown) else ""
    shown = to_html(cut) if cut.strip() else '<p class="none">empty</p>'
    source = f"<details><summary>source</summary><pre>{escape(cut)}</pre></details>"
    return f'<div class="half"><h3>{escape(title)}</h3>{shown}{more}{source}</div>'
