"""Decoding steps with the model's own modules: any device, any dtype, any size."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from jocr.decoding.cache import SlotCache
from jocr.decoding.depth import OPEN
from jocr.decoding.steps import Rows
from jocr.model.ocr import OcrModel


class TorchSteps:
    """Implements ``Steps``. Rows of all pages share the linear layers; attention is taken page by page."""

    guarantee = "up to near-ties"  # matrix products of 1 and of 4 rows may differ in their last bits

    def __init__(self, model: OcrModel, cache: SlotCache) -> None:
        self.model, self.cache = model, cache
        self.device = model.model.norm.weight.device
        self.clock = time.thread_time if self.device.type == "cpu" else time.perf_counter
        self.draft_layer = model.cfg.text.num_hidden_layers

    @torch.inference_mode()
    def prefill(self, slot: int, ids: Tensor, visual: Tensor | None) -> int:
        """Fill a slot with a prompt; its first token."""
        pages = [Rows(slot, 0, range(ids.shape[0]))]
        ids = ids.to(self.device)
        x = self.model.embed(ids, visual)[None]
        return self._choose(self._hidden(x, pages)[:, -1:])[0]

    @torch.inference_mode()
    def prime(self, slot: int, ids: Tensor, visual: Tensor | None) -> None:
        """Keys and values of the draft head over a prompt."""
        n = ids.shape[0]
        ids = ids.to(self.device)
        before = F.pad(
            self.cache.hidden[slot, : n - 1], (0, 0, 1, 0)
        )  # slot j pairs the token at j with the state at j - 1
        self._draft(
            self._prompt_for_draft(self.model.embed(ids, visual)[None], ids), before[None], [Rows(slot, 0, range(n))]
        )

    @torch.inference_mode()
    def verify(self, pages: Sequence[Rows]) -> list[list[int]]:
        """The verifier's choice after every row."""
        x = self._embed([t for page in pages for t in page.tokens])
        choices = iter(self._choose(self._hidden(x, pages)))
        return [[next(choices) for _ in page.tokens] for page in pages]

    @torch.inference_mode()
    def logits(self, slot: int, position: int) -> Tensor:
        """The verifier's logits after one row that was read."""
        return self.model.lm_head(self.cache.hidden[slot, position][None])[0]

    @torch.inference_mode()
    def draft(self, pages: Sequence[Rows], depths: Sequence[int], gate: float = OPEN) -> list[list[int]]:
        """Refill, then chain the head's own states."""
        before = torch.cat([self.cache.hidden[p.slot, p.start - 1 : p.start - 1 + len(p.tokens)] for p in pages])
        state = self._draft(self._draft_embed([t for p in pages for t in p.tokens]), before[None], pages)
        ends = torch.tensor([len(p.tokens) for p in pages], device=self.device).cumsum(0) - 1
        state = state[:, ends]
        tokens, sure = self._propose(state, gate)
        drafts, chances = [[t] for t in tokens], list(sure)
        places = [Rows(p.slot, p.start + len(p.tokens), [t]) for p, t in zip(pages, tokens, strict=True)]
        going = list(range(len(pages)))
        for step in range(1, max(depths)):
            still = [i for i, page in enumerate(going) if depths[page] > step and chances[page] > gate]
            if not still:
                break
            going = [going[i] for i in still]
            places = [places[i] for i in still]
            state = self._draft(self._draft_embed([p.tokens[0] for p in places]), state[:, still], places)
            tokens, sure = self._propose(state, gate)
            for page, token, chance in zip(going, tokens, sure, strict=True):
                drafts[page].append(token)
                chances[page] *= chance
            places = [Rows(p.slot, p.start + 1, [t]) for p, t in zip(places, tokens, strict=True)]
        return drafts

    def _prompt_for_draft(self, x: Tensor, ids: Tensor) -> Tensor:
        """The prompt as the draft head reads it: visual rows kept, nothing at position 0."""
        x = x.clone()
        if self.model.mtp_embed_tokens is not None:
            text = (ids != self.model.cfg.image_token_id).nonzero()[:, 0]
            x[0, text] = self.model.draft_embed(ids[text])
        x[:, 0] = 0
        return x

    def _embed(self, tokens: list[int]) -> Tensor:
        return self.model.embed(torch.tensor(tokens, device=self.device))[None]

    def _draft_embed(self, tokens: list[int]) -> Tensor:
        return self.model.draft_embed(torch.tensor(tokens, device=self.device))[None]

    def _choose(self, hidden: Tensor) -> list[int]:
        return self.model.lm_head(hidden)[0].argmax(dim=-1).tolist()

    def _propose(self, state: Tensor, gate: float) -> tuple[list[int], list[float]]:
        """Every row's proposal and, where a gate asks, its probability."""
        logits = self.model.draft_logits(state)[0]
        tokens = logits.argmax(dim=-1)
        if gate <= OPEN:
            return tokens.tolist(), [1.0] * len(tokens)
        best = logits.gather(-1, tokens[:, None])[:, 0].float()
        return tokens.tolist(), (best - logits.float().logsumexp(-1)).exp().tolist()

    def _hidden(self, x: Tensor, pages: Sequence[Rows]) -> Tensor:
        positions, longest = self._positions(pages)
        attend = _Attend(self.cache, pages)
        hidden = self.model.hidden(x, positions, longest, attend)
        for page, rows in zip(pages, hidden[0].split([len(p.tokens) for p in pages]), strict=True):
            self.cache.hidden[page.slot, page.start : page.start + len(page.tokens)] = rows
        return hidden

    def _draft(self, x: Tensor, before: Tensor, pages: Sequence[Rows]) -> Tensor:
        positions, longest = self._positions(pages)
        return self.model.draft(x, before, positions, longest, _Attend(self.cache, pages, self.draft_layer))

    def _positions(self, pages: Sequence[Rows]) -> tuple[Tensor, int]:
        places = [i for p in pages for i in range(p.start, p.start + len(p.tokens))]
        return torch.tensor([places], device=self.device), max(places) + 1


class _Attend:
    """Writes the rows' keys and values into the cache and attends page by page."""

    def __init__(self, cache: SlotCache, pages: Sequence[Rows], first_layer: int = 0) -> None:
        self.cache, self.pages, self.first = cache, pages, first_layer
        self.counts = [len(p.tokens) for p in pages]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q, k, v (1, N, heads, head_dim), the pages' rows one after another."""
        keys, values = self.cache.k[layer + self.first], self.cache.v[layer + self.first]
        parts = (t[0].transpose(0, 1).split(self.counts, dim=1) for t in (q, k, v))
        outs = []
        for page, qs, ks, vs in zip(self.pages, *parts, strict=True):
            n = qs.shape[1]
            end = page.start + n
            keys[page.slot, :, page.start : end] = ks
            values[page.slot, :, page.start : end] = vs
            mask = None if n == 1 or page.start == 0 else lower_right(n, end, qs.device)
            out = F.scaled_dot_product_attention(
                qs[None], keys[page.slot, None, :, :end], values[page.slot, None, :, :end], mask,
                is_causal=page.start == 0 and n > 1,
            )  # fmt: skip
            outs.append(out[0].transpose(0, 1))
        return torch.cat(outs)[None]


def lower_right(rows: int, seen: int, device: torch.device) -> Tensor:
    """Causal mask of the last ``rows`` of ``seen`` positions, (rows, seen), True where a row may look."""
    return torch.ones(rows, seen, dtype=torch.bool, device=device).tril(seen - rows)
