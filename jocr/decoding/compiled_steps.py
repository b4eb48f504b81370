"""Decoding steps on a CPU: one compiled call for a verify, a chain of drafts, or many rounds of both.

Small models are run by one thread, large bf16 ones by as many as torch would use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jocr.decoding import compiled_decoder as decoder
from jocr.decoding.cache import SlotCache
from jocr.decoding.compiled import Cache, Scratch, Weights, pad
from jocr.decoding.compiled_draft import draft, prime
from jocr.decoding.compiled_rounds import run
from jocr.decoding.compiled_weights import Packed, pack_model
from jocr.decoding.depth import MAX_DEPTH, OPEN
from jocr.decoding.kernels import MOST_ROWS
from jocr.decoding.steps import Ran, Rows, Stretch
from jocr.decoding.team import Crew
from jocr.model.layers import rotary_table
from jocr.model.ocr import OcrModel

IN_CACHE = 64 << 20  # bytes of matrices up to which one thread decodes, and other cores are left to vision


class CompiledSteps:
    """Implements ``Steps``. Every row's result is independent of the rows beside it, so speculation is exact.

    Args:
        packed: the model's weights where they are packed already; see ``compiled_weights.pack_model``.
        threads: None for one, and for torch's number of threads where the matrices are bf16 and in no cache.
    """

    guarantee = "exact"
    clock = staticmethod(time.thread_time)

    def __init__(self, model: OcrModel, cache: SlotCache, packed: Packed | None = None,
                 threads: int | None = None) -> None:  # fmt: skip
        if not cache.transposed or cache.dtype != torch.float32:
            raise ValueError("the compiled step needs an fp32 cache with transposed keys")
        self.model, self.cache = model, cache
        self.packed = packed or pack_model(model)
        self.dims = self.packed.dims
        matrices = self.packed.weights.matrices
        shared = model.model.norm.weight.dtype == torch.bfloat16 and matrices.nbytes > IN_CACHE
        self.threads = threads or (torch.get_num_threads() if shared else 1)
        self.crew = Crew(self.threads)
        self.rows = self.chosen = 0
        self._buffers(64, 8)

    def twin(self) -> CompiledSteps:
        """The same over the same cache, with row buffers of its own: for another thread, in other slots."""
        return CompiledSteps(self.model, self.cache, self.packed, self.threads)

    def prefill(self, slot: int, ids: Tensor, visual: Tensor | None) -> int:
        """Fill a slot with a prompt; its first token."""
        n = self._embed(ids, visual, self.model.embed)
        self._call(decoder.decode, np.empty(0, np.int64), n, 1, np.full(n, slot), np.arange(n))
        return int(self._scratch[0].out[0])

    def prime(self, slot: int, ids: Tensor, visual: Tensor | None) -> None:
        """Keys and values of the draft head over a prompt."""
        n = self._embed(ids, visual, self._draft_embed)
        self._call(prime, n, np.full(n, slot), np.arange(n), weights=self.packed.draft)

    def verify(self, pages: Sequence[Rows]) -> list[list[int]]:
        """The verifier's choice after every row."""
        counts = [len(p.tokens) for p in pages]
        n = sum(counts)
        self._ready(n, n)
        tokens = np.array([t for p in pages for t in p.tokens])
        slots = np.array([p.slot for p in pages for _ in p.tokens])
        places = np.array([p.start + i for p in pages for i in range(len(p.tokens))])
        self._call(decoder.decode, tokens, n, n, slots, places)
        chosen = iter(self._scratch[0].out[:n].tolist())
        return [[next(chosen) for _ in range(count)] for count in counts]

    def logits(self, slot: int, position: int) -> Tensor:
        """The verifier's logits after one row that was read."""
        state = self.cache.hidden[slot, position].numpy()
        p = self.packed
        self.crew.run(decoder.logits, lambda i: (state, p.weights, p.offsets, p.dims, self._scratch[i]))
        return torch.from_numpy(self._scratch[0].logits[: self.dims.vocab].copy())

    def draft(self, pages: Sequence[Rows], depths: Sequence[int], gate: float = OPEN) -> list[list[int]]:
        """Refill, then chain the head's own states."""
        counts, count = [len(p.tokens) for p in pages], len(pages)
        self._ready(sum(counts), count)
        tokens = np.array([t for p in pages for t in p.tokens])
        slots, starts = np.array([p.slot for p in pages]), np.array([p.start for p in pages])
        out, made = np.empty((count, MAX_DEPTH), np.int64), np.empty(count, np.int64)
        given = tokens, np.array(counts), slots, starts, np.array(depths), gate, count
        self._call(draft, *given, weights=self.packed.draft,
                   own=lambda i: (out, made) if i == 0 else (np.empty_like(out), np.empty_like(made)))  # fmt: skip
        return [row[:n] for row, n in zip(out.tolist(), made.tolist(), strict=True)]

    def run(self, pages: Sequence[Stretch], most: int, gate: float, eos: int) -> Ran:
        """Many rounds of ``draft`` and ``verify`` in one call; see ``ManyRounds``."""
        count, had = len(pages), [len(p.tokens) for p in pages]
        deepest = max(p.depth for p in pages)
        self._ready(max(sum(had), count * (deepest + 1)), count * (deepest + 1))
        text = np.zeros((count, max(had) + most * (deepest + 1)), np.int64)
        for row, page in zip(text, pages, strict=True):
            row[: len(page.tokens)] = page.tokens
        starts = np.array([p.start for p in pages])
        mine = [text, np.array(had), starts.copy(), *np.zeros((2, count, max(deepest, 1)), np.int64),
                np.zeros(1, np.int64)]  # fmt: skip
        given = [np.array([p.slot for p in pages]), starts, np.array([p.depth for p in pages]),
                 np.array([p.room for p in pages])]  # fmt: skip
        self._call(
            run, most, gate, eos, *given, self.packed.draft, own=lambda i: mine if i == 0 else [a.copy() for a in mine]
        )
        _, held, filled, drafted, accepted, done = mine
        spans = [row[a:b].tolist() for row, a, b in zip(text, had, held.tolist(), strict=True)]
        return Ran(spans, drafted.tolist(), accepted.tolist(), filled.tolist(), int(done[0]))

    def _call(self, function: Any, *given: Any, weights: Weights | None = None, own: Any = lambda i: ()) -> None:
        """A compiled function in every thread, after ``given`` with weights, sizes, cache, scratch and ``own``."""
        p = self.packed
        shared = (*given, weights or p.weights, p.offsets, p.dims, self._cache)
        self.crew.run(function, lambda i: (*shared, self._scratch[i], *own(i)))

    def _embed(self, ids: Tensor, visual: Tensor | None, embed: Callable[[Tensor, Tensor | None], Tensor]) -> int:
        """A prompt's embeddings to the row buffer; its length."""
        n = ids.shape[0]
        self._ready(n, 1)
        with torch.inference_mode():
            self._scratch[0].x[: n * self.dims.hidden] = embed(ids, visual).float().numpy().reshape(-1)
        return n

    def _draft_embed(self, ids: Tensor, visual: Tensor | None) -> Tensor:
        """The prompt as the draft head reads it: visual rows kept."""
        x = self.model.embed(ids, visual)
        if self.model.mtp_embed_tokens is None:
            return x
        text = ids != self.model.cfg.image_token_id
        x = x.clone()
        x[text] = self.model.draft_embed(ids[text]).to(x.dtype)
        return x

    def _ready(self, rows: int, chosen: int) -> None:
        """Room for ``rows`` rows, of which ``chosen`` get logits, and views of the cache as it is."""
        if rows > self.rows or chosen > self.chosen or self.cache.k is not self._keys:
            self._buffers(max(rows, self.rows), max(chosen, self.chosen))

    def _buffers(self, rows: int, chosen: int) -> None:
        d, cache = self.dims, self.cache
        self.rows, self.chosen, self._keys = rows, chosen, cache.k
        cos, sin = rotary_table(cache.capacity, d.head_dim, self.model.cfg.text.rope_theta)
        keys, values, states = (t.view(-1).numpy() for t in (cache.k, cache.v, cache.hidden))
        self._cache = Cache(keys, values, states, cache.slots, cache.capacity, cos.numpy(), sin.numpy())
        inner = d.heads * d.head_dim

        def floats(width: int) -> np.ndarray:
            return np.zeros(rows * width, np.float32)

        shared = {
            "x": floats(d.hidden), "qkv": floats(3 * inner), "y": floats(max(d.hidden, inner)),
            "wide": floats(2 * pad(max(d.dense, d.shared))), "inner": floats(d.chosen * 2 * pad(d.routed)),
            "logits": np.zeros(chosen * pad(d.vocab), np.float32), "best": np.zeros(self.threads * chosen, np.int64),
        }  # fmt: skip
        self._scratch = [
            Scratch(
                **shared, a=floats(d.hidden), pair=floats(2 * d.hidden), gather=floats(d.hidden),
                before=floats(d.hidden), scores=np.zeros(MOST_ROWS * cache.capacity, np.float32),
                router=floats(pad(d.experts)), chosen=np.zeros(rows * d.experts, np.bool_), weight=floats(d.experts),
                out=np.zeros(chosen, np.int64), slots=np.zeros(rows, np.int64), places=np.zeros(rows, np.int64),
            )
            for _ in range(self.threads)
        ]  # fmt: skip
