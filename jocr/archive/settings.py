"""What pages are read with, and the hash of all of it that changes what a page reads as.

Rows are kept under that hash, so a change of model, prompt, sampling, rendering or ladder reads every page anew and a
change of anything else (batch, decoders, draft depth, time limits, outputs) reads none: a draft changes no text.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from jocr.config import ParseRecipe, Rung
from jocr.decoding.fake import is_fake
from jocr.parsing import engine

READING = 1  # raised by whoever changes decoding, loop rules or rendering so that pages read differently
RENDERERS = ("pypdfium2", "pillow")


@dataclass(frozen=True, slots=True)
class Reading:
    """How the pages of a run are read; ``settings`` names the folder of their rows (16 hex digits)."""

    settings: str
    facts: dict[str, Any]  # what ``settings`` is the hash of
    instruction: str
    max_tokens: int
    long_side: int  # pixels
    ladder: tuple[Rung, ...]


def reading(recipe: ParseRecipe) -> Reading:
    """Settle how pages will be read. Reads the checkpoint's files where their hash is not known, loads no weights.

    Raises:
        CheckpointError: it is not there or not whole.
    """
    words, side = engine.instruction(recipe.model), engine.long_side(recipe.model, recipe.render)
    facts = {
        "reading": READING,
        "model": recipe.model.name,
        "revision": revision(recipe.model.name),
        "engine": recipe.model.engine,
        "dtype": recipe.model.dtype,
        "instruction": words.text,
        "max_tokens": words.max_tokens,
        "long_side": side,
        "renderers": {name: metadata.version(name) for name in RENDERERS},
        "ladder": [rung.model_dump(mode="json") for rung in recipe.retry],
    }
    return Reading(digest(facts), facts, words.text, words.max_tokens, side, recipe.retry)


def digest(facts: dict[str, Any]) -> str:
    """16 hex digits of the SHA-256 of ``facts``, whatever the order of their keys."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def revision(model: str) -> str:
    """What the content of a checkpoint is called.

    Raises:
        CheckpointError: it is not there or not whole.
    """
    if is_fake(model):
        return "fake-1"
    from jocr.model import hub

    return hub.revision(hub.resolve_checkpoint(model))
