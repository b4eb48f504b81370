"""Pages side by side with what was read of them: which ones, and how each is shown."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from jocr.documents import explain
from jocr.records import STATUSES, ParsedPage
from jocr.report.render import to_html

ImageOf = Callable[[ParsedPage], bytes | None]
LONGEST = 30_000  # characters of a page that are shown


def choose(statuses: Sequence[str], limit: int) -> list[int]:
    """Which pages the gallery shows: all if they fit, else an even share for each status present, evenly spread."""
    if len(statuses) <= limit:
        return list(range(len(statuses)))
    places: dict[str, list[int]] = defaultdict(list)
    for place, status in enumerate(statuses):
        places[status].append(place)
    chosen: list[int] = []
    for left, group in enumerate(sorted(places.values(), key=len)):
        share = (limit - len(chosen)) // (len(places) - left)
        chosen += [group[k * len(group) // share] for k in range(share)] if share < len(group) else group
    return sorted(chosen)


def gallery(
    run: Mapping[str, Any], pages: Iterable[ParsedPage], image: ImageOf, *, table: str, limit: int | None = None
) -> Iterator[str]:
    """The pages, with filters by status before and how many are shown behind.

    Args:
        run: ``counts`` by status.
        pages: the rows to show, in order.
        image: JPEG bytes of a page, or None where it cannot be shown.
        table: where all rows are, in words.
        limit: bytes of HTML after which no more pages are shown.
    """
    yield filters(run)
    shown = size = 0
    for row in pages:
        section = _page(row, image(row))
        size += len(section)
        if limit is not None and size > limit:
            break
        shown += 1
        yield section
    yield f'<p class="none">{shown:,} of {sum(run["counts"].values()):,} pages shown; {escape(table)}</p>'


def filters(run: Mapping[str, Any]) -> str:
    """Boxes that hide the pages of a status."""
    present = [status for status in STATUSES if run["counts"][status]]
    if len(present) < 2:
        return ""
    box = '<label class="filter"><input type="checkbox" class="show-{0}" checked> {0}</label>'
    boxes = "".join(box.format(status) for status in present)
    return f'<div class="filters">Show: {boxes}</div>'


def _page(row: ParsedPage, jpeg: bytes | None) -> str:
    facts = [f"page {row.page}", f"{row.tokens} tokens", f"{row.seconds:.2f} s"]
    if row.width and row.height:
        facts.insert(1, f"{row.width}×{row.height} px")
    if row.collection:
        facts.append(escape(row.collection))
    if row.attempts > 1:
        facts.append(f"{row.attempts} attempts")
    if row.acceptance is not None:
        facts.append(f"acceptance {row.acceptance:.2f}")
    bar = "".join(f"<span>{fact}</span>" for fact in facts)
    name = escape("/".join(part.rsplit("/", 1)[-1] for part in (row.uri, row.member) if part))
    place = escape(" / ".join(part for part in (row.uri, row.member) if part), quote=True)
    return (
        f'<section class="page {row.status}"><div class="bar"><span class="badge">{row.status}</span>'
        f'<b title="{place}">{name}</b>{bar}</div>'
        f'<div class="pair"><div class="scan">{_image(jpeg)}</div>'
        f'<div class="text">{_why(row)}{_text(row)}</div></div></section>'
    )


def _image(jpeg: bytes | None) -> str:
    if jpeg is None:
        return '<p class="none">no image of this page</p>'
    return f'<img alt="page image" src="data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}">'


def _why(row: ParsedPage) -> str:
    if row.status == "ok":
        return ""
    detail = f" ({row.detail})" if row.detail else ""
    return f'<p class="why">{escape(explain(row) + detail)}</p>'


def _text(row: ParsedPage) -> str:
    if not row.markdown:
        return '<p class="none">no text</p>'
    cut = (
        f'<p class="none">and {len(row.markdown) - LONGEST:,} characters more</p>'
        if len(row.markdown) > LONGEST
        else ""
    )
    return to_html(row.markdown[:LONGEST]) + cut
