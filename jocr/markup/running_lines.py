"""Headers, footers and page numbers of a document: the lines at the edge of its pages that come back from page to page.

Precision before recall: what stays in doubt is body. Headings, tables, lists, code and formulas are never taken, nor
is anything in a document of one page. Two pages have rules of their own (``running_pairs``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from jocr.markup.running_pairs import running_pairs
from jocr.markup.running_rules import (
    Line,
    bare_number,
    counted,
    follows_pages,
    is_bare,
    is_template,
    looks_running,
    make_line,
)

DEPTH = 3  # lines looked at from each edge
GAP = 4  # pages between two occurrences: every other page, with one missed
FEWEST = 3  # occurrences
DENSITY = 0.75  # share of every other page between the first and the last occurrence that must have the line
YEARS = range(1500, 2101)  # a number of these that counts is a year ...
FEWEST_YEARS = 20  # ... unless so many pages count so
CONFUSED = str.maketrans("lIoOSB", "110058")  # letters that are read for digits

Place = tuple[int, bool, int]  # page, bottom, depth


@dataclass(frozen=True, slots=True)
class Edges:
    """Of one page: ``text[:header_end]`` is header, ``text[footer_start:]`` is footer, with the blank lines between
    them and the body."""

    header_end: int
    footer_start: int

    def body(self, text: str) -> str:
        """The page's text without its running lines."""
        return text[self.header_end : self.footer_start].strip() if self.cuts(text) else text

    def cuts(self, text: str) -> bool:
        """Whether there is a running line."""
        return self.header_end > 0 or self.footer_start < len(text)


@dataclass(slots=True)
class _Chain:
    """Lines of one wording, in page order, each at most ``GAP`` pages after the one before."""

    lines: list[Line] = field(default_factory=list)


def find_running_lines(pages: Sequence[str]) -> list[Edges]:
    """The running lines of a document.

    Args:
        pages: Markdown of its pages in order; a page without text is an empty string and keeps its place.
    """
    nothing = [Edges(0, len(text)) for text in pages]
    if len(pages) < 2:
        return nothing
    lines = [line for number, text in enumerate(pages) for line in _edge_lines(number, text)]
    strong, weak = _of_two(lines, pages) if len(pages) == 2 else _of_many(lines, pages)
    by_page: dict[int, list[Line]] = {}
    for line in lines:
        if _place(line) in strong or _place(line) in weak:
            by_page.setdefault(line.page, []).append(line)
    return [_edges(text, by_page.get(n, []), strong) if n in by_page else nothing[n] for n, text in enumerate(pages)]


def _of_two(lines: Sequence[Line], pages: Sequence[str]) -> tuple[set[Place], set[Place]]:
    found: tuple[set[Place], set[Place]] = set(), set()
    for pair, counts in running_pairs(lines, pages):
        found[0 if counts else 1].update(map(_place, pair))
    return found


def _of_many(lines: Sequence[Line], pages: Sequence[str]) -> tuple[set[Place], set[Place]]:
    """Places of running lines: those that count pages, and the others."""
    strong, weak = _numbers(lines), set[Place]()
    for bottom in (False, True):
        for chain in _chains(line for line in lines if line.bottom == bottom and _place(line) not in strong):
            verdict = _judge(chain, pages)
            if verdict is not None:
                (strong if verdict else weak).update(map(_place, chain))
    return strong, weak


def _place(line: Line) -> Place:
    return line.page, line.bottom, line.depth


def _edge_lines(page: int, text: str) -> Iterator[Line]:
    """The first and the last lines of a page, outermost first, up to what is no plain line."""
    spans, at = [], 0
    for raw in text.split("\n"):
        if raw.strip():
            spans.append((at, at + len(raw)))
        at += len(raw) + 1
    for bottom in (False, True):
        for depth, (start, end) in enumerate((spans[::-1] if bottom else spans)[:DEPTH]):
            inner = text[:start] if bottom else text[end:]
            loose = not inner.strip() or (inner.endswith("\n\n") if bottom else inner.startswith("\n\n"))
            line = make_line(text[start:end], page=page, bottom=bottom, depth=depth, start=start, loose=loose)
            if line is None or _underlined(text, end):
                break
            yield line


def _underlined(text: str, end: int) -> bool:
    """Whether the next line makes this one a heading."""
    below = text[end + 1 : end + 200].partition("\n")[0].strip()
    return len(below) > 1 and not below.strip("=-")


def _numbers(lines: Sequence[Line]) -> set[Place]:
    """Lone page numbers: those of one edge that keep their distance to the page's index over three pages or more."""
    taken: set[Place] = set()
    for bottom in (True, False):
        found = [line for line in lines if line.bottom == bottom and not _beside_number(line, lines)]
        series: dict[int, list[Line]] = {}
        for line in found:
            value = bare_number(line.text)
            if value is not None:
                series.setdefault(value - line.page, []).append(line)
        good: set[Place] = set()
        for apart, members in series.items():
            for run in _runs(members):
                values = [line.page + apart for line in run]
                if len(values) >= (FEWEST_YEARS if values[0] in YEARS else FEWEST):
                    good |= {_place(line) for line in run}
                    good |= {_place(line) for line in found if _misread(line, apart, run)}
        if good:
            return taken | good  # page numbers stand at one edge; a second series counts something else
    return taken


