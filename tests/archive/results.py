"""A small archive's manifest and ledger made on the spot, without rendering or decoding."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from jocr import storage
from jocr.archive.groups import group_ends, unit_name
from jocr.archive.layout import MANIFEST, ManifestPage, Unit, page_key, place
from jocr.archive.ledger import Commit, Ledger
from jocr.archive.manifest import NAMES, SCHEMA, ManifestInfo, Part, encode
from jocr.archive.names import stored
from jocr.records import ParsedPage

SETTINGS = "5e77"


@dataclass(frozen=True)
class Doc:
    name: str
    pages: int
    member: str = ""
    reason: str | None = None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def manifest_pages(docs: Iterable[Doc]) -> list[ManifestPage]:
    pages = []
    for doc in docs:
        sha = "" if doc.reason else digest(doc.name)
        for index in range(max(1, doc.pages)):
            uri = f"s3://bucket/{doc.name}"
            pages.append(
                ManifestPage(
                    key=page_key(uri, doc.member, sha, index, doc.reason),
                    uri=uri,
                    member=doc.member,
                    name=doc.name,
                    output=f"{doc.name}.md",
                    collection=doc.name.split("/")[0] if "/" in doc.name else "",
                    etag="e1",
                    sha256=sha,
                    size=100,
                    kind="" if doc.reason else "pdf",
                    index=index,
                    pages=0 if doc.reason else doc.pages,
                    reason=doc.reason,
                    detail="",
                    group=0,
                )
            )
    return pages


def save_manifest(out: str, pages: list[ManifestPage], *, unit: int = 8, part_groups: int = 3) -> ManifestInfo:
    """Parts of ``part_groups`` groups each, so that documents lie across units and parts."""
    ends = group_ends(np.array([page.key for page in pages], np.int64), unit).tolist()
    identity = digest(" ".join(str(page.key) for page in pages))[:24]
    parts, start = [], 0
    for number, first in enumerate(range(0, len(ends), part_groups)):
        rows = []
        for group in range(first, min(first + part_groups, len(ends))):
            rows += [replace(page, group=group) for page in pages[start : ends[group]]]
            start = ends[group]
        part = Part(f"part-{number:05d}.parquet", len(rows), min(part_groups, len(ends) - first))
        table = pa.Table.from_pylist([_row(page) for page in rows], schema=SCHEMA)
        storage.atomic_write(place(out, MANIFEST, identity, part.file), encode(table))
        parts.append(part)
    return ManifestInfo(
        id=identity, parts=tuple(parts), pages=len(pages), documents=len({p.output for p in pages}), failed=0,
        groups=len(ends), skipped=0, kinds={"pdf": len(pages)}, reasons={}, skipped_reasons={}, sources=("s3://bucket",),
        selection=None, unit=unit, created="2026-01-01T00:00:00+00:00", out=out,
    )  # fmt: skip


def _row(page: ManifestPage) -> dict:
    row = {name: getattr(page, name) for name in SCHEMA.names}
    return {name: stored(value) if name in NAMES else value for name, value in row.items()}


def units(info: ManifestInfo, pages: list[ManifestPage]) -> list[tuple[Unit, list[ManifestPage]]]:
    ends = group_ends(np.array([page.key for page in pages], np.int64), info.unit).tolist()
    found = []
    for start, stop in zip([0, *ends], ends, strict=False):
        mine = pages[start:stop]
        name = unit_name(np.array([page.key for page in mine], np.int64))
        found.append((Unit(name, "", start, stop), mine))
    return found


def row_of(page: ManifestPage, text: str = "", status: str = "ok", reason: str | None = None, **more) -> ParsedPage:
    decoded = status not in ("blank",) and not page.reason
    values = {
        "page_id": f"{page.sha256}:{page.index}", "uri": page.uri, "sha256": page.sha256, "page": page.index + 1,
        "status": status, "reason": reason, "detail": "", "markdown": text, "tokens": 10 + page.index,
        "prompt_tokens": 5, "stop": "end" if decoded else None, "seconds": 1.5, "render_seconds": 0.5,
        "decode_seconds": 1.0, "tau": None, "acceptance": None, "width": 10, "height": 20, "rotation": 0, "dpi": 72.0,
        "blank_evidence": "", "notes": "", "renderer": "r", "model": "m", "revision": "v", "prompt_hash": "p",
        "engine": "e", "attempts": 1, "member": page.member, "etag": page.etag, "collection": page.collection,
        "key": page.key,
    }  # fmt: skip
    return ParsedPage(**values | more)


def commit_all(out: str, info: ManifestInfo, pages: list[ManifestPage], rows: dict[int, ParsedPage]) -> Ledger:
    """Commit every unit all of whose pages have rows."""
    ledger = Ledger(out, SETTINGS)
    for unit, mine in units(info, pages):
        if all(page.key in rows for page in mine):
            done: Commit | None = ledger.commit(
                unit, [rows[p.key] for p in mine], [p.key for p in mine], busy_seconds=2.0
            )
            assert done is not None or ledger.has(unit)
    return ledger
