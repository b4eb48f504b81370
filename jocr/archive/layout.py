"""Where everything of an archive's result lies, and the two records that name pages and work.

::

    OUT/manifest/<id>/part-00000.parquet     one row per page (``ManifestPage``); a part holds whole groups
    OUT/manifest/<id>.json                   written last: the manifest is whole; counts and skipped files
    OUT/pages/<settings>/<unit>.<generation>-<content>.parquet    rows of a unit (``ParsedPage``)
    OUT/retired/<settings>/...               rows of units that are committed and not in the manifest (any more)
    OUT/commits/<settings>/<unit>.<generation>.json               the marker that makes them count
    OUT/attempts/<settings>/<unit>/...       which pages were in flight when an attempt began
    OUT/runs/<settings>/<run>.json           for how long each run has held decoders
    OUT/documents/<output>.md, OUT/documents.parquet, OUT/jsonl/..., OUT/failures.parquet, OUT/run.json, OUT/report.html

``<settings>`` is a hash of all that changes what a page reads as: model, revision, prompt, sampling, rendering, ladder.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from jocr import storage

MANIFEST, PAGES, COMMITS, ATTEMPTS, DOCUMENTS, JSONL = "manifest", "pages", "commits", "attempts", "documents", "jsonl"
RETIRED = "retired"  # rows of units that the manifest no longer names; they count again when it does
RUNS = "runs"
PARTS = "parts"  # receipts of the outputs' shards, and the pieces of the merged tables
PAGE_MAP, FAILURES, RUN, REPORT = "documents.parquet", "failures.parquet", "run.json", "report.html"


@dataclass(frozen=True, slots=True)
class ManifestPage:
    """One page to account for. A document that does not open is one row, for its page 1, with its reason."""

    key: int  # signed 64 bits, unique in the manifest: ``page_key``
    uri: str  # of the file, or of the container it lies in
    member: str  # full path inside the container; empty for a plain file
    name: str  # path below the root of what was given, members under their container: unique, basis of output names
    output: str  # relative path of the document's Markdown
    collection: str  # first folder of ``name``; empty at the top
    etag: str  # version as the storage names it
    sha256: str  # of the document's bytes; empty where they could not be read
    size: int  # bytes
    kind: str  # pdf, tiff, jpeg ...; empty where unknown
    index: int  # of the page, from 0
    pages: int  # of the document; 0 where it does not open
    reason: str | None  # a code of REASONS where the document does not open
    detail: str
    group: int  # number of the unit-sized group it belongs to, ascending through the manifest


@dataclass(frozen=True, slots=True)
class Unit:
    """Pages that are rendered, decoded and committed together: a slice of one manifest part.

    ``name`` comes from the keys of its pages alone, so the same pages make the same unit in every run.
    """

    name: str  # 24 hex digits
    part: str  # URI of the manifest part
    start: int  # first row of the part
    stop: int  # row after the last
    generation: int = 0  # 0 for the first commit; a redrive or a carried unit adds one

    @property
    def pages(self) -> int:
        return self.stop - self.start


def page_key(uri: str, member: str, version: str, index: int, reason: str | None) -> int:
    """Identity of a page: where its document lies, what its bytes are (sha256, or etag where unread), which page."""
    text = "\0".join((uri, member, version, str(index), reason or ""))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big", signed=True)


def place(out: str, *parts: str) -> str:
    """URI of something below the result ``out``."""
    for part in parts:
        out = storage.join(out, part)
    return out
