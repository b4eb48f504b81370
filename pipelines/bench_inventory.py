"""What an inventory of many small remote documents costs: time, and the memory of the driver."""

from __future__ import annotations

import io
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from PIL import Image

from jocr import storage
from jocr.config import ParseRecipe
from pipelines.inventory import RAY, Runner, run_inventory


def bench(prefix: str, documents: int = 10_000, *, run: Runner = RAY) -> dict[str, Any]:
    """Fill a prefix with one-page pictures, take stock of it twice, and measure.

    Args:
        prefix: an empty ``s3://bucket/prefix`` or folder; documents and results stay there.
        documents: how many to write; every one is opened once.
        run: ``run_ray`` on the cluster this process is connected to, or ``run_local``.

    Returns:
        ``seconds`` of the first inventory and ``again_seconds`` of the second, which opens nothing; ``driver_mb``, the
        peak of this process, and ``rise_mb``, how far it rose over the two.
    """
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: _write(prefix, number), range(documents)))
    recipe = ParseRecipe(sources=(storage.join(prefix, "scans/"),), out=storage.join(prefix, "out"))
    start = _most_mb()
    seconds, info = _timed(recipe, run)
    again, second = _timed(recipe, run)
    if not info.id == second.id or info.pages != documents:
        raise RuntimeError(f"{documents} documents gave {info.pages} pages, then {second.pages}")
    return {
        "documents": documents,
        "seconds": round(seconds, 1),
        "again_seconds": round(again, 1),
        "driver_mb": round(_most_mb(), 1),
        "rise_mb": round(_most_mb() - start, 1),
    }


def _timed(recipe: ParseRecipe, run: Runner) -> tuple[float, Any]:
    started = time.monotonic()
    info = run_inventory(recipe, lambda listed, opened: None, run=run)
    return time.monotonic() - started, info


def _write(prefix: str, number: int) -> None:
    out = io.BytesIO()
    Image.new("L", (16, 16), number % 256).save(out, "PNG")
    name = f"scans/volume-{number // 500:03d}/{number:06d}.png"
    storage.atomic_write(storage.join(prefix, name), out.getvalue() + number.to_bytes(4, "big"))


def _most_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
