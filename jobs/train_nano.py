"""Teach the embedded checkpoint to read: ``python -m jobs.train_nano jobs/recipes/nano.toml [--resume] [--start RUN]``.

One process per rank, gloo between them. Writes ``state.pt`` (to resume), ``curve.jsonl`` and the checkpoint in the
published layout to the recipe's ``out``.
"""

from __future__ import annotations

import argparse
import os
import random
import tomllib
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from jocr.synth.instructions import instruction
from jocr.synth.page import make_page
from jocr.training.examples import Example, make_example
from jocr.training.loop import Trainer
from jocr.training.nano import PROCESSOR, nano_config, nano_tokenizer
from jocr.training.recipe import NanoRecipe, Phase, Stream
from jocr.training.teach import Teacher


def build(recipe: NanoRecipe, rank: int) -> Trainer:
    from jocr.model.ocr import OcrModel
    from jocr.model.weights import save_checkpoint

    torch.manual_seed(recipe.seed)
    tokenizer = nano_tokenizer()
    cfg = nano_config(tokenizer.get_vocab_size(), tokenizer.token_to_id("<image>"))
    model = OcrModel(cfg)
    model.mtp_module.requires_grad_(False)  # fitted later, on the finished verifier

    def ids(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    teacher = Teacher(model, {"before": ids("<|User|>:\n"), "after": ids("\n"), "end": ids("\n<|Assistant|>:\n")})
    def draw(stream: Stream, seed: int) -> Example:
        page = make_page(seed, stream.kind, stream.width, stream.height)
        (asked,) = ids(instruction(random.Random(seed)))  # each known instruction is one token
        return make_example(page, tokenizer, PROCESSOR, asked, cfg.text.eos_token_id)

    def forward(batch: Any, phase: Phase) -> Any:
        weights = {"token": phase.token, "glyph": phase.glyph, "guide": phase.guide, "balance": phase.balance}
        return teacher(batch, weights)

    def save(out: Path) -> None:
        save_checkpoint(model, tokenizer, PROCESSOR, out / "checkpoint")

    return Trainer(recipe, teacher, forward, draw, save, cfg.text.pad_token_id, rank)


def start_from(trainer: Trainer, run: Path) -> None:
    """Take the weights (not the clock) of another run; those of another shape keep their fresh values."""
    saved = torch.load(run / "state.pt", weights_only=True)["module"]
    own = trainer.module.state_dict()
    trainer.module.load_state_dict({k: saved[k] if k in saved and saved[k].shape == v.shape else v for k, v in own.items()})


def worker(rank: int, recipe: NanoRecipe, resume: bool, start: Path | None) -> None:
    torch.set_num_threads(recipe.threads)
    if recipe.ranks > 1:
        dist.init_process_group("gloo", rank=rank, world_size=recipe.ranks)
    trainer = build(recipe, rank)
    if start is not None:
        start_from(trainer, start)
    if resume:
        trainer.resume()
    trainer.run()
    if recipe.ranks > 1:
        dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--start", type=Path, help="folder of a run whose weights to begin with")
    args = parser.parse_args()
    recipe = NanoRecipe.model_validate(tomllib.loads(args.recipe.read_text()))
    Path(recipe.out).mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29531")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if recipe.ranks == 1:
        worker(0, recipe, args.resume, args.start)
    else:
        mp.spawn(worker, args=(recipe, args.resume, args.start), nprocs=recipe.ranks)


if __name__ == "__main__":
    main()
