"""Whether a result is what it must be, read from its files alone: nothing of the job's own bookkeeping code is used.

The rules: each page of the manifest has exactly one row in the data files that the highest markers name, no row is
anything else's, every row ends as it must, every document's Markdown is whole.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from jobs.archive_bench.corpus import End, Place
from jocr import storage

SHOWN = 5  # examples of each kind of problem
_MARKER = re.compile(r"/commits/(?P<settings>[^/]+)/(?P<unit>[^/]+)\.(?P<generation>\d+)\.json$")
_DATA = re.compile(r"/pages/(?P<settings>[^/]+)/(?P<name>[^/]+\.parquet)$")
_SECTION = re.compile(r"^<!-- page (\d+)(?:: (\w+): .*)? -->$", re.MULTILINE)
ROW = ["key", "page", "status", "reason", "markdown", "attempts", "uri", "member", "sha256"]


@dataclass
class Verdict:
    """``problems`` is empty where the result holds."""

    problems: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    rows: dict[Place, dict[str, Any]] = field(default_factory=dict)
    units: int = 0

    def note(self, what: str, found: list[Any]) -> None:
        if found:
            self.problems.append(f"{len(found)} {what}: {', '.join(map(str, found[:SHOWN]))}")


def verify(out: str, ends: Mapping[Place, End]) -> Verdict:
    """Hold the result at ``out`` against how every page must end."""
    verdict = Verdict()
    files = sorted(storage.list_files(out if not storage.is_s3(out) else out.rstrip("/") + "/"))
    pages = _manifest(files, verdict)
    rows = _rows(files, verdict)
    _one_row_each(pages, rows, verdict)
    _ends(ends, verdict)
    _documents(out, pages, verdict)
    return verdict


def _manifest(files: list[str], verdict: Verdict) -> dict[int, dict[str, Any]]:
    """key -> manifest row, of the manifest made last."""
    heads = [(json.loads(storage.read_bytes(uri)), uri) for uri in files if re.search(r"/manifest/[^/]+\.json$", uri)]
    if not heads:
        verdict.problems.append("there is no manifest")
        return {}
    head, uri = max(heads, key=lambda item: item[0]["created"])
    found: dict[int, dict[str, Any]] = {}
    for part in head["parts"]:
        for row in _table(f"{uri.removesuffix('.json')}/{part['file']}"):
            if row["key"] in found:
                verdict.problems.append(f"key {row['key']} is twice in the manifest")
            found[row["key"]] = row
    if len(found) != head["pages"]:
        verdict.problems.append(f"the manifest says {head['pages']} pages and holds {len(found)}")
    return found


def _rows(files: list[str], verdict: Verdict) -> list[dict[str, Any]]:
    """Rows of the data files that the highest marker of each unit names."""
    highest: dict[tuple[str, str], tuple[int, str]] = {}
    for uri in files:
        if marker := _MARKER.search(uri):
            unit = marker["settings"], marker["unit"]
            highest[unit] = max(highest.get(unit, (-1, "")), (int(marker["generation"]), uri))
    data = {found["name"]: uri for uri in files if (found := _DATA.search(uri))}
    rows: list[dict[str, Any]] = []
    named = set()
    for _, uri in sorted(highest.values()):
        name = json.loads(storage.read_bytes(uri))["data"]
        named.add(name)
        if name not in data:
            verdict.problems.append(f"the marker {uri} names {name}, which is not there")
        else:
            rows += _table(data[name], ROW)
    verdict.units = len(highest)
    verdict.note("data files that no marker names", sorted(set(data) - named))
    return rows


def _one_row_each(pages: Mapping[int, dict[str, Any]], rows: list[dict[str, Any]], verdict: Verdict) -> None:
    times = Counter(row["key"] for row in rows)
    verdict.note("pages lost", [_called(pages[key]) for key in pages if not times[key]])
    verdict.note("pages twice", [_called(pages[key]) for key in pages if times[key] > 1])
    verdict.note("rows of no page", [key for key in times if key not in pages])
    wrong = []
    for row in rows:
        page = pages.get(row["key"])
        if page is None:
            continue
        verdict.rows[page["name"], row["page"]] = row
        same = ("uri", "member", "sha256")
        if row["page"] != page["index"] + 1 or any(row[name] != page[name] for name in same):
            wrong.append(_called(page))
    verdict.note("rows that say another page than the manifest", wrong)
    verdict.counts = dict(Counter(row["status"] for row in rows))
    verdict.reasons = dict(Counter(row["reason"] for row in rows if row["reason"]))


def _ends(ends: Mapping[Place, End], verdict: Verdict) -> None:
    rows = verdict.rows
    verdict.note("pages that the manifest does not know", [place for place in ends if place not in rows])
    verdict.note("pages that the archive does not hold", [place for place in rows if place not in ends])
    status, text = [], []
    for place, end in ends.items():
        row = rows.get(place)
        if row is None:
            continue
        if (row["status"], row["reason"] or "") != (end.status, end.reason):
            status.append(f"{place}: {row['status']} {row['reason']}, not {end.status} {end.reason}")
        elif end.markdown is not None and row["markdown"] != end.markdown:
            text.append(place)
    verdict.note("pages with another end than they must have", status)
    verdict.note("pages with another text than the bare loop's", text)


def _documents(out: str, pages: Mapping[int, dict[str, Any]], verdict: Verdict) -> None:
    """Every document's Markdown holds every page, in order, with the text of its row."""
    documents: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for page in pages.values():
        documents[page["output"]].append(page)
    missing, broken = [], []
    for output, own in documents.items():
        try:
            text = storage.read_bytes(storage.join(storage.join(out, "documents"), output)).decode("utf-8")
        except FileNotFoundError:
            missing.append(output)
            continue
        own.sort(key=lambda page: page["index"])
        rows = [verdict.rows.get((page["name"], page["index"] + 1)) for page in own]
        if None in rows or not _whole(text, [row for row in rows if row is not None]):
            broken.append(output)
    verdict.note("documents without Markdown", missing)
    verdict.note("documents whose Markdown is not their pages'", broken)


def _whole(text: str, rows: list[dict[str, Any]]) -> bool:
    if len(rows) == 1 and rows[0]["status"] == "ok":
        return text.strip() == rows[0]["markdown"]
    heads = list(_SECTION.finditer(text))
    if [(int(head[1]), head[2] or "ok") for head in heads] != [(row["page"], row["status"]) for row in rows]:
        return False
    bounds = [*(head.start() for head in heads[1:]), len(text)]
    bodies = [text[head.end() : stop].strip() for head, stop in zip(heads, bounds, strict=True)]
    return all(row["status"] == "failed" or body == row["markdown"] for body, row in zip(bodies, rows, strict=True))


def _table(uri: str, columns: list[str] | None = None) -> list[dict[str, Any]]:
    return pq.read_table(io.BytesIO(storage.read_bytes(uri)), columns=columns).to_pylist()


def _called(page: Mapping[str, Any]) -> str:
    return f"{page['name']} page {page['index'] + 1}"
