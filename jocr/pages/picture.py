"""What a reader inside the rendering process hands back for one page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np


@dataclass(slots=True)
class Picture:
    """One page as pixels, upright: uint8, (H, W) or (H, W, 3); the other fields are those of ``PageImage``."""

    pixels: np.ndarray
    source_width: float
    source_height: float
    dpi: float | None
    rotation: int
    renderer: str
    notes: list[str] = field(default_factory=list)
    damage: str = ""  # what stopped the decoder, where only a part of the image could be decoded


class Reader(Protocol):
    """An open document. Errors are ``DocumentError`` (whole file) and ``PageError`` (one page)."""

    pages: int

    def draw(self, index: int, long_side: int) -> Picture: ...

    def unseen(self, index: int) -> list[str]:
        """Notes on what a page that looks blank holds all the same."""
        ...

    def close(self) -> None: ...
