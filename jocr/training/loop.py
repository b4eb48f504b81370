"""Data-parallel training from scratch on CPU processes: a flat gradient, one all-reduce, rates set by the clock.

The clock drives the schedule because the budget is a time, on a machine whose speed other work changes: every rank
follows rank 0's clock, so that all take the same step at the same rate.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from jocr.model.layers import load_views
from jocr.training.batches import Pool, collate
from jocr.training.optim import Muon, split_parameters
from jocr.training.recipe import NanoRecipe, Phase, Stream


class FlatGradients:
    """All gradients as views of one buffer: zeroed, averaged over ranks and clipped in single operations."""

    def __init__(self, params: list[nn.Parameter]) -> None:
        self.buffer = torch.zeros(sum(p.numel() for p in params))
        offset = 0
        for p in params:
            p.grad = self.buffer[offset : offset + p.numel()].view_as(p)
            offset += p.numel()

    def finish(self, micro_batches: int, clip: float) -> float:
        """Average over micro-batches and ranks, clip to norm ``clip``; returns the norm before clipping."""
        world = dist.get_world_size() if dist.is_initialized() else 1
        if world > 1:
            dist.all_reduce(self.buffer)
        self.buffer /= micro_batches * world
        norm = self.buffer.norm().item()
        if norm > clip:
            self.buffer *= clip / norm
        return norm


PAUSE = 30.0  # seconds; a step that took longer was stopped from outside (SIGSTOP, a sleeping laptop)


class Clock:
    """Which phase it is and how far, by wall time; resumable through ``spent`` seconds; a pause is not counted."""

    def __init__(self, phases: list[Phase], spent: float) -> None:
        self.phases, self.spent, self.last = phases, spent, time.monotonic()

    def tick(self) -> tuple[int, float, float]:
        """(phase index or len(phases) at the end, share of it done, seconds spent), agreed on by all ranks."""
        now = time.monotonic()
        self.spent += min(now - self.last, PAUSE)
        self.last = now
        seconds = torch.tensor([self.spent], dtype=torch.float64)
        if dist.is_initialized() and dist.get_world_size() > 1:
            dist.broadcast(seconds, 0)
        left = self.spent = seconds.item()
        for i, phase in enumerate(self.phases):
            if left < phase.minutes * 60:
                return i, left / (phase.minutes * 60), self.spent
            left -= phase.minutes * 60
        return len(self.phases), 1.0, self.spent


def rate(phase: Phase, done: float) -> float:
    """Multiple of the optimizers' rates at ``done`` in [0, 1] of a phase."""
    ramp = 0.0 if done <= phase.hold else (done - phase.hold) / max(1e-9, 1 - phase.hold)
    return phase.lr_from + (phase.lr_to - phase.lr_from) * ramp


