"""``python -m jocr.synth OUT``: write sample pages (PNG beside Markdown) for a person to look at."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from PIL import Image

from jocr.errors import ConfigError
from jocr.synth.checks_for import checks_for
from jocr.synth.page import KINDS, SPLITS, make_page


def main(argv: list[str] | None = None) -> int:
    """Write ``--n`` pages, and one ``checks.jsonl`` of unit tests for them, into a folder. 2 on bad usage."""
    parser = argparse.ArgumentParser(prog="python -m jocr.synth", description="Write sample synthetic pages.")
    parser.add_argument("out", type=Path, help="folder to write into")
    parser.add_argument("--n", type=int, default=12, help="how many pages")
    parser.add_argument("--kind", choices=KINDS, default="mixed")
    parser.add_argument("--size", default="512", help="pixels: 512 or WIDTHxHEIGHT")
    parser.add_argument("--split", choices=SPLITS, default="train")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first page; the next ones count up")
    args = parser.parse_args(argv)
    try:
        sides = [int(side) for side in args.size.split("x")]
        if len(sides) > 2:
            raise ValueError(args.size)
        _write(args, sides[0], sides[-1])
    except ValueError:
        parser.error(f"--size wants 512 or 512x768, not {args.size!r}")
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _write(args: argparse.Namespace, width: int, height: int) -> None:
    args.out.mkdir(parents=True, exist_ok=True)
    tests = []
    for seed in range(args.seed, args.seed + args.n):
        page = make_page(seed, args.kind, width, height, split=args.split)
        name = f"{args.kind}_{args.split}_{seed}"
        Image.fromarray(page.image).save(args.out / f"{name}.png")
        (args.out / f"{name}.md").write_text(page.markdown + "\n", encoding="utf-8")
        tests += checks_for(page, pdf=f"{name}.pdf")
        print(f"{name}  {page.font}, {len(page.glyphs)} glyphs, {len(page.markdown)} characters")
    lines = (json.dumps(test, ensure_ascii=False) + "\n" for test in tests)
    (args.out / "checks.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
