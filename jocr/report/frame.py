"""What every report is made of: one self-contained HTML file, tiles, folded tables. No script, no outside resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from jocr.records import REASONS, STATUSES

STYLE = Path(__file__).resolve().parents[1] / "data" / "report.css"
CSP = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
LISTED = 200  # rows of a table of names; the rest is in run.json

Tile = tuple[str, object, str]  # label, value, kind (a status, or empty)


def frame(title: str, header: Iterable[str], main: Iterable[str]) -> Iterator[str]:
    """The file, in pieces."""
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{CSP}">'
    yield f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
    yield f"<style>{STYLE.read_text(encoding='utf-8')}{_filter_rules()}</style></head>"
    yield f"<body><header><h1>{escape(title)}</h1>"
    yield from header
    yield "</header><main>"
    yield from main
    yield "</main></body></html>\n"


def about(run: Mapping[str, Any]) -> str:
    """Which model, engine, hardware and source made the result."""
    hardware = run.get("hardware", {})
    parts = (hardware.get("cuda"), hardware.get("cpu"), f"{hardware.get('cores')} cores")
    where = ", ".join(str(part) for part in parts if part)
    model = f"model {run.get('model', '')} ({run.get('revision', '')})"
    lines = [
        f"{run.get('created', '')} · {model} · {run.get('engine', '')}",
        f"{where} · jocr {run.get('jocr', '')} · commit {run.get('commit') or 'unknown'}",
    ]
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def tiles(items: Iterable[Tile]) -> str:
    """Figures in a row."""
    return '<div class="tiles">' + "".join(_tile(*item) for item in items) + "</div>"


def status_tiles(run: Mapping[str, Any]) -> list[Tile]:
    """Pages by status."""
    return [(status, f"{run['counts'][status]:,}" if run["counts"][status] else 0, status) for status in STATUSES]


def _tile(label: str, value: object, kind: str) -> str:
    return f'<div class="tile {kind if value else ""}"><b>{value}</b><span>{escape(label)}</span></div>'


def reasons(run: Mapping[str, Any]) -> str:
    """Reason codes, the most frequent first."""
    rows = sorted(run["reasons"].items(), key=lambda item: -item[1])
    cells = [(f"{n:,}", code, REASONS.get(code, "")) for code, n in rows]
    return table("Why pages are not ok", ("pages", "reason", ""), cells)


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]], *, opened: bool = False) -> str:
    """A table that folds away; nothing where it has no rows. The first column is numbers."""
    if not rows:
        return ""
    cells = "".join(_row(row) for row in rows)
    heads = "".join(f"<th>{h}</th>" for h in head)
    fold = "<details open>" if opened else "<details>"
    return f'{fold}<summary>{escape(title)}</summary><table class="facts"><tr>{heads}</tr>{cells}</table></details>'


def _row(row: Sequence[object]) -> str:
    first, *rest = (escape(str(cell)) for cell in row)
    return f'<tr><td class="n">{first}</td>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"


def _filter_rules() -> str:
    return "".join(
        f"main:has(input.show-{status}:not(:checked)) .page.{status} {{ display:none }}\n" for status in STATUSES
    )
