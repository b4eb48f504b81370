"""Our own engine against vLLM on drawn pages nobody has seen: the share of identical pages, and where the others part.

``python -m jocr.evaluation.engines [CHECKPOINT] [--depths 0,1,2,3] [--pages 40] [--tokens 64] [--dtype bfloat16]
[--json FILE]``
"""

from __future__ import annotations

import argparse
import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from PIL import Image

from jocr.decoding.vllm_agreement import Agreement, agreement, ours, theirs
from jocr.decoding.vllm_load import vllm_device
from jocr.decoding.vllm_options import prepare_environment, version
from jocr.model.hub import resolve_checkpoint, revision
from jocr.model.prompts import DEFAULT_INSTRUCTION
from jocr.provenance import collect
from jocr.records import PageInput
from jocr.synth.page import make_page

FIRST_SEED = 970_000_000  # apart from the pages of training, reading and speed
KINDS = ("paragraph", "table", "formula", "mixed")
SIZES = ((256, 256), (512, 512), (256, 256), (512, 768))  # of a kind: one view and tiled by turns


def drawn_pages(count: int, max_tokens: int) -> list[PageInput]:
    """Pages of all kinds; of the small checkpoint every second one is a single view."""
    made = []
    for i in range(count):
        kind, (width, height) = KINDS[i % 4], SIZES[(i // 4) % 4]
        page = make_page(FIRST_SEED + i, kind, width, height, split="heldout")
        out = io.BytesIO()
        Image.fromarray(page.image).convert("RGB").save(out, "PNG", compress_level=1)
        made.append(PageInput(f"{kind}-{width}x{height}-{i}", out.getvalue(), DEFAULT_INSTRUCTION, max_tokens))
    return made


def measure(checkpoint: str, pages: Sequence[PageInput], depths: Sequence[int], dtype: str) -> Iterator[Agreement]:
    """One comparison for each depth."""
    directory = resolve_checkpoint(checkpoint)
    for depth in depths:
        mine = ours(directory, pages, depth, dtype=dtype, backend="torch")
        yield agreement(mine, theirs(directory, pages, depth, dtype=dtype), depth, dtype)


def main(argv: Sequence[str] | None = None) -> None:
    """One JSON line for each depth; with ``--json`` also a file of them with where they come from."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", nargs="?", default="nano")
    parser.add_argument("--depths", default="0,1,2,3")
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    prepare_environment(vllm_device("auto"))
    rows, depths = [], [int(depth) for depth in args.depths.split(",")]
    for found in measure(args.checkpoint, drawn_pages(args.pages, args.tokens), depths, args.dtype):
        rows.append({**asdict(found), "share": found.identical / found.pages})
        print(json.dumps(rows[-1]), flush=True)
    if args.json is not None:
        stamp = revision(resolve_checkpoint(args.checkpoint))
        origin = collect(model=args.checkpoint, revision=stamp, vllm=version())
        args.json.write_text(json.dumps({"provenance": origin, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
