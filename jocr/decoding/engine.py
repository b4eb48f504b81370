"""The decoder over this project's own model code: pages in, transcripts out."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from jocr.decoding.ahead import Ahead, Prefiller, Prepare, one_thread
from jocr.decoding.calibrate import calibrate
from jocr.decoding.compiled_steps import CompiledSteps
from jocr.decoding.depth import AutoDepth, DepthPolicy
from jocr.decoding.protocol import EngineInfo
from jocr.decoding.resample import bicubic
from jocr.decoding.sampling import sampler_of
from jocr.decoding.scheduler import Finished, Job, Scheduler
from jocr.decoding.stats import Stats
from jocr.decoding.steps import Steps
from jocr.decoding.stopping import Guard, Stopper
from jocr.model.config import OcrConfig
from jocr.model.ocr import PageViews
from jocr.model.prompts import prompt_ids
from jocr.model.tokenizer import Tokenizer
from jocr.pages.tiles import ProcessorConfig, Views, page_views
from jocr.records import PageInput, Transcript

Encode = Callable[[PageViews], Tensor]
"""One page's views -> its visual tokens in prompt order, (n, H)."""


@dataclass(frozen=True)
class Limits:
    """What ends a page beside its end token. ``None``: the checkpoint's positions; no time limit."""

    max_tokens: int | None = None
    page_seconds: float | None = None  # wall time from admission (image decoding) to the end


