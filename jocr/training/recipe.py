"""What ``jobs/recipes/nano.toml`` may say."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jocr.config import Recipe


class Stream(Recipe):
    """Pages of one kind and size: ``batch`` of them per rank make one micro-batch."""

    kind: Literal["paragraph", "table", "formula", "mixed"]
    width: int = 256
    height: int = 256
    batch: int = 24
    share: float = 1.0  # relative frequency among micro-batches


class Phase(Recipe):
    """One stretch of training, measured in minutes of wall time; rates run linearly from ``lr_from`` to ``lr_to``."""

    name: str
    minutes: float
    hold: float = 0.0  # share of the phase at the starting rate before the linear change begins
    lr_from: float = 1.0  # multiples of the optimizers' rates
    lr_to: float = 1.0
    token: float = 1.0
    glyph: float = 0.1
    guide: float = 0.1
    balance: float = 0.01
    mislead: float = Field(default=0.0, ge=0, le=0.5)  # share of the text before a token that is shown wrong
    streams: list[Stream]


class NanoRecipe(Recipe):
    out: str = "runs/nano"
    seed: int = 0
    ranks: int = 2
    threads: int = 1
    muon_lr: float = 0.014
    adam_lr: float = 0.002
    weight_decay: float = 0.01
    clip: float = 1.0
    micro_batches: int = 2
    pool: int = 192  # pages drawn ahead per stream
    reuse: int = 2
    bf16: bool = True
    log_every: int = 20
    save_minutes: float = 4.0
    phases: list[Phase] = Field(min_length=1)
