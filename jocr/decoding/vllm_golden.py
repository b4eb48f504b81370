"""The start-up self-test: one drawn page whose prompt, ids and first tokens an engine has to reproduce.

vLLM releases have broken this model's vision part without an error: the text stays fluent and wrong. What is compared
was made by this project's own engine, so an engine that starts agrees with it. ``python -m jocr.decoding.vllm_golden
CHECKPOINT`` writes ``golden.json`` beside a checkpoint; small checkpoints get theirs by themselves, in the cache.
"""

from __future__ import annotations

import io
import json
import logging
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from jocr.decoding.greedy import GrowingCache
from jocr.decoding.vllm_options import KNOWN_GOOD
from jocr.errors import CheckpointError, EngineError
from jocr.model.config import OcrConfig
from jocr.model.hub import revision
from jocr.model.ocr import OcrModel, PageViews
from jocr.model.prompts import DEFAULT_INSTRUCTION, prompt_ids, prompt_text
from jocr.model.shards import read_index, weight_files
from jocr.model.split_draft import HEAD, cache_root
from jocr.model.tokenizer import Tokenizer, load_tokenizer
from jocr.model.weights import load_model
from jocr.pages.tiles import ProcessorConfig, normalise, page_views
from jocr.records import PageInput
from jocr.storage import atomic_write

log = logging.getLogger(__name__)

FILE = "golden.json"
TOKENS = 16  # compared at most
MARGIN = 1.0  # logits between first and second choice below which engines may part (bf16 differs by up to 0.56)
SMALL = 2 << 30  # bytes of weights up to which the page is decoded here where no file exists


@dataclass(frozen=True, slots=True)
class Golden:
    """What must come out. ``tokens`` ends before the first choice that is nearly a tie; it may be empty."""

    revision: str
    prompt: str
    prompt_ids: tuple[int, ...]
    tokens: tuple[int, ...]
    known_good: str = KNOWN_GOOD

    @classmethod
    def read(cls, path: Path) -> Golden:
        """
        Raises:
            CheckpointError: the file is no golden page.
        """
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            ids, tokens = tuple(raw.pop("prompt_ids")), tuple(raw.pop("tokens"))
            return cls(prompt_ids=ids, tokens=tokens, **raw)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{path} is no golden page: {error!r}") from error

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(str(path), (json.dumps(asdict(self), ensure_ascii=False) + "\n").encode())


def golden_page(cfg: ProcessorConfig, max_tokens: int = TOKENS) -> PageInput:
    """Bars of two greys on white, cut into 3 x 3 tiles: an engine that stops at six is found out. Integers only."""
    side = cfg.image_size * 5 // 2
    y, x = np.mgrid[0:side, 0:side]
    pixels = np.full((side, side, 3), 255, np.uint8)
    word = (x // 5 * 7 + y // 8 * 13) % 11 > 3
    pixels[(y % 8 < 4) & word & (x > 8) & (x < side - 12)] = 20
    pixels[(y % 32 > 28) & (x % 64 < 40)] = 120
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png")
    return PageInput("golden", out.getvalue(), DEFAULT_INSTRUCTION, max_tokens)


@torch.inference_mode()
def make_golden(model: OcrModel, tokenizer: Tokenizer, processor: ProcessorConfig, stamp: str) -> Golden:
    """Decode the page with the readable decoder, as far as its choices are clear."""
    page = golden_page(processor)
    views = page_views(Image.open(io.BytesIO(page.png)), processor)
    like = model.lm_head.weight
    pixels = [torch.from_numpy(np.ascontiguousarray(normalise(p))).to(like) for p in (views.global_view, views.tiles)]
    visual = model.encode_page(PageViews(pixels[0], pixels[1], views.grid))
    ids = prompt_ids(tokenizer, page.instruction, visual.shape[0])
    tokens: list[int] = []
    rows, cache, start = model.embed(torch.tensor(ids, device=like.device), visual), GrowingCache(), 0
    while len(tokens) < TOKENS:
        end = start + rows.shape[0]
        places = torch.arange(start, end, device=like.device)[None]
        state = model.hidden(rows[None], places, end, cache.attend)[:, -1:]
        best = model.lm_head(state)[0, -1].float().topk(2)
        token = int(best.indices[0])
        if float(best.values[0] - best.values[1]) < MARGIN or token == model.cfg.text.eos_token_id:
            break
        tokens.append(token)
        rows, start = model.embed(torch.tensor([token], device=like.device)), end
    return Golden(stamp, prompt_text(page.instruction), tuple(ids), tuple(tokens))


def find_golden(checkpoint: Path) -> Golden | None:
    """The checkpoint's golden page: beside it, in the cache, or made now where the checkpoint is small."""
    stamp = revision(checkpoint)
    cached = cache_root() / "golden" / f"{stamp}.json"
    for path in (checkpoint / FILE, cached):
        if path.exists() and (golden := Golden.read(path)).revision == stamp:
            return golden
    if sum(path.stat().st_size for path in weight_files(checkpoint)) > SMALL:
        log.warning("no golden page, text unchecked: run python -m jocr.decoding.vllm_golden %s", checkpoint)
        return None
    golden = _from(checkpoint, stamp)
    golden.write(cached)
    return golden


def compare(golden: Golden, prompt: str, ids: Sequence[int], tokens: Sequence[int], engine: str) -> None:
    """
    Raises:
        EngineError: the engine does not reproduce the golden page; says where, and which release is known to.
    """
    remedy = f"{engine} is not fit for this checkpoint; vllm {golden.known_good} is known good"
    if prompt != golden.prompt:
        raise EngineError(f"golden page: the prompt is {prompt!r}, not {golden.prompt!r}; {remedy}")
    if tuple(ids) != golden.prompt_ids:
        at = _parting(ids, golden.prompt_ids)
        counts = f"{len(ids)} and {len(golden.prompt_ids)} in all"
        raise EngineError(f"golden page: prompt ids part at {at} ({counts}); {remedy}")
    kept = tuple(tokens[: len(golden.tokens)])
    if kept != golden.tokens:
        at = _parting(kept, golden.tokens)
        raise EngineError(f"golden page: output parts at token {at}: {kept[at:]} not {golden.tokens[at:]}; {remedy}")


def _parting(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _from(checkpoint: Path, stamp: str) -> Golden:
    with _without_missing_head(checkpoint) as whole:
        model = load_model(whole)
    return make_golden(model, load_tokenizer(checkpoint), ProcessorConfig.load(checkpoint), stamp)


@contextmanager
def _without_missing_head(checkpoint: Path) -> Iterator[Path]:
    """The checkpoint, or, where its config names a draft head that its files lack, a view of it that names none."""
    if not OcrConfig.load(checkpoint).mtp_num_heads or any(name.startswith(HEAD) for name in read_index(checkpoint)):
        yield checkpoint
        return
    with tempfile.TemporaryDirectory() as view:
        for path in checkpoint.iterdir():
            (Path(view) / path.name).symlink_to(path.resolve())
        raw = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
        (Path(view) / "config.json").unlink()
        text = json.dumps({**raw, "mtp_num_heads": 0})
        (Path(view) / "config.json").write_text(text, encoding="utf-8")
        yield Path(view)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    made = _from(place, revision(place))
    made.write(place / FILE)
    print(f"{place / FILE}: {len(made.prompt_ids)} prompt ids, {len(made.tokens)} tokens")
