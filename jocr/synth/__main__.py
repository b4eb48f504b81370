"""``python -m jocr.synth OUT``: write sample pages (PNG beside Markdown) for a person to look at."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jocr.errors import ConfigError
from jocr.synth.command import run
from jocr.synth.page import KINDS, SPLITS


def main(argv: list[str] | None = None) -> int:
    """Parse the command line and write the pages. Returns 0, or 2 on bad usage."""
    parser = argparse.ArgumentParser(prog="python -m jocr.synth", description="Write sample synthetic pages.")
    parser.add_argument("out", type=Path, help="folder to write into")
    parser.add_argument("--n", type=int, default=12, help="how many pages")
    parser.add_argument("--kind", choices=KINDS, default="mixed")
    parser.add_argument("--size", default="512", help="pixels: 512 or WIDTHxHEIGHT")
    parser.add_argument("--split", choices=SPLITS, default="train")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first page; the next ones count up")
    args = parser.parse_args(argv)
    sides = args.size.split("x")
    if len(sides) > 2 or not all(side.isdecimal() for side in sides):
        parser.error(f"--size wants 512 or 512x768, not {args.size!r}")
    width, height = int(sides[0]), int(sides[-1])
    try:
        return run(args.out, count=args.n, kind=args.kind, width=width, height=height, seed=args.seed, split=args.split)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
