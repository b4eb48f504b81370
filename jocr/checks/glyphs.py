"""Do two rendered equations show the same picture? Glyphs with boxes, compared by who stands next to whom.

Each glyph of the reference is mapped to an equal glyph of the candidate so that the nearest neighbour in each of four
directions maps to the nearest neighbour. Glyphs the candidate has beyond that are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jocr.errors import UnscoredError

TOLERANCE = 5.0  # pixels two centres may be apart across the direction looked in
MAX_GLYPHS = 1000
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
    """For each glyph the index of the nearest other one above, below, left and right (None: nobody there)."""
    centres = [(g.x + g.width / 2, g.y + g.height / 2) for g in glyphs]
    table: list[Neighbours] = []
    for x, y in centres:
        best: list[tuple[float, int] | None] = [None] * 4
        for j, (other_x, other_y) in enumerate(centres):
            dx, dy = other_x - x, other_y - y
            if abs(dx) <= TOLERANCE and dy:
                _nearer(best, 0 if dy < 0 else 1, abs(dy), j)
            if abs(dy) <= TOLERANCE and dx:
                _nearer(best, 2 if dx < 0 else 3, abs(dx), j)
        up, down, left, right = (None if b is None else b[1] for b in best)
        table.append((up, down, left, right))
    return table


def _nearer(best: list[tuple[float, int] | None], direction: int, distance: float, index: int) -> None:
    known = best[direction]
    if known is None or distance < known[0]:
        best[direction] = (distance, index)


def matches(reference: Sequence[Glyph], candidate: Sequence[Glyph], *, strict: bool = False) -> bool:
    """Whether every reference glyph finds its place in the candidate.

    Glyphs are placed in the order given. A place fits where all four neighbours show the same characters and those
    placed before are the very glyphs they were placed on; ``strict`` asks the latter of all neighbours, not only of the
    earlier ones (the relation is not symmetric, so this is more).

    Raises:
        UnscoredError: more glyphs or more assignments than the limits allow.
    """
    if len(reference) > len(candidate):
        return False
    if len(candidate) > MAX_GLYPHS:
        raise UnscoredError(f"equation of {len(candidate)} glyphs, cap {MAX_GLYPHS}")
    return _Assignment(reference, candidate, strict).complete()


class _Assignment:
    """Depth-first search for an injective map of the reference glyphs into the candidate's."""

    def __init__(self, reference: Sequence[Glyph], candidate: Sequence[Glyph], strict: bool) -> None:
        self.links, self.beyond = neighbours(reference), neighbours(candidate)
        signatures = _signatures(candidate, self.beyond)
        self.domains = [
            [j for j, other in enumerate(signatures) if _fits(signature, other)]
            for signature in _signatures(reference, self.links)
        ]
        self.pointed_at: list[list[tuple[int, int]]] = [[] for _ in reference]  # by which glyph, in which direction
        if strict:
            for i, links in enumerate(self.links):
                for direction, j in enumerate(links):
                    if j is not None and i < j:
                        self.pointed_at[j].append((i, direction))
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
        return all(self.beyond[self.to[i]][direction] == at for i, direction in self.pointed_at[glyph])


def _signatures(glyphs: Sequence[Glyph], links: Sequence[Neighbours]) -> list[tuple[str | None, ...]]:
    """Per glyph its character and those of its four neighbours."""
    chars = [g.char for g in glyphs]
    return [(char, *(None if n is None else chars[n] for n in near)) for char, near in zip(chars, links, strict=True)]


def _fits(wanted: tuple[str | None, ...], offered: tuple[str | None, ...]) -> bool:
    return all(a is None or a == b for a, b in zip(wanted, offered, strict=True))
