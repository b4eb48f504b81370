"""An archive to read, and what its reading must come to: known from how it was made, not from what the job says.

The reference reads every page in a bare loop (renderer, fake engine), without Ray, units, ledger or inventory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from jobs.archive_bench import papers
from jocr.decoding.fake import MARKS, fake_text
from jocr.pages.render import Renderer, RenderLimits
from jocr.records import PageFailure, PageRef

LONG_SIDE = 256
POISON = ("exit", "render_crash", "hang", "render_hang", "error", "empty", "loop", "length", "exit", "render_crash")
ENDS = {  # act -> (status, reason) where the page's image is not what decides
    "exit": ("failed", "attempts_exhausted"),
    "hang": ("failed", "attempts_exhausted"),
    "render_hang": ("failed", "render_timeout"),
    "render_crash": ("failed", "render_crash"),
    "error": ("failed", "engine_error"),
    "empty": ("failed", "empty_output"),
    "loop": ("loop", "loop"),
    "length": ("truncated", "length"),
    "blank": ("blank", "blank_page"),
    "ink": ("ok", ""),
}

Place = tuple[str, int]  # name below the source (members under their container), page from 1


@dataclass(frozen=True, slots=True)
class Paper:
    """One document of the archive. ``container``: the zip it lies in."""

    name: str  # relative path, in the container where there is one
    kind: str  # pdf, png, tif, or broken
    acts: tuple[str, ...]
    container: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.container}/{self.name}" if self.container else self.name

    def data(self) -> bytes:
        if self.kind == "pdf":
            return papers.pdf(self.full_name, self.acts)
        if self.kind == "tif":
            return papers.tiff(self.full_name, self.acts)
        return papers.png(self.full_name, self.acts[0]) if self.kind == "png" else b"%PDF-1.4\nnothing follows"


@dataclass(frozen=True, slots=True)
class End:
    """How a page must end. ``markdown`` None: whatever it says, it is not compared."""

    status: str
    reason: str
    markdown: str | None


def plan(pages: int, poison: Sequence[str] = POISON) -> list[Paper]:
    """An archive of ``pages`` pages: a fifth in one PDF, the rest in PDFs, TIFFs, images and zips of them, in folders,
    under names of many scripts; every 37th page blank, the ``poison`` spread over the PDFs, one document broken."""
    sizes = [("big/all in one.pdf", "pdf", pages // 5, "")]
    left, number = pages - 1 - sizes[0][2], 0
    while left > 0:
        shape = _SHAPES[number % len(_SHAPES)]
        name, kind, most, container = shape
        size = min(most, left)
        sizes.append((name.format(number), kind, size, container.format(number // len(_SHAPES))))
        left, number = left - size, number + 1
    pdf_pages = sum(size for _, kind, size, _ in sizes if kind == "pdf")
    bad = {(2 * i + 1) * pdf_pages // (2 * len(poison)): act for i, act in enumerate(poison)}
    made, seen, count = [], 0, 0
    for name, kind, size, container in sizes:
        acts = []
        for _ in range(size):
            acts.append("blank" if count % 37 == 36 else "ink")
            if kind == "pdf":
                acts[-1] = bad.get(seen, acts[-1])
                seen += 1
            count += 1
        made.append(Paper(name, kind, tuple(acts), container))
    return [*made, Paper("broken/no pages in it.pdf", "broken", ("corrupt",))]


_SHAPES = (  # name, kind, most pages, container
    ("reports/{} annual.pdf", "pdf", 60, ""),
    ("maps/#{} 100%.tif", "tif", 20, ""),
    ("кириллица/лист {}.png", "png", 1, ""),
    ("box {}/letter.pdf", "pdf", 12, "boxes/crate {}.zip"),
    ("box {}/photo.png", "png", 1, "boxes/crate {}.zip"),
    ("日本/第{}巻.pdf", "pdf", 45, ""),
    ("loose/{}.png", "png", 1, ""),
    ("reports/{} é e\u0301.pdf", "pdf", 7, ""),
)


def write(made: Sequence[Paper], folder: Path) -> None:
    """Put the archive's files below ``folder``."""
    crates: dict[str, dict[str, bytes]] = {}
    files: dict[str, bytes] = {}
    for paper in made:
        (crates.setdefault(paper.container, {}) if paper.container else files)[paper.name] = paper.data()
    for name, data in (files | {name: papers.zip_of(members) for name, members in crates.items()}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def reference(made: Sequence[Paper], work: Path) -> dict[Place, End]:
    """How every page must end."""
    work.mkdir(parents=True, exist_ok=True)
    with Renderer(RenderLimits()) as renderer:
        return dict(end for paper in made for end in _read(paper, work, renderer))


def _read(paper: Paper, work: Path, renderer: Renderer) -> Iterator[tuple[Place, End]]:
    if paper.kind == "broken":
        yield (paper.full_name, 1), End("failed", paper.acts[0], None)
        return
    path = work / f"page.{paper.kind}"
    path.write_bytes(paper.data())
    opened = renderer.open(str(path))
    if isinstance(opened, PageFailure) or opened[1] != len(paper.acts):
        raise AssertionError(f"{paper.full_name} was to hold {len(paper.acts)} pages: {opened}")
    for index, act in enumerate(paper.acts):
        yield (paper.full_name, index + 1), _end(renderer, PageRef(opened[0], index), act)


def _end(renderer: Renderer, ref: PageRef, act: str) -> End:
    status, reason = ENDS[act]
    if act != "ink" and act not in MARKS:
        return End(status, reason, "" if act == "blank" else None)
    image = renderer.render(ref, long_side=LONG_SIDE)
    if isinstance(image, PageFailure) or image.blank:
        raise AssertionError(f"the bare loop cannot read page {ref.index + 1}: {image}")
    return End(status, reason, fake_text(image.png).strip() if act == "ink" else None)


def save(ends: dict[Place, End], path: Path) -> None:
    path.write_text(json.dumps([[name, page, asdict(end)] for (name, page), end in ends.items()]), "utf-8")


def load(path: Path) -> dict[Place, End]:
    return {(name, page): End(**end) for name, page, end in json.loads(path.read_text("utf-8"))}
