"""The content of an archive's ``run.json``: what was asked, where it came from, what it came to."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.parquet as pq

from jocr import provenance, storage
from jocr.archive.cost import Meter
from jocr.archive.figures import cost, counts, sessions, speed
from jocr.archive.layout import COMMITS, DOCUMENTS, FAILURES, JSONL, MANIFEST, PAGE_MAP, PAGES, REPORT
from jocr.archive.ledger import Commit
from jocr.archive.manifest import ManifestInfo
from jocr.archive.outputs import BIN, Written
from jocr.config import ParseRecipe
from jocr.records import ParsedPage

FORM = 1
BARS = 64  # of the histogram of tokens
SKIPPED = 50  # files named in the report


def describe(
    recipe: ParseRecipe,
    info: ManifestInfo,
    settings: str,
    current: Sequence[Commit],
    history: Sequence[Commit],
    written: Written,
    *,
    decoder_seconds: float | None = None,
    example: ParsedPage | None = None,
) -> dict[str, Any]:
    """A JSON-ready dict.

    Args:
        settings: hash of what pages are read with, the folder of their rows.
        current: the commits that count, of units of this manifest.
        history: every commit of these settings.
        written: the sum of all shards.
        decoder_seconds: for which decoders were held; None where that is not known.
        example: any row that was decoded, for model and engine.
    """
    found = counts(current)
    pages = found["totals"].get("pages", 0)
    work = sessions(history)
    model = {name: getattr(example, name, None) for name in ("model", "revision", "prompt_hash", "engine")}
    speeds = speed(work)
    at = 0.0
    pauses = [at := at + session.seconds for session in work][:-1]
    return {
        "jocr_archive": FORM,
        **provenance.collect(recipe.model_dump(mode="json"), **model),
        "settings": settings,
        "manifest": _manifest(info),
        "pages": pages,
        "pending": info.pages - pages,
        **found,
        "speed": {**speeds, "pauses": pauses},
        "tokens_per_page": histogram(written.tokens),
        "attempts": {str(times): n for times, n in sorted(written.attempts.items())},
        "cost": cost(
            history,
            Meter(recipe.cost, recipe.ray.decoders),
            pages=pages,
            total=info.pages,
            decoder_seconds=decoder_seconds,
        )
        | {"gpus_per_decoder": recipe.ray.decoder_gpus},
        "documents": {
            "written": written.documents,
            "unfinished": written.unfinished_documents,
            "pages_with_running_lines": written.running,
        },
        "failures": written.failures,
        "skipped": {"count": info.skipped, "reasons": info.skipped_reasons, "first": _skipped(info)},
        "files": _files(recipe, info, settings),
    }


def histogram(tokens: Mapping[int, int]) -> dict[str, Any]:
    """Decoded pages by tokens: ``pages[i]`` have from ``i * step`` to below ``(i + 1) * step``."""
    last = max(tokens, default=-1)
    merge = max(1, -(-(last + 1) // BARS))
    pages = [0] * (-(-(last + 1) // merge))
    for number, n in tokens.items():
        pages[number // merge] += n
    return {"step": BIN * merge, "pages": pages}


def _manifest(info: ManifestInfo) -> dict[str, Any]:
    names = ("id", "pages", "documents", "failed", "groups", "kinds", "reasons", "selection", "created")
    return {name: getattr(info, name) for name in names} | {"sources": list(info.sources)}


def _skipped(info: ManifestInfo) -> list[dict[str, str]]:
    """The first of the skipped files; all are in the manifest's list."""
    if not info.skipped:
        return []
    try:
        file = pq.ParquetFile(io.BytesIO(storage.read_bytes(info.skipped_uri)))
    except FileNotFoundError:
        return []
    rows = next(file.iter_batches(batch_size=SKIPPED)).to_pylist()
    return [
        {
            "name": " / ".join(filter(None, (row["uri"], row["member"]))),
            "reason": row["reason"],
            "detail": row["detail"],
        }
        for row in rows
    ]


def _files(recipe: ParseRecipe, info: ManifestInfo, settings: str) -> dict[str, str]:
    """Where things lie in the result."""
    files = {
        "manifest": f"{MANIFEST}/{info.id}/",
        "pages": f"{PAGES}/{settings}/",
        "commits": f"{COMMITS}/{settings}/",
        "failures": FAILURES,
        "report": REPORT,
    }
    if recipe.outputs.markdown:
        files |= {"documents": f"{DOCUMENTS}/", "page_map": PAGE_MAP}
    return files | ({"jsonl": f"{JSONL}/"} if recipe.outputs.jsonl else {})
