"""Teach the embedded checkpoint to read: ``python -m jobs.train_nano jobs/recipes/nano.toml [--resume] [--start RUN]``.

One process per rank, gloo between them. Writes ``state.pt`` (to resume), ``curve.jsonl`` and the checkpoint in the
published layout to the recipe's ``out``.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from jocr.config import load
from jocr.model.layers import load_views
from jocr.synth.instructions import instruction
from jocr.synth.page import make_page
from jocr.training.examples import Example, make_example
from jocr.training.loop import Trainer
from jocr.training.nano import PROCESSOR, nano_config, nano_tokenizer
from jocr.training.recipe import NanoRecipe, Phase, Stream
from jocr.training.teach import Teacher

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Build = Callable[[NanoRecipe, int], Trainer]


def make_teacher(seed: int) -> tuple[Teacher, Tokenizer]:
    """A fresh model with its auxiliary heads, and its tokenizer."""
    from jocr.model.ocr import OcrModel

    torch.manual_seed(seed)
    tokenizer = nano_tokenizer()
    (image,) = tokenizer.encode("<image>", add_special_tokens=False).ids
    model = OcrModel(nano_config(tokenizer.get_vocab_size(), image))

    def ids(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    specials = {"before": ids("<|User|>:\n"), "after": ids("\n"), "end": ids("\n<|Assistant|>:\n")}
    return Teacher(model, specials), tokenizer


def build(recipe: NanoRecipe, rank: int) -> Trainer:
    from jocr.model.tokenizer import Tokenizer
    from jocr.model.weights import save_checkpoint

    teacher, tokenizer = make_teacher(recipe.seed)
    cfg = teacher.model.cfg
    teacher.model.mtp_module.requires_grad_(False)  # fitted later, on the finished verifier

    def draw(stream: Stream, seed: int) -> Example:
        page = make_page(seed, stream.kind, stream.width, stream.height)
        # each known instruction is one token
        (asked,) = tokenizer.encode(instruction(random.Random(seed)), add_special_tokens=False).ids
        return make_example(page, tokenizer, PROCESSOR, asked, cfg.text.eos_token_id)

    def forward(batch: Any, phase: Phase) -> Any:
        weights = {"token": phase.token, "glyph": phase.glyph, "guide": phase.guide, "balance": phase.balance}
        return teacher(batch, weights)

    def save(out: Path) -> None:
        save_checkpoint(teacher.model, Tokenizer(tokenizer), PROCESSOR, out / "checkpoint")

    return Trainer(recipe, teacher, forward, draw, save, cfg.text.pad_token_id, rank)


@dataclass(frozen=True)
class Start:
    """Another run whose weights (not the clock) to begin with; those of another shape keep their fresh values."""

    run: Path
    prefix: str  # put before the run's names
    rounded: bool  # to bfloat16, as checkpoints are shipped


def start_from(trainer: Trainer, start: Start) -> None:
    saved = torch.load(start.run / "state.pt", weights_only=True)["module"]
    saved = {start.prefix + k: v.bfloat16().float() if start.rounded else v for k, v in saved.items()}
    own = trainer.module.state_dict()
    load_views(trainer.module, {k: saved[k] if k in saved and saved[k].shape == v.shape else v for k, v in own.items()})


def worker(rank: int, make: Build, recipe: NanoRecipe, resume: bool, start: Start | None) -> None:
    torch.set_num_threads(recipe.threads)
    if recipe.ranks > 1:
        # torch interrupts the ranks of a parent that died; a shell's background jobs come with interrupts ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
        dist.init_process_group("gloo", rank=rank, world_size=recipe.ranks)
    trainer = make(recipe, rank)
    if start is not None:
        start_from(trainer, start)
    if resume:
        trainer.resume()
    trainer.run()
    if recipe.ranks > 1:
        dist.destroy_process_group()


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def launch(make: Build, description: str, prefix: str = "", rounded: bool = False) -> None:
    """Read the command line and run ``make``'s trainer on every rank; ``prefix`` and ``rounded`` as in ``Start``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--start", type=Path, help="folder of a run whose weights to begin with")
    args = parser.parse_args()
    recipe = load(NanoRecipe, args.recipe, args.set)
    Path(recipe.out).mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(free_port()))
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    start = Start(args.start, prefix, rounded) if args.start else None
    if recipe.ranks == 1:
        worker(0, make, recipe, args.resume, start)
    else:
        mp.spawn(worker, args=(make, recipe, args.resume, start), nprocs=recipe.ranks)


if __name__ == "__main__":
    launch(build, __doc__ or "")
