"""Examples of one size -> tensors; and an endless, seeded stream of them drawn as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jocr.losses.sft import IGNORE
from jocr.training.examples import Example

SPAN = 2  # tokens; with up to 12 the loss doubled: such a span reads like another place of the page


@dataclass(frozen=True, slots=True)
class Batch:
    """B pages with the same grid; T tiles each, V of their views with named glyphs, R response rows (padded).

    tiles (B, T, 3, L, L); whole (B, 3, G, G); ids (B, R) inputs after the prompt, shifted right by the last prompt
    token; targets (B, R); looks (2, B, R); patch_glyphs (B, V, P, P); cell_glyphs (B, V, C, CELL_GLYPHS).
    """

    tiles: Tensor
    whole: Tensor
    grid: tuple[int, int] | None
    instruction: Tensor  # (B,)
    ids: Tensor
    targets: Tensor
    looks: Tensor
    patch_glyphs: Tensor
    cell_glyphs: Tensor


def mislead(ids: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """``ids`` (R,) with spans of 1 to ``SPAN`` tokens overwritten by others of the same page, about ``share`` of all.

    A reader that only ever sees right text before a token loses its place after its own first mistakes: it copies on
    from what it wrote instead of looking. What it is to write stays right; only what it sees behind it is not.
    """
    out = ids.copy()
    for _ in range(rng.poisson(2 * share * len(ids) / (1 + SPAN))):
        length = int(rng.integers(1, SPAN + 1))
        if length < len(ids):
            to, start = rng.integers(0, len(ids) - length + 1, 2)
            out[to : to + length] = ids[start : start + length]
    return out


def collate(examples: list[Example], pad: int, wrong: float = 0.0, rng: np.random.Generator | None = None) -> Batch:
    """A batch of examples of one size. With ``wrong``, which needs ``rng``, a page's inputs are misled by a share drawn
    from 0 to twice that."""
    longest = max(len(e.ids) for e in examples)
    ids = np.full((len(examples), longest), pad, np.int64)
    targets = np.full((len(examples), longest), IGNORE, np.int64)
    looks = np.full((2, len(examples), longest), IGNORE, np.int64)
    for i, e in enumerate(examples):
        before = e.ids[:-1]
        if wrong:
            assert rng is not None
            before = mislead(before, rng.uniform(0, 2 * wrong), rng)
        ids[i, : len(before)] = before
        targets[i, : len(e.ids)] = e.ids
        looks[:, i, : len(e.ids)] = e.looks
    tiles, whole = (
        torch.from_numpy(np.stack(grey)).float() / 127.5 - 1.0
        for grey in ([e.tiles for e in examples], [e.whole for e in examples])
    )
    return Batch(
        tiles=tiles[:, :, None].expand(-1, -1, 3, -1, -1),
        whole=whole[:, None].expand(-1, 3, -1, -1),
        grid=examples[0].grid,
        instruction=torch.tensor([e.instruction for e in examples]),
        ids=torch.from_numpy(ids),
        targets=torch.from_numpy(targets),
        looks=torch.from_numpy(looks),
        patch_glyphs=torch.from_numpy(np.stack([e.patch_glyphs for e in examples])),
        cell_glyphs=torch.from_numpy(np.stack([e.cell_glyphs for e in examples])),
    )


class Pool:
    """Draws pages of one kind and size ahead, sorts them by length, and deals batches of them ``reuse`` times.

    Args:
        draw: seed -> Example.
        seeds: the endless seeds of this rank.
        size: pages drawn at a time.
        batch: pages per batch.
        reuse: how often a drawn page is dealt before it is dropped.
    """

    def __init__(self, draw: Callable[[int], Example], seeds: Iterator[int], size: int, batch: int, reuse: int = 1):
        self.draw, self.seeds, self.size, self.batch, self.reuse = draw, seeds, size, batch, reuse
        self.pages: list[Example] = []
        self.ready: list[list[Example]] = []
        self.left = 0

    def deal(self, rng: np.random.Generator) -> list[Example]:
        if not self.ready:
            if self.left == 0:
                self.pages = [self.draw(next(self.seeds)) for _ in range(self.size)]
                self.left = self.reuse
            self.left -= 1
            order = sorted(range(self.size), key=lambda i: len(self.pages[i].ids) + rng.uniform(-4, 4))
            ordered = [self.pages[i] for i in order]
            self.ready = [ordered[i : i + self.batch] for i in range(0, self.size - self.batch + 1, self.batch)]
            self.ready = [self.ready[i] for i in rng.permutation(len(self.ready))]
        return self.ready.pop()
