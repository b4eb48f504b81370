"""Do two rendered equations show the same picture? Glyphs with boxes, compared by who stands next to whom.

Each glyph of the reference is mapped to an equal glyph of the candidate so that the nearest neighbour in each of four
directions maps to the nearest neighbour. Glyphs the candidate has beyond that are free.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jocr.errors import UnscoredError

TOLERANCE = 5.0  # pixels two centres may be apart across the direction looked in
MAX_GLYPHS = 1500  # of a candidate that has all characters of the reference
MAX_STEPS = 200_000  # assignments tried before the answer counts as not found

Neighbours = tuple[int | None, int | None, int | None, int | None]  # up, down, left, right


@dataclass(frozen=True, slots=True)
class Glyph:
    """One character and its box in pixels, y downwards."""

    char: str
    x: float
    y: float
    width: float
    height: float


def split(text: str, x: float, y: float, width: float, height: float) -> list[Glyph]:
    """The characters of a text span, each with an equal share of its box."""
    share = width / len(text) if text else 0.0
    return [Glyph(char, x + i * share, y, share, height) for i, char in enumerate(text)]


def neighbours(glyphs: Sequence[Glyph]) -> list[Neighbours]:
    """For each glyph the index of the nearest other one above, below, left and right (None: nobody there).

    Of several equally near the first counts. Time and memory grow with the square of the count.
    """
    if not glyphs:
        return []
    x = np.array([g.x + g.width / 2 for g in glyphs])
    y = np.array([g.y + g.height / 2 for g in glyphs])
    dx, dy = x[None, :] - x[:, None], y[None, :] - y[:, None]  # (n, n): to column from row
    in_column, in_row = np.abs(dx) <= TOLERANCE, np.abs(dy) <= TOLERANCE
    directions = ((-dy, in_column), (dy, in_column), (-dx, in_row), (dx, in_row))
    up, down, left, right = (_nearest(distance, seen & (distance > 0)) for distance, seen in directions)
    return list(zip(up, down, left, right, strict=True))


def _nearest(distance: np.ndarray, seen: np.ndarray) -> list[int | None]:
    masked = np.where(seen, distance, np.inf)
    best = masked.argmin(axis=1)
    there = seen[np.arange(len(best)), best]
    return [int(index) if found else None for index, found in zip(best, there, strict=True)]


def matches(reference: Sequence[Glyph], candidate: Sequence[Glyph]) -> bool:
    """Whether every reference glyph finds its place in the candidate.

    Glyphs are placed in the order given. A place fits where all four neighbours show the same characters and those
    placed before are the very glyphs they were placed on.

    Raises:
        UnscoredError: more glyphs or more assignments than the limits allow.
    """
    if Counter(g.char for g in reference) - Counter(g.char for g in candidate):
        return False
    if len(candidate) > MAX_GLYPHS:
        raise UnscoredError(f"equation of {len(candidate)} glyphs, cap {MAX_GLYPHS}")
    return _Assignment(reference, candidate).complete()


class _Assignment:
    """Depth-first search for an injective map of the reference glyphs into the candidate's."""

    def __init__(self, reference: Sequence[Glyph], candidate: Sequence[Glyph]) -> None:
        self.links, self.beyond = neighbours(reference), neighbours(candidate)
        by_char: dict[str | None, list[tuple[int, tuple[str | None, ...]]]] = defaultdict(list)
        for j, signature in enumerate(_signatures(candidate, self.beyond)):
            by_char[signature[0]].append((j, signature))
        self.domains = [
            [j for j, other in by_char[signature[0]] if _fits(signature, other)]
            for signature in _signatures(reference, self.links)
        ]
        self.to: list[int] = []
        self.taken: set[int] = set()

    def complete(self) -> bool:
        steps = 0
        tries = [iter(self.domains[0])] if self.domains else []
        while len(self.to) < len(self.domains):
            at = next((j for j in tries[-1] if self._allowed(len(self.to), j)), None)
            steps += 1
            if steps > MAX_STEPS:
                raise UnscoredError(f"glyph matching passed {MAX_STEPS} steps")
            if at is None:
                tries.pop()
                if not tries:
                    return False
                self.taken.discard(self.to.pop())
                continue
            self.to.append(at)
            self.taken.add(at)
            tries.append(iter(self.domains[len(self.to)] if len(self.to) < len(self.domains) else ()))
        return True

    def _allowed(self, glyph: int, at: int) -> bool:
        if at in self.taken:
            return False
        for neighbour, beyond in zip(self.links[glyph], self.beyond[at], strict=True):
            if neighbour is not None and neighbour < glyph and self.to[neighbour] != beyond:
                return False
        return True


def _signatures(glyphs: Sequence[Glyph], links: Sequence[Neighbours]) -> list[tuple[str | None, ...]]:
    """Per glyph its character and those of its four neighbours."""
    chars = [g.char for g in glyphs]
    return [(char, *(None if n is None else chars[n] for n in near)) for char, near in zip(chars, links, strict=True)]


def _fits(wanted: tuple[str | None, ...], offered: tuple[str | None, ...]) -> bool:
    return all(a is None or a == b for a, b in zip(wanted, offered, strict=True))
