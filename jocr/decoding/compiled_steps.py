"""Decoding steps for small fp32 models on a CPU: one compiled call for a verify, one for a whole chain of drafts."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from jocr.decoding.cache import SlotCache
from jocr.decoding.compiled import Cache, Scratch, choose, decode_rows, pad, verify
from jocr.decoding.compiled_draft import draft, prime
from jocr.decoding.compiled_weights import pack_model
from jocr.decoding.depth import MAX_DEPTH, OPEN
from jocr.decoding.kernels import MOST_ROWS
from jocr.decoding.steps import Rows
from jocr.model.layers import rotary_table
from jocr.model.ocr import OcrModel


class CompiledSteps:
    """Implements ``Steps``. Every row's result is independent of the rows beside it, so speculation is exact."""

    guarantee = "exact"
    clock = staticmethod(time.thread_time)

    def __init__(self, model: OcrModel, cache: SlotCache) -> None:
        if not cache.transposed:
            raise ValueError("the compiled step needs a cache with transposed keys")
        self.model, self.cache = model, cache
        self.weights, self.offsets, self.dims = pack_model(model)
        self.rows = self.capacity = 0
        self._buffers(64)

    def prefill(self, slot: int, ids: Tensor, visual: Tensor | None, drafting: bool) -> int:
        """Fill a slot with a prompt; its first token."""
        n, width = ids.shape[0], self.dims.hidden
        c, s = self._ready(n)
        slots, places = np.full(n, slot), np.arange(n)
        with torch.inference_mode():
            x = self.model.embed(ids, visual).float().numpy().reshape(-1)
        s.x[: n * width] = x
        decode_rows(n, slots, places, self.weights, self.offsets, self.dims, c, s)
        first = np.empty(1, np.int64)
        last = s.a[(n - 1) * width : n * width].copy()
        choose(last, 1, self.weights, self.offsets.head, self.dims, s, first)
        if drafting:
            s.x[: n * width] = self._prompt_for_draft(x, ids)
            prime(n, slots, places, self.weights, self.offsets, self.dims, c, s)
        return int(first[0])

    def verify(self, pages: Sequence[Rows]) -> list[list[int]]:
        """The verifier's choice after every row."""
        counts = [len(p.tokens) for p in pages]
        n = sum(counts)
        c, s = self._ready(n)
        tokens = np.array([t for p in pages for t in p.tokens])
        slots = np.array([p.slot for p in pages for _ in p.tokens])
        places = np.array([p.start + i for p in pages for i in range(len(p.tokens))])
        out = np.empty(n, np.int64)
        verify(tokens, n, slots, places, self.weights, self.offsets, self.dims, c, s, out)
        chosen = iter(out.tolist())
        return [[next(chosen) for _ in range(count)] for count in counts]

    @torch.inference_mode()
    def logits(self, slot: int, position: int) -> Tensor:
        """The verifier's logits after one row that was read."""
        return self.model.lm_head(self.cache.hidden[slot, position][None])[0]

    def draft(self, pages: Sequence[Rows], depths: Sequence[int], gate: float = OPEN) -> list[list[int]]:
        """Refill, then chain the head's own states."""
        counts = [len(p.tokens) for p in pages]
        c, s = self._ready(sum(counts))
        tokens = np.array([t for p in pages for t in p.tokens])
        slots, starts = np.array([p.slot for p in pages]), np.array([p.start for p in pages])
        out, made = np.empty((len(pages), MAX_DEPTH), np.int64), np.empty(len(pages), np.int64)
        draft(
            tokens, np.array(counts), slots, starts, np.array(depths), gate, len(pages),
            self.weights, self.offsets, self.dims, c, s, out, made,
        )  # fmt: skip
        return [row[:n] for row, n in zip(out.tolist(), made.tolist(), strict=True)]

    def _prompt_for_draft(self, x: np.ndarray, ids: Tensor) -> np.ndarray:
        if self.model.mtp_embed_tokens is None:
            return x
        rows = x.copy().reshape(ids.shape[0], -1)
        text = (ids != self.model.cfg.image_token_id).nonzero()[:, 0]
        rows[text.numpy()] = self.model.draft_embed(ids[text]).detach().numpy()
        return rows.reshape(-1)

    def _ready(self, rows: int) -> tuple[Cache, Scratch]:
        """Views of the cache and buffers for ``rows`` rows."""
        if rows > self.rows or self.cache.capacity != self.capacity:
            self._buffers(max(rows, self.rows))
        return self._cache, self._scratch

    def _buffers(self, rows: int) -> None:
        d, cache = self.dims, self.cache
        self.rows, self.capacity = rows, cache.capacity
        cos, sin = rotary_table(cache.capacity, d.head_dim, self.model.cfg.text.rope_theta)
        keys, values, states = (t.view(-1).numpy() for t in (cache.k.transpose(-1, -2), cache.v, cache.hidden))
        self._cache = Cache(keys, values, states, cache.slots, cache.capacity, cos.numpy(), sin.numpy())
        inner = d.heads * d.head_dim
        mlps = [2 * pad(w) + pad(d.experts) for w in (d.dense, d.shared, d.routed)]
        wide = max(pad(3 * inner), 2 * d.hidden, pad(d.vocab), *mlps)

        def floats(width: int) -> np.ndarray:
            return np.zeros(rows * width, np.float32)

        self._scratch = Scratch(
            x=floats(d.hidden), a=floats(d.hidden), y=floats(max(d.hidden, inner)), wide=floats(wide),
            gather=floats(d.hidden), before=floats(d.hidden), scores=np.zeros(MOST_ROWS * cache.capacity, np.float32),
            chosen=np.zeros(rows * d.experts, np.bool_), weight=floats(d.experts),
            slots=np.zeros(rows, np.int64), places=np.zeros(rows, np.int64),
        )  # fmt: skip
