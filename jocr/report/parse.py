"""``report.html`` of a parse run: counts and speeds, then pages side by side with what was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jocr.records import ParsedPage
from jocr.report.frame import LISTED, Tile, about, frame, reasons, status_tiles, table, tiles
from jocr.report.gallery import ImageOf, choose, gallery

__all__ = ["choose", "report"]


def report(run: Mapping[str, Any], pages: Iterable[ParsedPage], image: ImageOf) -> str:
    """The whole file.

    Args:
        run: what ``run.json`` will hold.
        pages: the gallery's rows, in order.
        image: JPEG bytes of a page, or None where it cannot be shown.
    """
    shown = gallery(run, pages, image, table="every page is a row of pages.parquet.")
    return "".join(frame("jocr report", _header(run), shown))


def _header(run: Mapping[str, Any]) -> Iterator[str]:
    yield about(run)
    yield tiles([*status_tiles(run), *_speeds(run["speed"])])
    yield reasons(run)
    yield _documents(run)
    yield _skipped(run)


def _speeds(speed: Mapping[str, Any]) -> Iterator[Tile]:
    yield "pages per second", f"{speed['pages_per_second']:.2f}", ""
    yield "tokens per second", f"{speed['tokens_per_second']:.0f}", ""
    yield "seconds in all", f"{speed['seconds']:.1f}", ""
    if speed.get("tau") is not None:
        yield "tokens per verify round", f"{speed['tau']:.2f}", ""


def _documents(run: Mapping[str, Any]) -> str:
    rows = []
    for document in run["documents"][:LISTED]:
        statuses = ", ".join(f"{n} {status}" for status, n in document["pages"].items()) or "no page selected"
        rows.append((sum(document["pages"].values()), document["name"], statuses))
    more = len(run["documents"]) - len(rows)
    title = f"Documents ({len(run['documents'])})" + (f", the first {len(rows)}" if more > 0 else "")
    return table(title, ("pages", "document", "statuses"), rows)


def _skipped(run: Mapping[str, Any]) -> str:
    rows = [("", item["uri"], f"{item['reason']}: {item['detail']}") for item in run["skipped"][:LISTED]]
    return table(f"Skipped files ({len(run['skipped'])})", ("", "file", "why"), rows)
