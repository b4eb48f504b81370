"""Character detection matching (CDM) on token boxes: how much of a rendered formula is where it should be.

Follows Wang et al. 2024 (arXiv 2409.03643) as OmniDocBench uses it: tokens are assigned one to one by text, position
and order; a shift and scale estimated by RANSAC discards what lies elsewhere; F1 over what is left. Where the boxes
come from is the caller's matter: with KaTeX in a browser the score is called ``cdm_katex`` and never ``cdm``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jocr.evaluation.omnidocbench.costs import assign

POSITION_WEIGHT = 0.05
ORDER_WEIGHT = 0.15
FONT_COST = 0.05  # same character in another font
RESIDUAL = 25.0  # pixels
TRIALS = 50
SEED = 42
ROUNDS = 3

_FONT = re.compile(r"^\[[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Token:
    """A drawn token: ``text`` is ``[font]character`` or the name of a drawn part (``sqrt``, ``frac-line``)."""

    text: str
    x: float  # left, pixels
    y: float  # top, pixels
    width: float
    height: float

    @property
    def bare(self) -> str:
        return _FONT.sub("", self.text)


def score(reference: Sequence[Token], prediction: Sequence[Token]) -> float:
    """F1 of matched tokens in [0, 1]; 1 where both are empty, 0 where one is."""
    if not reference or not prediction:
        return float(not reference and not prediction)
    pairs = _matched(reference, prediction)
    kept = _consistent([(reference[i], prediction[j]) for i, j in pairs])
    return 2 * len(kept) / (len(reference) + len(prediction))


def _matched(reference: Sequence[Token], prediction: Sequence[Token]) -> list[tuple[int, int]]:
    """Assignment by weighted cost; pairs of different characters are dropped afterwards."""
    token = _token_costs(reference, prediction)
    position = np.abs(_boxes(reference)[:, None, :] - _boxes(prediction)[None, :, :]).mean(axis=2)
    order = np.abs(np.linspace(0, 1, len(reference))[:, None] - np.linspace(0, 1, len(prediction))[None, :])
    pairs = assign(token + POSITION_WEIGHT * position + ORDER_WEIGHT * order)
    return [(i, j) for i, j in pairs if token[i, j] < 1.0]


def _token_costs(reference: Sequence[Token], prediction: Sequence[Token]) -> np.ndarray:
    ids: dict[str, int] = {}

    def code(texts: list[str]) -> np.ndarray:
        return np.array([ids.setdefault(t, len(ids)) for t in texts])

    same = code([t.text for t in reference])[:, None] == code([t.text for t in prediction])[None, :]
    bare = code([t.bare for t in reference])[:, None] == code([t.bare for t in prediction])[None, :]
    return np.where(same, 0.0, np.where(bare, FONT_COST, 1.0))


def _boxes(tokens: Sequence[Token]) -> np.ndarray:
    """``(n, 4)`` corners as shares of the formula's own extent."""
    corners = np.array([(t.x, t.y, t.x + t.width, t.y + t.height) for t in tokens], dtype=np.float64)
    low = corners[:, :2].min(axis=0)
    span = np.maximum(corners[:, 2:].max(axis=0) - low, 1.0)
    return (corners - np.tile(low, 2)) / np.tile(span, 2)


def _consistent(pairs: list[tuple[Token, Token]]) -> list[int]:
    """Indices of pairs that some shift and scale explains, over up to three rounds on what is left."""
    centres = np.array([[_centre(a), _centre(b)] for a, b in pairs]).reshape(-1, 2, 2)
    rng = random.Random(SEED)
    kept: list[int] = []
    left = list(range(len(pairs)))
    for _ in range(ROUNDS):
        if len(left) < 3:
            break
        inside = _ransac(centres[left, 0], centres[left, 1], rng)
        if not inside:
            break
        kept += [left[k] for k in inside]
        left = [i for k, i in enumerate(left) if k not in set(inside)]
    if not kept and left:  # too few to estimate anything: judged by a shift of their own
        kept = left if len(pairs) < 3 else []
    return kept


def _centre(token: Token) -> tuple[float, float]:
    return token.x + token.width / 2, token.y + token.height / 2


def _ransac(source: np.ndarray, target: np.ndarray, rng: random.Random) -> list[int]:
    """Largest set of points that one shift and scale maps within ``RESIDUAL``."""
    best = np.zeros(len(source), dtype=bool)
    for _ in range(TRIALS):
        chosen = rng.sample(range(len(source)), 3)
        scale, shift = _fit(source[chosen], target[chosen])
        inside = np.hypot(*(source * scale + shift - target).T) < RESIDUAL
        if inside.sum() > best.sum():
            best = inside
        if best.all():
            break
    return [int(k) for k in np.flatnonzero(best)]


def _fit(source: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
    """Least-squares uniform scale and shift of three or more points."""
    a, b = source - source.mean(axis=0), target - target.mean(axis=0)
    power = float((a * a).sum())
    scale = float((a * b).sum()) / power if power > 0 else 1.0
    return scale, target.mean(axis=0) - scale * source.mean(axis=0)
