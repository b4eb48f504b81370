"""The published size with random bf16 weights: prefill, decode against the memory's read bandwidth, costs of a verify.

Random weights accept almost no draft, so what speculation costs is measured here and what it gains is not.
Bandwidth and decoding alternate, so that other work on the machine hits them alike; both are wall time.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from jocr.decoding import packed
from jocr.decoding.compiled_weights import fits, pack_model
from jocr.decoding.load import make_steps
from jocr.decoding.speculative import PageState, book, speculate
from jocr.decoding.steps import Rows, Steps
from jocr.model.config import OcrConfig
from jocr.model.ocr import OcrModel, PageViews

Row = dict[str, Any]
BLOCK = 1 << 24
START = 400  # most positions in the cache before the rows that are measured
GIB = 1 << 30


def measure_published(
    *,
    cfg: OcrConfig | None = None,
    rounds: int = 8,
    buffer_bytes: int = GIB,
    report: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Build, pack, measure. The published size needs about 8 GB; ``cfg`` may name another one."""
    torch.manual_seed(0)
    with torch.inference_mode():
        report("building 3.4 billion random weights")
        model = random_model(cfg or OcrConfig())
        active = active_bytes(model)
        steps = _steps(model)
        steps.prefill(0, torch.arange(8), None)  # compile or load the kernels
        steps.prime(0, torch.arange(8), None)
        steps.draft([Rows(0, 8, [7])], [2])
        rows = [
            _prefill(model, steps, name, grid, report) for name, grid in (("one view", None), ("nine tiles", (3, 3)))
        ]
        report("decoding")
        start = min(START, int(rows[-1]["note"].split()[0]))
        rows += _decode(steps, model.cfg.text.vocab_size, start, active, rounds, buffer_bytes)
        rows.append(_same(steps, start))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    rows.append(row("peak memory", peak / GIB, "GiB", "of the whole process"))
    return rows


def _steps(model: OcrModel) -> Steps:
    """The steps a checkpoint of this size gets; its matrices are handed over."""
    if fits(model):
        return make_steps(model, 1, weights=pack_model(model, hand_over=True, quick=True))
    packed.pack(model)
    return make_steps(model, 1, "torch")


def random_model(cfg: OcrConfig) -> OcrModel:
    """bf16 weights of the published layout, every matrix filled from one block of normal numbers."""
    with torch.device("meta"):
        model = OcrModel(cfg)
    model = model.to(torch.bfloat16).to_empty(device="cpu").eval()
    block = (torch.randn(BLOCK) * 0.02).bfloat16()
    for weight in model.parameters():
        flat = weight.data.view(-1)
        for start in range(0, flat.numel(), BLOCK):
            part = flat[start : start + BLOCK]
            part.copy_(block[: part.numel()])
        if weight.dim() == 1:
            weight.data.fill_(1.0)
    return model


def active_bytes(model: OcrModel) -> int:
    """Bytes of the matrices that one token reads: all but the experts that are not chosen and the draft head."""
    text, total = model.cfg.text, 0
    for name, weight in [*model.model.layers.named_parameters(), ("lm_head", model.lm_head.weight)]:
        share = text.num_experts_per_tok / text.n_routed_experts if ".experts." in name else 1.0
        total += int(weight.numel() * weight.element_size() * share)
    return total


def read_bandwidth(buffer: Tensor) -> float:
    """Bytes a second that the cores read from a buffer larger than the cache: the faster of two plain reductions."""
    speeds = []
    for reduce in (torch.Tensor.sum, torch.Tensor.amax):
        begun = perf_counter()
        reduce(buffer)
        speeds.append(buffer.numel() * buffer.element_size() / (perf_counter() - begun))
    return max(speeds)


def row(what: str, value: float | None, unit: str, note: str = "") -> Row:
    return {"what": what, "value": value, "unit": unit, "note": note}


def _prefill(model: OcrModel, steps: Steps, name: str, grid: tuple[int, int] | None,
             report: Callable[[str], None]) -> Row:  # fmt: skip
    report(f"prefill: {name}")
    tiles = grid[0] * grid[1] if grid else 0
    side = model.cfg.sam.image_size
    local = side * 5 // 8  # 640 of 1024
    views = PageViews(torch.zeros(3, side, side).bfloat16(), torch.zeros(tiles, 3, local, local).bfloat16(), grid)
    begun = perf_counter()
    visual = model.encode_page(views)
    vision = perf_counter() - begun
    ids = torch.cat(
        [torch.full((visual.shape[0],), model.cfg.image_token_id), torch.arange(10, 30) % model.cfg.text.vocab_size]
    )
    steps.cache.reserve(ids.shape[0] + 1)
    steps.prefill(0, ids, visual)
    steps.prime(0, ids, visual)
    return row(
        f"prefill, {name}", perf_counter() - begun, "s/page", f"{ids.shape[0]} tokens; vision {vision:.2f} s of it"
    )


def _decode(steps: Steps, vocab: int, start: int, active: int, rounds: int, buffer_bytes: int) -> list[Row]:
    """Rounds of every depth in turn, bandwidth between them, on the page just prefilled."""
    steps.cache.reserve(start + 6)
    buffer = torch.ones(buffer_bytes // 4)
    times: dict[int, list[float]] = {depth: [] for depth in range(5)}
    speeds, drafting = [], []
    for i in range(rounds + 1):  # the first one warms up
        speed = read_bandwidth(buffer)
        for depth, kept in times.items():
            page = PageState("", 0, start, 99, [int(torch.randint(vocab, (1,)))], start)
            begun = perf_counter()
            if depth:
                steps.draft([Rows(page.slot, page.draft_length, page.tokens)], [depth])
            drafting += [(perf_counter() - begun) / depth] if depth and i else []
            begun = perf_counter()
            speculate(steps, [page], [depth])
            kept += [perf_counter() - begun] if i else []
        speeds += [speed] if i else []
    plain, bandwidth = median(times[0]), median(speeds)
    rows = [
        row(
            "read bandwidth",
            bandwidth / 1e9,
            "GB/s",
            f"{torch.get_num_threads()} threads, {buffer_bytes >> 20} MiB, median of {rounds}",
        ),
        row("weights read per token", active / 1e9, "GB"),
        row("decode bound", bandwidth / active, "tokens/s"),
        row("decode, plain, batch 1", 1 / plain, "tokens/s"),
        row("share of the bound", active / plain / bandwidth, "", "target 0.7"),
        row("draft step", median(drafting) / plain, "plain steps"),
    ]
    note = "draft and verify; random tokens, so neighbours share few experts; acceptance not measurable"
    return rows + [row(f"round at K={k}", median(times[k]) / plain, "plain steps", note) for k in range(1, 5)]


def _same(steps: Steps, start: int, count: int = 24) -> Row:
    """Whether speculation at K = 3 writes the tokens that plain decoding writes."""
    texts = []
    steps.cache.reserve(start + count + 5)
    for depth in (0, 3):
        page = PageState("", 0, start, 99, [7], start)
        while len(page.tokens) < count:
            outcome = speculate(steps, [page], [depth])
            book(page, outcome.ran, 0)
            page.tokens += outcome.spans[0]
        texts.append(page.tokens[:count])
    return row("tokens of K=3 equal to plain", float(texts[0] == texts[1]), "", f"{count} tokens; {steps.guarantee}")
