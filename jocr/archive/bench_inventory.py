"""What an inventory's bookkeeping costs: listing, manifest, groups and planning, without opening a document."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from jocr.archive.assemble import assemble
from jocr.archive.collect import collect, output_of
from jocr.archive.groups import group_ends, unit_name
from jocr.archive.inventory import Document, to_table
from jocr.archive.listing import Listed, list_sources
from jocr.archive.manifest import read_groups
from jocr.archive.reuse import Index
from jocr.parsing.plan import PageSelection

T = TypeVar("T")
_CHUNK = 256  # documents in one table, as the tasks make them


class _Clock:
    """Seconds (wall and CPU) of each step, and how far the process's largest memory rose over it."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[str, float]] = {}

    def time(self, name: str, call: Callable[[], T]) -> T:
        wall, cpu, most = time.perf_counter(), time.process_time(), _most_mb()
        result = call()
        self.steps[name] = {
            "seconds": round(time.perf_counter() - wall, 2),
            "cpu_seconds": round(time.process_time() - cpu, 2),
            "memory_mb": round(_most_mb() - most, 1),
        }
        return result


def bench(pages: int = 1_000_000, pages_per_document: int = 10, unit: int = 128) -> dict[str, Any]:
    """Measure, in a folder that is removed afterwards.

    Args:
        pages: rows of the manifest; as many keys are listed.
        pages_per_document: of every document.
        unit: as ``ray.unit``.

    Returns:
        ``steps`` by name (``seconds``, ``cpu_seconds``, ``memory_mb`` that the peak rose by), ``units``, ``peak_mb``.
    """
    clock = _Clock()
    documents = max(1, pages // pages_per_document)
    with TemporaryDirectory(prefix="jocr-bench-") as folder:
        tables = clock.time("make the tables that tasks make", lambda: list(_tables(documents, pages_per_document)))
        start_mb = _most_mb()
        files = list_sources(["s3://library/scans/"], "", _lister(pages))
        clock.time(f"list and check {pages} keys", lambda: collect(files, Path(folder)))
        info = clock.time("write the manifest", lambda: assemble(lambda: iter(tables), folder, unit=unit))
        names = clock.time("plan: read groups, name units", lambda: {unit_name(keys) for *_, keys in read_groups(info)})
        keys = np.concatenate([keys for *_, keys in read_groups(info)])
        clock.time("group alone", lambda: group_ends(keys, unit))
        clock.time("index an earlier manifest", lambda: Index(info))
        return {
            "pages": info.pages,
            "documents": info.documents,
            "units": len(names),
            "parts": len(info.parts),
            "manifest_bytes": sum(path.stat().st_size for path in Path(folder).rglob("*.parquet")),
            "steps": clock.steps,
            "peak_mb": round(_most_mb(), 1),
            "rise_mb": round(_most_mb() - start_mb, 1),
        }


def _lister(count: int) -> Callable[[str], Iterator[str]]:
    def lister(_: str) -> Iterator[str]:
        for number in range(count):
            uri = Listed(f"s3://library/scans/volume-{number // 500:05d}/page-{number:07d}.tif")
            uri.size, uri.etag = 1_000_000, f"{number:032x}"
            yield uri

    return lister


def _tables(documents: int, pages: int) -> Iterator[pa.Table]:
    everything = PageSelection.parse(None)
    for first in range(0, documents, _CHUNK):
        some = range(first, min(first + _CHUNK, documents))
        yield to_table([_document(number, pages) for number in some], everything)


def _document(number: int, pages: int) -> Document:
    name = f"volume-{number // 500:05d}/{number:07d}.pdf"
    uri, shelf = f"s3://library/scans/{name}", name.partition("/")[0]
    digest = f"{number * 2654435761:064x}"
    return Document(uri, "", name, output_of(name), shelf, f"{number:032x}", digest, 1_000_000, "pdf", pages, "", "")


def _most_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    import json

    print(json.dumps(bench(), indent=1))