class TorchDecoder:
    """Implements ``Decoder``.

    Args:
        encode: the vision part of the model.
        drafting: whether the draft's cache is kept (False for plain decoding).
        make_guard: a loop guard for each page, or None for none.
        encoder: the thread that makes the next page ready while others decode; None: the caller's, between two rounds.
    """

    def __init__(self, *, cfg: OcrConfig, encode: Encode, steps: Steps, policy: DepthPolicy, drafting: bool,
                 tokenizer: Tokenizer, processor: ProcessorConfig, info: EngineInfo, limits: Limits,
                 make_guard: Callable[[], Guard] | None = None,
                 encoder: ThreadPoolExecutor | None = None) -> None:  # fmt: skip
        self.cfg, self.encode, self.steps, self.policy, self.drafting = cfg, encode, steps, policy, drafting
        self.tokenizer, self.processor, self.info, self.limits = tokenizer, processor, info, limits
        self.make_guard, self.encoder = make_guard, encoder
        self.stats = Stats()
        self._prefiller: Prefiller | None = None
        self._books = Lock()

    def decode(self, pages: Iterable[PageInput]) -> Iterator[Transcript]:
        """One transcript for each page, in order of completion.

        Where pages are prepared on a thread of their own, tensor operations of this one take one thread until the end:
        a second would wait for work on the core that the other needs.
        """
        with nullcontext() if self.encoder is None else one_thread():
            yield from self._decode(pages)

    def _decode(self, pages: Iterable[PageInput]) -> Iterator[Transcript]:
        self.warm_up()
        scheduler = Scheduler(self.steps, self.policy, self.drafting, self.stats)
        failed: list[Transcript] = []
        admitted: dict[str, list[float]] = {}
        prepare = partial(self._job, failed, admitted)
        ahead = self._ahead(scheduler, iter(pages), prepare)
        try:
            for finished in scheduler.run(filter(None, map(prepare, pages)) if ahead is None else ahead):
                yield from _drain(failed)
                yield self._transcript(finished, admitted[finished.job.page_id].pop(0))
        finally:
            if ahead is not None:
                ahead.close(self.steps.cache)
        yield from _drain(failed)

    def _ahead(self, scheduler: Scheduler, pages: Iterator[PageInput], prepare: Prepare) -> Ahead | None:
        if self.encoder is None:
            return None
        if self._prefiller is None and isinstance(self.steps, CompiledSteps):
            self._prefiller = Prefiller(self.steps)
        fill = partial(self._prefiller.fill, lambda: scheduler.drafting_now) if self._prefiller else None
        return Ahead(pages, prepare, self.encoder, fill, getattr(self.encode, "help", None))

    def warm_up(self) -> None:
        """Measure round costs where depth is chosen live and none are known yet. Done by the first ``decode``."""
        if isinstance(self.policy, AutoDepth) and not self.policy.costs.known:
            most = self.steps.cache.pages
            counts = [n for n in (1, 2, 4, 8, 16, 32) if n < most]
            calibrate(self.steps, self.policy.costs, self.cfg.text.vocab_size, [*counts, most])

    def close(self) -> None:
        """End the encoder's thread; the decoder can still be used without."""
        if self.encoder is not None:
            self.encoder.shutdown()
            self.encoder = None

    def _job(self, failed: list[Transcript], admitted: dict[str, list[float]], page: PageInput) -> Job | None:
        """A page ready to decode; one that cannot be made ready goes to ``failed``."""
        begun = perf_counter()
        try:
            job = self.prepare(page)
        except Exception as error:  # a page's failure is this page's result
            failed.append(_failure(page.page_id, error, perf_counter() - begun))
            return None
        with self._books:  # two threads prepare pages
            self.stats.encode_seconds += perf_counter() - begun
            admitted.setdefault(page.page_id, []).append(begun)
        return job

    @torch.inference_mode()
    def prepare(self, page: PageInput) -> Job:
        """PNG bytes -> views -> visual tokens and prompt.

        Raises:
            ValueError: the image cannot be decoded, the prompt leaves no room for text, or the temperature is none.
        """
        begun, sampler = perf_counter(), sampler_of(page)
        views = page_views(_open(page.png), self.processor, bicubic)
        visual = self.encode(_to_model(views))
        ids = prompt_ids(self.tokenizer, page.instruction, visual.shape[0])
        room = self.cfg.text.max_position_embeddings - len(ids)
        if room <= 0:
            raise ValueError(f"the prompt takes {len(ids)} of {self.cfg.text.max_position_embeddings} positions")
        limit = min(room, page.max_tokens, self.limits.max_tokens or room)
        guard = self.make_guard() if self.make_guard else None
        stopper = Stopper(self.cfg.text.eos_token_id, limit, guard, self.limits.page_seconds)
        stopper.begun = begun
        return Job(page.page_id, torch.tensor(ids), visual, limit, stopper, sampler)

    def _transcript(self, end: Finished, begun: float) -> Transcript:
        seconds = perf_counter() - begun
        if end.error is not None:
            return _failure(end.job.page_id, end.error, seconds)
        page, stopper = end.state, end.job.stopper
        counts: dict[str, Any] = {}
        if page is not None:
            counts = {"rounds": page.rounds, "drafted": tuple(page.drafted), "accepted": tuple(page.accepted)}
        return Transcript(
            end.job.page_id, self.tokenizer.decode(end.tokens), tuple(end.tokens), stopper.stop or "error",
            end.job.ids.shape[0], seconds, detail=stopper.detail, **counts,
        )  # fmt: skip


def _open(png: bytes) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(png))
        image.load()
        return image
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise ValueError(f"image_error: {error}") from error


def _to_model(views: Views) -> PageViews:
    def tensor(pixels: np.ndarray) -> Tensor:
        """``pages.tiles.normalise``, bit for bit; the planes stay interleaved in memory, as convolutions like them, or
        one where they are one. On one thread: others would wait for work where the next page is prepared beside."""
        planes = pixels.shape[-1] if pixels.strides[-1] else 1
        scaled = pixels[..., :planes].astype(np.float32)
        scaled /= np.float32(127.5)
        scaled -= np.float32(1.0)
        return torch.from_numpy(scaled).expand(pixels.shape).movedim(-1, -3)

    return PageViews(tensor(views.global_view), tensor(views.tiles), views.grid)


def _failure(page_id: str, error: Exception, seconds: float) -> Transcript:
    text = str(error)
    detail = text if text.startswith("image_error") else f"engine_error: {type(error).__name__}: {text}"
    return Transcript(page_id, "", (), "error", 0, seconds, detail=detail)


def _drain(failed: list[Transcript]) -> Iterator[Transcript]:
    while failed:
        yield failed.pop(0)
