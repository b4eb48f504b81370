"""A renderer without a child process, for tests of what is built on it: documents are names with a page plan."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from jocr.config import ParseRecipe, build
from jocr.decoding.fake import FakeDecoder
from jocr.parsing.command import Summary, parse
from jocr.parsing.plan import PageSelection, make_plan
from jocr.parsing.table import read_rows
from jocr.records import DocRef, PageFailure, PageImage, PageRef

Page = str  # "ink", "blank", or a failure's reason; "flaky" fails once and then succeeds


@dataclass
class FakeLibrary:
    """``documents``: uri -> its pages, or a reason why it does not open. Thread-safe enough for counting."""

    documents: dict[str, list[Page] | str]
    on_render: Callable[[PageRef], None] = lambda ref: None
    renders: Counter = field(default_factory=Counter)

    def __call__(self) -> FakeLibrary:
        return self

    def __enter__(self) -> FakeLibrary:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def open(self, uri: str, *, password: str | None = None) -> tuple[DocRef, int] | PageFailure:
        pages = self.documents[uri]
        if isinstance(pages, str):
            return PageFailure(uri, None, None, "open", pages, "as planned")
        return DocRef(uri, hashlib.sha256("|".join(pages).encode()).hexdigest(), 100, "pdf"), len(pages)

    def render(
        self, ref: PageRef, *, long_side: int, password: str | None = None, then: int | None = None
    ) -> PageImage | PageFailure:
        self.on_render(ref)
        page = self.documents[ref.doc.uri][ref.index]
        self.renders[ref.doc.uri, ref.index] += 1
        if page == "flaky" and self.renders[ref.doc.uri, ref.index] == 1:
            return PageFailure(ref.doc.uri, ref.doc.sha256, ref.index, "render", "render_timeout", "", True)
        if page not in {"ink", "blank", "flaky"}:
            return PageFailure(ref.doc.uri, ref.doc.sha256, ref.index, "render", page, "as planned")
        png = f"{ref.doc.sha256}/{ref.index}/{long_side}".encode()
        return PageImage(ref, png, 10, 20, 10, 20, 72.0, 0, "fake 1", page == "blank", f"it is {page}", 0.25)


def names_of(library: FakeLibrary) -> Callable:
    """A ``discover`` that finds every document of the library under its own uri."""
    from jocr.pages.sources import SourceFile

    return lambda sources: [SourceFile(uri, uri) for uri in library.documents]


def run(library, out, *, decoder=None, sinks=(), **settings) -> Summary:
    """Parse the whole library into ``out`` in this process."""
    recipe = build(ParseRecipe, {"out": str(out), "model": {"name": "fake"}, "report": {"pages": 0}, **settings})
    plan = make_plan(["x"], names_of(library))
    planned = PageSelection.parse(recipe.pages), plan
    return parse(recipe, planned=planned, sinks=sinks, factory=library, decoder=decoder or FakeDecoder())


def rows_of(out):
    return list(read_rows(out / "pages.parquet"))