class Trainer:
    """Runs ``forward(batch, phase) -> (loss, metrics)`` over drawn pages.

    Args:
        module: what is trained; its trainable parameters go to Muon and AdamW.
        draw: (stream, seed) -> Example.
        save: called by rank 0 with the folder to write the checkpoint to.
    """

    def __init__(self, recipe: NanoRecipe, module: nn.Module, forward: Callable[..., Any], draw: Callable[..., Any],
                 save: Callable[[Path], None], pad: int, rank: int) -> None:  # fmt: skip
        self.recipe, self.module, self.forward, self.draw, self.save = recipe, module, forward, draw, save
        self.pad, self.rank, self.out = pad, rank, Path(recipe.out)
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
        muon, adam = split_parameters(named)
        self.grads = FlatGradients([p for _, p in [*muon, *adam]])
        self.optimizers: list[tuple[torch.optim.Optimizer, float]] = [
            (Muon(muon, recipe.muon_lr, weight_decay=recipe.weight_decay), recipe.muon_lr),
            (
                torch.optim.AdamW(
                    [p for _, p in adam], recipe.adam_lr, betas=(0.9, 0.95), weight_decay=0.0, fused=True
                ),
                recipe.adam_lr,
            ),
        ]
        self.step, self.pages, self.pools = 0, 0, dict[tuple[Any, ...], Pool]()
        self.clock = Clock(recipe.phases, 0.0)
        self.seen: dict[str, list[float]] = {}

    def seeds(self, start: int) -> Iterator[int]:
        return itertools.count(start * 2 + self.rank, self.recipe.ranks * 7)

    def pool(self, stream: Stream) -> Pool:
        key = (stream.kind, stream.width, stream.height, stream.batch)
        if key not in self.pools:
            size = max(stream.batch, min(self.recipe.pool, stream.batch * 8) // stream.batch * stream.batch)
            start = self.recipe.seed * 10**9 + 10**7 * (self.step + len(self.pools))
            self.pools[key] = Pool(lambda s: self.draw(stream, s), self.seeds(start), size, stream.batch,
                                   self.recipe.reuse)  # fmt: skip
        return self.pools[key]

    def run(self) -> None:
        saved = self.clock.spent
        while True:
            index, done, spent = self.clock.tick()
            finished = index == len(self.recipe.phases)
            if finished or spent - saved > self.recipe.save_minutes * 60:
                self.checkpoint()
                saved = spent
            if finished:
                return
            self.train_step(self.recipe.phases[index], done)
            if self.step % self.recipe.log_every == 0:
                self.log(self.recipe.phases[index].name, spent)

    def train_step(self, phase: Phase, done: float) -> None:
        multiple = rate(phase, done)
        for optimizer, lr in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = lr * multiple
        shared = np.random.default_rng([self.recipe.seed, self.step])  # the same choice of streams on every rank
        shares = np.array([s.share for s in phase.streams])
        chosen = shared.choice(len(shares), size=self.recipe.micro_batches, p=shares / shares.sum())
        self.grads.buffer.zero_()
        for stream in (phase.streams[i] for i in chosen):
            own = np.random.default_rng([self.recipe.seed, self.step, self.rank])
            examples = self.pool(stream).deal(own)
            with torch.autocast("cpu", torch.bfloat16, enabled=self.recipe.bf16):
                loss, metrics = self.forward(collate(examples, self.pad, phase.mislead, own), phase)
            loss.backward()
            self.pages += len(examples) * self.recipe.ranks
            for name, value in metrics.items():
                self.seen.setdefault(f"{stream.kind}{stream.width}/{name}", []).append(value)
        self.seen.setdefault("norm", []).append(self.grads.finish(len(chosen), self.recipe.clip))
        for optimizer, _ in self.optimizers:
            optimizer.step()
        self.step += 1

    def log(self, phase: str, spent: float) -> None:
        if self.rank == 0:
            means = {k: round(float(np.mean(v)), 4) for k, v in sorted(self.seen.items())}
            row = {"phase": phase, "step": self.step, "pages": self.pages, "seconds": round(spent, 1), **means}
            with (self.out / "curve.jsonl").open("a") as f:
                f.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)
        self.seen = {}

    def checkpoint(self) -> None:
        if self.rank == 0:
            state = {"module": self.module.state_dict(), "step": self.step, "pages": self.pages,
                     "spent": self.clock.spent, "optimizers": [o.state_dict() for o, _ in self.optimizers]}  # fmt: skip
            torch.save(state, self.out / "state.tmp")
            os.replace(self.out / "state.tmp", self.out / "state.pt")
            self.save(self.out)
        if dist.is_initialized() and dist.get_world_size() > 1:
            dist.barrier()

    def resume(self, with_clock: bool = True) -> bool:
        """Take up ``state.pt`` if there is one."""
        path = self.out / "state.pt"
        if not path.exists():
            return False
        state = torch.load(path, weights_only=True)
        load_views(self.module, state["module"])
        self.step, self.pages = state["step"], state["pages"]
        for (optimizer, _), saved in zip(self.optimizers, state["optimizers"], strict=True):
            if [len(g["params"]) for g in saved["param_groups"]] == [len(g["params"]) for g in optimizer.param_groups]:
                optimizer.load_state_dict(saved)
            else:
                print("parameters are split among the optimizers in another way now: momentum starts anew", flush=True)
        if with_clock:
            self.clock = Clock(self.recipe.phases, state["spent"])
        return True
