"""From terms to one number: the paper's floored product, and two designs of peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from jocr.errors import ConfigError
from jocr.rewards.base import Term

Preset = Literal["product", "sum", "gated"]
PRESETS: tuple[Preset, ...] = ("product", "sum", "gated")

FLOORS: dict[str, float] = {  # jina-ocr-v1: one failed term must not erase the gradient of the others
    "content": 0.1,
    "formula": 0.1,
    "table": 0.1,
    "structure": 0.2,
    "unit_tests": 0.1,
    "format": 0.2,
    "repetition": 0.0,  # a looping page earns nothing
}
WEIGHTS: dict[str, float] = {  # olmOCR-2's shape: tests first, reference similarity and form beside them
    "unit_tests": 1.0,
    "content": 1.0,
    "formula": 0.5,
    "table": 0.5,
    "structure": 0.25,
    "format": 0.25,
    "repetition": 0.5,
}
GATES = {
    "teds": 0.4,
    "teds_s": 0.5,
    "text": 0.5,
    "text_full": 0.99,
    "total": 0.5,
    "loop_count": 10,
    "length_ratio": 2.0,
}


def combine(
    terms: Sequence[Term],
    preset: Preset = "product",
    floors: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
) -> float:
    """The reward in [0, 1] of the terms that apply.

    ``product``: each term at least its floor (``FLOORS``, overridden by ``floors``), multiplied (jina-ocr-v1).
    ``sum``: weighted mean (olmOCR-2's additive design; ``WEIGHTS``, overridden by ``weights``).
    ``gated``: text 0.5 + TEDS 0.25 + TEDS-S 0.25 behind hard gates (HunyuanOCR's design).
    """
    applying = [t for t in terms if t.applies]
    if preset == "product":
        floor = {**FLOORS, **(floors or {})}
        value = 1.0
        for t in applying:
            value *= max(t.value, floor.get(t.name, 0.0))
        return value if not _blank(applying) else 0.0
    if preset == "sum":
        weight = {**WEIGHTS, **(weights or {})}
        total = sum(weight.get(t.name, 0.0) for t in applying)
        return sum(weight.get(t.name, 0.0) * t.value for t in applying) / total if total else 0.0
    if preset == "gated":
        return _gated({t.name: t for t in applying})
    raise ConfigError(f"preset {preset!r}: one of {', '.join(PRESETS)}")


def _blank(terms: Sequence[Term]) -> bool:
    """An empty page on a page that has something to read: the minimum, whatever the floors."""
    return any(t.detail.get("empty") for t in terms)


def _gated(terms: Mapping[str, Term]) -> float:
    content, repetition, table = terms.get("content"), terms.get("repetition"), terms.get("table")
    if content is None or content.detail.get("empty"):
        return 0.0
    loop = repetition.detail.get("loop", {}) if repetition else {}
    if loop.get("count", 0) >= GATES["loop_count"] and content.detail.get("length_ratio", 0) > GATES["length_ratio"]:
        return 0.0
    text = 0.0 if content.value < GATES["text"] else 1.0 if content.value > GATES["text_full"] else content.value
    if table is None:
        return text
    scores = table.detail.get("pairs", [])
    if table.detail.get("reference") != table.detail.get("prediction"):
        return 0.0
    if any(p["teds"] < GATES["teds"] or p["teds_s"] < GATES["teds_s"] for p in scores):
        return 0.0
    total = 0.5 * text + 0.25 * table.detail["teds"] + 0.25 * table.detail["teds_s"]
    return total if total >= GATES["total"] else 0.0
