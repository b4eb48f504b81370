"""Fit the FastMTP head: ``python -m jobs.fit_draft jobs/recipes/fit_draft.toml --start runs/nano``.

The verifier is rounded to bfloat16 first, as it is shipped, so that the head learns the choices users will see.
"""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

from jobs.train_nano import launch, make_teacher
from jocr.synth.instructions import instruction
from jocr.synth.page import make_page
from jocr.training.draft import DraftTeacher
from jocr.training.examples import Example, make_example
from jocr.training.loop import Trainer
from jocr.training.nano import PROCESSOR
from jocr.training.recipe import NanoRecipe, Phase, Stream


def build(recipe: NanoRecipe, rank: int) -> Trainer:
    from jocr.model.tokenizer import Tokenizer
    from jocr.model.weights import save_checkpoint

    teacher, tokenizer = make_teacher(recipe.seed)
    cfg = teacher.model.cfg
    module = DraftTeacher(teacher, cfg.mtp_num_speculative_steps)

    def draw(stream: Stream, seed: int) -> Example:
        page = make_page(seed, stream.kind, stream.width, stream.height)
        (asked,) = tokenizer.encode(instruction(random.Random(seed)), add_special_tokens=False).ids
        return make_example(page, tokenizer, PROCESSOR, asked, cfg.text.eos_token_id)

    def forward(batch: Any, phase: Phase) -> Any:
        return module(batch)

    def save(out: Path) -> None:
        shipped = copy.deepcopy(teacher.model).bfloat16()
        save_checkpoint(shipped, Tokenizer(tokenizer), PROCESSOR, out / "checkpoint")

    return Trainer(recipe, module, forward, draw, save, cfg.text.pad_token_id, rank)


if __name__ == "__main__":
    launch(build, __doc__ or "", prefix="teacher.", rounded=True)
