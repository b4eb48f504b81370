"""Clean printed pages with human ground truth, read by a checkpoint and by ``tesseract`` itself.

``python -m jobs.compare_tesseract FOLDER [--model nano]``: FOLDER holds images with a ``.txt`` beside them, as
``shared/data/documents/tesseract`` does. Prints the character error rate of both, page by page, line ends folded.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import time
from contextlib import closing
from pathlib import Path

from PIL import Image
from rapidfuzz.distance import Levenshtein

from jocr.decoding.load import load_decoder
from jocr.errors import ConfigError
from jocr.model.prompts import DEFAULT_INSTRUCTION
from jocr.records import PageInput


def truth_of(image: Path) -> Path | None:
    """``page.txt`` beside ``page.tif``; ``phototest.gold.txt`` serves every ``phototest*``."""
    stem = image.stem.split("-rotated")[0]
    names = (f"{image.stem}.txt", f"{image.stem}.gold.txt", f"{stem}.txt", f"{stem}.gold.txt")
    return next((image.with_name(n) for n in names if image.with_name(n).exists()), None)


def cer(reference: str, text: str) -> float:
    reference, text = (re.sub(r"\s+", " ", t).strip() for t in (reference, text))
    return Levenshtein.distance(reference, text) / max(1, len(reference))


def read_tesseract(image: Path) -> tuple[str, float]:
    begun = time.perf_counter()
    done = subprocess.run(["tesseract", str(image), "-"], capture_output=True, text=True, check=True)
    return done.stdout, time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="nano")
    args = parser.parse_args()
    images = [p for p in sorted(args.folder.iterdir()) if p.suffix in {".tif", ".png", ".jpg"} and truth_of(p)]
    if not images:
        raise ConfigError(f"{args.folder} has no image with a .txt of its own name")
    with closing(load_decoder(args.model)) as decoder:
        for path in images:
            truth = truth_of(path)
            assert truth is not None
            reference = truth.read_text(encoding="utf-8")
            buffer = io.BytesIO()
            with Image.open(path) as image:
                image.convert("RGB").save(buffer, "PNG")
                size = image.size
            (mine,) = decoder.decode([PageInput("0", buffer.getvalue(), DEFAULT_INSTRUCTION, 2048)])
            theirs, seconds = read_tesseract(path)
            print(f"{path.name:28} {size[0]:4}x{size[1]:<4} {len(reference):5} characters   "
                  f"{args.model}: CER {cer(reference, mine.text):.3f} stop {mine.stop} {mine.seconds:.1f} s   "
                  f"tesseract: CER {cer(reference, theirs):.3f} {seconds:.1f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
