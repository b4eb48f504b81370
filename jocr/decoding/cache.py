"""A preallocated, slotted cache: keys and values of all layers and the draft block, and the verifier's states.

One slot holds one page. Rows past a page's committed length may hold rejected tokens; they are overwritten before
anything attends to them, because every row is written before it is read and attention ends at the row itself.
"""

from __future__ import annotations

from threading import Lock

import torch
from torch import Tensor

from jocr.model.config import TextConfig

GRAIN = 256  # positions; capacity grows in multiples of this
PANEL = 32  # positions: the columns of the compiled kernel's panels


class SlotCache:
    """Storage for ``slots`` pages of up to ``capacity`` positions.

    Attributes:
        pages: how many are decoded at a time; ``slots`` are more after ``add_spare``.
        lock: held while the storage grows. Another thread that writes to a slot of its own holds it too.
        k, v: (layers + 1, slots, heads, capacity, head_dim); the last layer is the draft block's. Where ``transposed``,
            keys stand in panels of PANEL positions: (layers + 1, slots, heads, capacity / PANEL, head_dim, PANEL). A
            page reads them from one end to the other, and writes a key into neighbouring lines.
        hidden: (slots, capacity, H), the verifier's post-norm state of every position.
    """

    def __init__(self, cfg: TextConfig, slots: int, capacity: int, dtype: torch.dtype, device: torch.device,
                 transposed: bool = False) -> None:  # fmt: skip
        self.cfg, self.slots, self.dtype, self.device, self.transposed = cfg, slots, dtype, device, transposed
        self.pages, self.lock = slots, Lock()
        self.free = list(range(slots - 1, -1, -1))
        self._allocate(-(-capacity // GRAIN) * GRAIN)

    def _allocate(self, capacity: int) -> None:
        cfg = self.cfg
        shape = (cfg.num_hidden_layers + 1, self.slots, cfg.num_attention_heads)
        self.capacity = capacity
        lines = (capacity // PANEL, cfg.head_dim, PANEL) if self.transposed else (capacity, cfg.head_dim)
        self.k = self._empty(*shape, *lines)
        self.v = self._empty(*shape, capacity, cfg.head_dim)
        self.hidden = self._empty(self.slots, capacity, cfg.hidden_size)

    def _empty(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=self.dtype, device=self.device)

    def reserve(self, length: int) -> None:
        """Make room for ``length`` positions in every slot; what is stored stays."""
        if length <= self.capacity:
            return
        with self.lock:
            k, v, hidden, old = self.k, self.v, self.hidden, self.capacity
            self._allocate(max(-(-length // GRAIN) * GRAIN, min(2 * old, self.cfg.max_position_embeddings)))
            self.k[:, :, :, : k.shape[3]], self.v[:, :, :, :old], self.hidden[:, :old] = k, v, hidden

    def clear(self, length: int) -> None:
        """Zeros in at least the first ``length`` positions of every slot."""
        self.k[:, :, :, : -(-length // PANEL) if self.transposed else length] = 0
        self.v[:, :, :, :length] = 0
        self.hidden[:, :length] = 0

    def add_spare(self, count: int) -> None:
        """More slots, for pages that are made ready while ``pages`` others run. What is stored is lost."""
        self.free[:0] = range(self.slots + count - 1, self.slots - 1, -1)
        self.slots += count
        self._allocate(self.capacity)

    def lease(self) -> int:
        """Take a free slot.

        Raises:
            IndexError: every slot is taken.
        """
        return self.free.pop()

    def release(self, slot: int) -> None:
        self.free.append(slot)
