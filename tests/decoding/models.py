"""Tiny random models, from near-deterministic (the draft is nearly always right) to noisy (nearly never)."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from PIL import Image

from jocr.decoding.depth import DepthPolicy, FixedDepth
from jocr.decoding.load import Backend, make_steps
from jocr.decoding.scheduler import Finished, Job, Scheduler
from jocr.decoding.stats import Stats
from jocr.decoding.steps import Steps
from jocr.decoding.stopping import Guard, Stopper
from jocr.model.config import ClipConfig, OcrConfig, SamConfig
from jocr.model.ocr import OcrModel
from jocr.model.tokenizer import Tokenizer, build_byte_tokenizer
from tests.model.tiny_model import TEXT as BASE

EOS = 1
TEXT = replace(BASE, vocab_size=97, moe_intermediate_size=40, n_routed_experts=5)
VISION = OcrConfig(
    replace(TEXT, vocab_size=262),
    SamConfig(width=16, layers=1, heads=2, image_size=64, window_size=2, global_attn_indexes=(0,), neck_channels=16,
              downsample_channels=(16, 32)),
    ClipConfig(width=32, layers=1, heads=2, image_size=16, patch_size=4), image_token_id=3,
)  # fmt: skip


def tiny_model(seed: int, noise: float, cfg: OcrConfig | None = None) -> OcrModel:
    """Each token wants a fixed successor, which the draft head knows too; ``noise`` is how much all else interferes."""
    cfg = cfg or replace(VISION, text=TEXT)  # towers of the published size would take seconds to make
    torch.manual_seed(seed)
    model = OcrModel(cfg).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1 and ("layers" in name or "mtp" in name):
                weight.normal_(std=noise / weight.shape[-1] ** 0.5)
        embed = model.model.embed_tokens.weight
        embed.normal_()
        model.lm_head.weight.copy_(embed[torch.randperm(embed.shape[0])] * 0.2)
        model.lm_head.weight[:6] = 0  # no control tokens: pages run to their limits
        head = model.mtp_module.heads[0]
        head.eh_proj.weight[:, : embed.shape[1]] += torch.eye(embed.shape[1])
    return model


def prompts(seed: int, count: int, vocab: int = 97) -> list[torch.Tensor]:
    """Prompts of 2 to 40 random tokens."""
    rng = np.random.default_rng(seed)
    return [torch.from_numpy(rng.integers(6, vocab, rng.integers(2, 41))) for _ in range(count)]


def prefilled(steps: Steps, slot: int, prompt: torch.Tensor) -> int:
    """Fill both caches over a prompt without image; its first token."""
    first = steps.prefill(slot, prompt, None)
    steps.prime(slot, prompt, None)
    return first


def jobs(ids: Sequence[torch.Tensor], limit: int, guard: type[Guard] | None = None) -> Iterator[Job]:
    for i, prompt in enumerate(ids):
        yield Job(str(i), prompt, None, limit, Stopper(EOS, limit, guard() if guard else None))


def run(
    model: OcrModel,
    ids: Sequence[torch.Tensor],
    limit: int,
    policy: DepthPolicy | int,
    batch: int,
    backend: Backend = "auto",
    steps: Steps | None = None,
) -> dict[str, Finished]:
    """Decode prompts without images; results by page id."""
    steps = steps or make_steps(model, batch, backend)
    policy = FixedDepth(policy) if isinstance(policy, int) else policy
    scheduler = Scheduler(steps, policy, not isinstance(policy, FixedDepth) or policy.depth > 0, Stats())
    ended = list(scheduler.run(jobs(ids, limit)))
    assert sorted(steps.cache.free) == list(range(steps.cache.slots))
    return {f.job.page_id: f for f in ended}


def byte_tokenizer() -> Tokenizer:
    return Tokenizer(build_byte_tokenizer([], []))


def png(seed: int, width: int = 64, height: int = 64) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png")
    return out.getvalue()


def acceptance(ended: dict[str, Finished]) -> float:
    pages = [f.state for f in ended.values() if f.state is not None]
    accepted = sum(itertools.chain.from_iterable(p.accepted for p in pages))
    return accepted / max(1, sum(itertools.chain.from_iterable(p.drafted for p in pages)))
