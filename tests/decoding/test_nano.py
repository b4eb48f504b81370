"""The shipped checkpoint: the same tokens at every depth and batch size, on held-out pages of every kind."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import pytest
import torch
from torch import Tensor

from jocr.decoding import bf16
from jocr.decoding.greedy import greedy
from jocr.decoding.load import Parts, load_parts, pick_dtype
from jocr.decoding.stats import tau
from jocr.decoding.stopping import Stopper
from jocr.model.ocr import PageViews
from jocr.records import PageInput, Transcript


@pytest.fixture(scope="module")
def nano() -> Parts:
    return load_parts("nano", device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def narrow() -> Parts:
    """As users have it where the CPU multiplies bf16."""
    return load_parts("nano", device="cpu", dtype="bfloat16")


def held_out(count: int) -> list[PageInput]:
    """``count`` pages of each kind."""
    reading = pytest.importorskip("jocr.evaluation.reading")
    pages = [page for which in reading.SETS for page in reading.pages_of(which, count, 960_000_000)]
    return list(reading.inputs_of(pages, max_tokens=600))


SEEN: dict[bytes, Tensor] = {}


def transcripts(nano: Parts, pages: Sequence[PageInput], depth: int | str, batch: int) -> dict[str, Transcript]:
    """Depth and batch size do not reach the towers, so a page is looked at once for all of them."""
    decoder = nano.decoder(depth=depth, batch=batch)
    encode = decoder.encode

    def look(views: PageViews) -> Tensor:
        pixels = views.global_view.numpy().tobytes() + views.tiles.numpy().tobytes()
        key = hashlib.sha256(pixels).digest() + decoder.info.dtype.encode()
        if key not in SEEN:
            SEEN[key] = encode(views)
        return SEEN[key]

    decoder.encode = look
    return {t.page_id: t for t in decoder.decode(pages)}


def same(nano: Parts, pages: Sequence[PageInput], depths: Sequence[int | str], batches: Sequence[int]) -> None:
    want = transcripts(nano, pages, 0, 1)
    for depth in depths:
        for batch in batches:
            got = transcripts(nano, pages, depth, batch)
            assert {i: (t.tokens, t.stop) for i, t in got.items()} == {i: (t.tokens, t.stop) for i, t in want.items()}


def test_a_few_pages_at_every_depth(nano: Parts, narrow: Parts) -> None:
    for parts in (nano, narrow):
        same(parts, held_out(1), (1, 3, 5, "auto"), (4,))


def test_bf16_is_the_default_where_the_cpu_multiplies_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, small = torch.device("cpu"), 1 << 20
    assert pick_dtype(None, cpu, small, quick=True) == torch.bfloat16
    assert pick_dtype(None, cpu, small) == torch.float32
    assert pick_dtype(None, cpu, 1 << 30) == pick_dtype(None, torch.device("cuda"), small) == torch.bfloat16
    assert pick_dtype("float32", cpu, small, quick=True) == torch.float32
    for quick in {False, bf16.supported()}:
        monkeypatch.setattr(bf16, "supported", lambda quick=quick: quick)
        parts = load_parts("nano", device="cpu")
        assert parts.model.model.norm.weight.dtype == (torch.bfloat16 if quick else torch.float32)
        assert parts.vision is not None


def test_the_readable_oracle_agrees(nano: Parts) -> None:
    pages = held_out(1)
    decoder = nano.decoder(depth=0, batch=1)
    for page, got in zip(pages, decoder.decode(pages), strict=True):
        job = decoder.prepare(page)
        if got.stop != "loop":
            stopper = Stopper(nano.model.cfg.text.eos_token_id, job.limit)
            assert greedy(nano.model, job.ids.tolist(), job.visual, stopper) == list(got.tokens)


@pytest.mark.slow
def test_a_page_is_read_by_kernels_for_any_cpu(tmp_path: Path) -> None:
    """As machines of several kinds share a cache: no instruction beyond the common ones is used."""
    settings = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    examples = resources.files("jocr") / "data" / "examples" / "harbour.png"
    command = [
        sys.executable,
        "-c",
        "from jocr.cli import main; main()",
        "parse",
        str(examples),
        "--out",
        str(tmp_path / "out"),
    ]
    subprocess.run(command, env=os.environ | settings, check=True, timeout=300)
    assert "harbour" in (tmp_path / "out" / "harbour.png.md").read_text()
    assert '"dtype": "float32"' in (tmp_path / "out" / "run.json").read_text()


@pytest.mark.slow
def test_two_hundred_pages_in_bf16(narrow: Parts) -> None:
    same(narrow, held_out(40), range(6), (1, 8))


@pytest.mark.slow
def test_two_hundred_pages_at_every_depth_and_batch_size(nano: Parts) -> None:
    pages = held_out(40)
    assert len(pages) >= 200
    same(nano, pages, range(6), (1, 8))
    assert (tau(transcripts(nano, pages, 3, 8).values()) or 0.0) > 1.5