def _beside_number(line: Line, lines: Sequence[Line]) -> bool:
    """Whether a number stands in a column of numbers."""
    return False if line.loose else any(o for o in lines if _next_inside(line, o) and is_bare(o.text))


def _next_inside(line: Line, other: Line) -> bool:
    return (other.page, other.bottom, other.depth) == (line.page, line.bottom, line.depth + 1)


def _misread(line: Line, apart: int, run: Sequence[Line]) -> bool:
    """A number between those of ``run`` in which letters were read for digits."""
    if not run[0].page <= line.page <= run[-1].page or len(line.text) > 5 or is_bare(line.text):
        return False
    return any(c.isdigit() for c in line.text) and bare_number(line.text.translate(CONFUSED)) == line.page + apart


def _chains(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines of one edge, gathered by wording; letters may differ a little, as noise makes them."""
    alive: list[_Chain] = []
    for line in lines:
        gone = [chain for chain in alive if line.page - chain.lines[-1].page > GAP]
        alive = [chain for chain in alive if line.page - chain.lines[-1].page <= GAP]
        yield from (chain.lines for chain in gone)
        fitting = [c for c in alive if c.lines[-1].page < line.page and _same(c.lines[-1], line)]
        if fitting:
            min(fitting, key=lambda c: c.lines[-1].key != line.key).lines.append(line)
        else:
            alive.append(_Chain([line]))
    yield from (chain.lines for chain in alive)


def _same(a: Line, b: Line) -> bool:
    if a.key == b.key or len(a.numbers) != len(b.numbers):
        return a.key == b.key
    allowed = min(len(a.key), len(b.key)) // 10
    if not allowed or abs(len(a.key) - len(b.key)) > allowed:
        return False
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.distance(a.key, b.key, score_cutoff=min(allowed, 3)) <= min(allowed, 3)


def _runs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Stretches of lines with no gap beyond ``GAP`` pages, one a page."""
    run: list[Line] = []
    for line in lines:
        if run and line.page == run[-1].page:
            continue
        if run and line.page - run[-1].page > GAP:
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _judge(chain: Sequence[Line], pages: Sequence[str]) -> bool | None:
    """None for body; else whether the line counts pages, which is proof enough to cut it off a paragraph."""
    if len(chain) < FEWEST or is_bare(chain[0].text):
        return None
    counts = counted(chain)
    if counts and _moving(chain, chain[0]) in YEARS and len(chain) < FEWEST_YEARS:
        return None
    span = chain[-1].page - chain[0].page
    if counts is None or len(chain) < DENSITY * (span // 2 + 1):
        return None
    if not looks_running(chain[0], counts=counts, times=len(chain)):
        return None
    bodies = [pages[line.page] for line in chain]
    if not counts and (_inside(chain, bodies) or is_template(_without(chain, bodies))):
        return None
    return counts and follows_pages([_moving(chain, line) for line in chain], [line.page for line in chain])


def _moving(chain: Sequence[Line], line: Line) -> int:
    column = next(i for i, values in enumerate(zip(*(o.numbers for o in chain), strict=True)) if len(set(values)) > 1)
    return line.numbers[column]


def _inside(chain: Sequence[Line], bodies: Sequence[str]) -> bool:
    """Whether the wording also stands as a line inside the pages, as a refrain or a speaker's name does."""
    wordings = {line.text.casefold() for line in chain}
    times = 0
    for line, text in zip(chain, bodies, strict=True):
        rest = (text[: line.start] if line.bottom else text[line.end :]).strip().split("\n")
        rest = rest[1:] if line.bottom else rest[:-1]  # a mark may stand at both edges
        times += sum(raw.strip(" \t*_").casefold() in wordings for raw in rest)
    return times > max(1, len(chain) // 5)


def _without(chain: Sequence[Line], bodies: Sequence[str]) -> list[str]:
    return [text[: line.start] + text[line.end :] for line, text in zip(chain, bodies, strict=True)]


def _edges(text: str, found: Sequence[Line], strong: set[Place]) -> Edges:
    """The longest run of running lines from each edge that ends at a blank line or in one that counts pages."""
    header_end, footer_start = 0, len(text)
    for bottom in (False, True):
        flagged = {line.depth: line for line in found if line.bottom == bottom}
        for depth in range(DEPTH):
            line = flagged.get(depth)
            if line is None:
                break
            if line.loose or _place(line) in strong:
                footer_start, header_end = (line.start, header_end) if bottom else (footer_start, line.end)
    if header_end:
        header_end += len(text[header_end:]) - len(text[header_end:].lstrip())
    return Edges(header_end, footer_start) if text[header_end:footer_start].strip() else Edges(0, len(text))
