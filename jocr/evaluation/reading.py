"""How well a checkpoint reads synthetic pages it has never seen: ``jocr bench read``.

Pages come from the held-out splits (unseen words and layouts; for one kind unseen fonts too). CER is the summed edit
distance over the summed reference length, so a page that loops or stays empty counts in full.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from PIL import Image
from rapidfuzz.distance import Levenshtein

from jocr.decoding.protocol import Decoder
from jocr.decoding.stats import acceptance, tau
from jocr.markup.trees import teds
from jocr.model.prompts import DEFAULT_INSTRUCTION
from jocr.records import PageInput, Transcript
from jocr.synth.page import SynthPage, make_page

FIRST_SEED = 900_000_000  # far from every training seed


@dataclass(frozen=True)
class PageSet:
    """One kind of held-out page; sizes are taken in turn."""

    name: str
    kind: str
    split: str
    sizes: tuple[tuple[int, int], ...]


LARGE = ((512, 512), (512, 768), (768, 512), (512, 512))
SETS = (
    PageSet("paragraphs", "paragraph", "heldout", ((256, 256),)),
    PageSet("tables", "table", "heldout", ((256, 256),)),
    PageSet("formulas", "formula", "heldout", ((256, 256),)),
    PageSet("mixed", "mixed", "heldout", LARGE),
    PageSet("mixed, unseen font", "mixed", "heldout_font", LARGE),
)


@dataclass(frozen=True)
class ReadingScore:
    name: str
    pages: int
    cer: float  # edits per reference character
    exact: float  # share of pages transcribed without a fault
    teds: float | None  # mean over pages whose reference has a table and nothing else
    loops: int
    truncated: int
    tau: float | None
    acceptance: tuple[float, ...]  # per draft position
    tokens: int


def pages_of(which: PageSet, count: int, first_seed: int = FIRST_SEED) -> list[SynthPage]:
    sizes = [which.sizes[i % len(which.sizes)] for i in range(count)]
    return [make_page(first_seed + i, which.kind, w, h, split=which.split) for i, (w, h) in enumerate(sizes)]


def inputs_of(pages: Iterable[SynthPage], max_tokens: int = 1024) -> Iterator[PageInput]:
    for i, page in enumerate(pages):
        buffer = io.BytesIO()
        Image.fromarray(page.image).save(buffer, "PNG", compress_level=1)
        yield PageInput(str(i), buffer.getvalue(), DEFAULT_INSTRUCTION, max_tokens)


def score_set(which: PageSet, decoder: Decoder, count: int) -> tuple[ReadingScore, list[tuple[str, str]]]:
    """Decode ``count`` pages; returns the score and (reference, prediction) pairs."""
    pages = pages_of(which, count)
    done: dict[int, Transcript] = {int(t.page_id): t for t in decoder.decode(inputs_of(pages))}
    pairs = [(page.markdown, done[i].text) for i, page in enumerate(pages)]
    edits = sum(Levenshtein.distance(ref, text) for ref, text in pairs)
    trees = [teds(text, ref) for ref, text in pairs if which.kind == "table"]
    results = list(done.values())
    return ReadingScore(
        which.name, count, edits / sum(len(ref) for ref, _ in pairs), sum(a == b for a, b in pairs) / count,
        sum(trees) / len(trees) if trees else None, sum(t.stop == "loop" for t in results),
        sum(t.stop == "length" for t in results), tau(results), tuple(acceptance(results)),
        sum(len(t.tokens) for t in results),
    ), pairs  # fmt: skip


def run(decoder: Decoder, *, count: int = 100, json_path: Path | None = None) -> list[ReadingScore]:
    """Score every set with ``count`` pages each, print the table, write JSON with provenance."""
    from jocr.provenance import collect

    scores = []
    for which in SETS:
        score, _ = score_set(which, decoder, count)
        scores.append(score)
        teds_text = f" TEDS {score.teds:.3f}" if score.teds is not None else ""
        tau_text = f" tau {score.tau:.2f}" if score.tau else ""
        print(f"{score.name:20} {count} pages: CER {score.cer:.3f} exact {score.exact:.2f}{teds_text}{tau_text} "
              f"loops {score.loops} truncated {score.truncated}", flush=True)  # fmt: skip
    if json_path is not None:
        rows = [asdict(s) for s in scores]
        json_path.write_text(
            json.dumps({"provenance": collect(), "engine": asdict(decoder.info), "scores": rows}, indent=1)
        )
    return scores
