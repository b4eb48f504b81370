"""``report.html`` of a parse run: counts and speeds, then pages side by side with what was read."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from jocr.documents import explain
from jocr.records import REASONS, STATUSES, ParsedPage
from jocr.report.render import to_html

STYLE = Path(__file__).resolve().parents[1] / "data" / "report.css"
CSP = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
ImageOf = Callable[[ParsedPage], bytes | None]
LISTED = 200  # documents listed by name; the rest is in run.json


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


def report(run: Mapping[str, Any], pages: Iterable[ParsedPage], image: ImageOf) -> str:
    """The whole file.

    Args:
        run: what ``run.json`` will hold.
        pages: the gallery's rows, in order.
        image: JPEG bytes of a page, or None where it cannot be shown.
    """
    return "".join(_parts(run, pages, image))


def _parts(run: Mapping[str, Any], pages: Iterable[ParsedPage], image: ImageOf) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{CSP}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1"><title>jocr report</title>'
    yield f"<style>{STYLE.read_text(encoding='utf-8')}{_filter_rules()}</style></head>"
    yield "<body><header><h1>jocr report</h1>"
    yield _about(run) + _tiles(run) + _reasons(run) + _documents(run) + _skipped(run)
    yield "</header><main>" + _filters(run)
    shown = 0
    for row in pages:
        shown += 1
        yield _page(row, image(row))
    total = sum(run["counts"].values())
    yield f'<p class="none">{shown} of {total} pages shown; every page is a row of pages.parquet.</p>'
    yield "</main></body></html>\n"


def _about(run: Mapping[str, Any]) -> str:
    hardware = run.get("hardware", {})
    parts = (hardware.get("cuda"), hardware.get("cpu"), f"{hardware.get('cores')} cores")
    where = ", ".join(str(part) for part in parts if part)
    model = f"model {run.get('model', '')} ({run.get('revision', '')})"
    lines = [
        f"{run.get('created', '')} · {model} · {run.get('engine', '')}",
        f"{where} · jocr {run.get('jocr', '')} · commit {run.get('commit') or 'unknown'}",
    ]
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _tiles(run: Mapping[str, Any]) -> str:
    speed = run["speed"]
    tiles: list[tuple[str, object, str]] = [(status, run["counts"][status], status) for status in STATUSES]
    tiles += [
        ("pages per second", f"{speed['pages_per_second']:.2f}", ""),
        ("tokens per second", f"{speed['tokens_per_second']:.0f}", ""),
        ("seconds in all", f"{speed['seconds']:.1f}", ""),
    ]
    if speed.get("tau") is not None:
        tiles.append(("tokens per verify round", f"{speed['tau']:.2f}", ""))
    return '<div class="tiles">' + "".join(_tile(*tile) for tile in tiles) + "</div>"


def _tile(label: str, value: object, kind: str) -> str:
    return f'<div class="tile {kind if value else ""}"><b>{value}</b><span>{escape(label)}</span></div>'


def _reasons(run: Mapping[str, Any]) -> str:
    rows = sorted(run["reasons"].items(), key=lambda item: -item[1])
    cells = [(n, code, REASONS.get(code, "")) for code, n in rows]
    return _table("Why pages are not ok", ("pages", "reason", ""), cells)


def _documents(run: Mapping[str, Any]) -> str:
    rows = []
    for document in run["documents"][:LISTED]:
        statuses = ", ".join(f"{n} {status}" for status, n in document["pages"].items()) or "no page selected"
        rows.append((sum(document["pages"].values()), document["name"], statuses))
    more = len(run["documents"]) - len(rows)
    title = f"Documents ({len(run['documents'])})" + (f", the first {len(rows)}" if more > 0 else "")
    return _table(title, ("pages", "document", "statuses"), rows)


def _skipped(run: Mapping[str, Any]) -> str:
    rows = [("", item["uri"], f"{item['reason']}: {item['detail']}") for item in run["skipped"][:LISTED]]
    return _table(f"Skipped files ({len(run['skipped'])})", ("", "file", "why"), rows)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return ""
    cells = "".join(_row(row) for row in rows)
    heads = "".join(f"<th>{h}</th>" for h in head)
    return f'<details><summary>{escape(title)}</summary><table class="facts"><tr>{heads}</tr>{cells}</table></details>'


def _row(row: Sequence[object]) -> str:
    first, *rest = (escape(str(cell)) for cell in row)
    return f'<tr><td class="n">{first}</td>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"


def _filters(run: Mapping[str, Any]) -> str:
    present = [status for status in STATUSES if run["counts"][status]]
    if len(present) < 2:
        return ""
    box = '<label class="filter"><input type="checkbox" class="show-{0}" checked> {0}</label>'
    boxes = "".join(box.format(status) for status in present)
    return f'<div class="filters">Show: {boxes}</div>'


def _filter_rules() -> str:
    return "".join(
        f"main:has(input.show-{status}:not(:checked)) .page.{status} {{ display:none }}\n" for status in STATUSES
    )


def _page(row: ParsedPage, jpeg: bytes | None) -> str:
    facts = [f"page {row.page}", f"{row.tokens} tokens", f"{row.seconds:.2f} s"]
    if row.width and row.height:
        facts.insert(1, f"{row.width}×{row.height} px")
    if row.acceptance is not None:
        facts.append(f"acceptance {row.acceptance:.2f}")
    bar = "".join(f"<span>{fact}</span>" for fact in facts)
    name = escape(row.uri.rsplit("/", 1)[-1])
    return (
        f'<section class="page {row.status}"><div class="bar"><span class="badge">{row.status}</span>'
        f'<b title="{escape(row.uri, quote=True)}">{name}</b>{bar}</div>'
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
    return to_html(row.markdown) if row.markdown else '<p class="none">no text</p>'
