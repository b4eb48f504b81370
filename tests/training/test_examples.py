"""Labels of training examples point at what is drawn there, and the loop's small parts do what they say."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from jobs.train_nano import make_teacher
from jocr.losses.sft import IGNORE
from jocr.model.ocr import PageViews
from jocr.model.vision import page_layout
from jocr.pages.tiles import normalise
from jocr.synth.page import make_page
from jocr.training.batches import Pool, collate, mislead
from jocr.training.examples import GLYPH_CLASSES, Example, make_example
from jocr.training.loop import Clock, FlatGradients, rate
from jocr.training.nano import PROCESSOR, nano_tokenizer
from jocr.training.optim import Muon, fused_pieces, orthogonalise
from jocr.training.recipe import Phase, Stream

NAMES = {i: c for c, i in GLYPH_CLASSES.items()}
TOKENIZER = nano_tokenizer()


def example(kind: str, width: int, height: int, seed: int = 3) -> tuple[str, Example]:
    page = make_page(seed, kind, width, height)
    return page.markdown, make_example(page, TOKENIZER, PROCESSOR, 300, 1)


@pytest.mark.parametrize(("width", "height", "tiles"), [(256, 256, 0), (512, 512, 4), (512, 768, 6), (200, 240, 0)])
def test_cells_spell_the_page(width: int, height: int, tiles: int) -> None:
    """Following the looks of each token through the cells meets exactly the characters of the reference."""
    markdown, ex = example("paragraph", width, height)
    assert ex.tiles.shape == (tiles, PROCESSOR.image_size, PROCESSOR.image_size)
    assert ex.whole.shape == (PROCESSOR.base_size, PROCESSOR.base_size)
    assert TOKENIZER.decode(list(ex.ids[:-1]), skip_special_tokens=False) == markdown
    order = page_layout(ex.grid, PROCESSOR.side(PROCESSOR.base_size), PROCESSOR.side(PROCESSOR.image_size))
    cells = ex.cell_glyphs.reshape(-1, ex.cell_glyphs.shape[-1])
    written, upcoming = ex.looks
    assert written[0] == IGNORE
    assert upcoming[-1] == IGNORE
    seen = 0
    for token, place in zip(ex.ids[:-1], upcoming[:-1], strict=True):
        char = TOKENIZER.decode([int(token)])
        if char.strip() and char in GLYPH_CLASSES and place != IGNORE:
            named = {NAMES.get(int(g)) for g in cells[order[place]]}
            assert char in named or (cells[order[place]] > 0).all()  # a full cell keeps only its first glyphs
            seen += 1
    assert seen > 0.9 * sum(c.strip() != "" and c in GLYPH_CLASSES for c in markdown) > 9


def test_patch_labels_lie_on_ink() -> None:
    page = make_page(5, "paragraph", 256, 256)
    ex = make_example(page, TOKENIZER, PROCESSOR, 300, 1)
    grey = ex.whole.astype(float)
    paper = np.median(grey)
    for row, col in zip(*np.nonzero(ex.patch_glyphs[0] > 0), strict=True):
        around = grey[max(0, row * 16 - 8) : row * 16 + 24, max(0, col * 16 - 8) : col * 16 + 24]
        assert paper - around.min() > 20


@pytest.mark.parametrize("size", [256, 512])
def test_training_sees_a_page_as_inference_does(size: int) -> None:
    teacher, _ = make_teacher(seed=1)
    examples = [example("paragraph", size, size, s)[1] for s in (1, 2)]
    with torch.no_grad():
        visual = teacher.see(collate(examples, pad=2))[0]
        for e, rows in zip(examples, visual, strict=True):
            tiles, whole = (torch.from_numpy(normalise(np.repeat(x[..., None], 3, -1))) for x in (e.tiles, e.whole))
            wanted = teacher.model.encode_page(PageViews(whole, tiles, e.grid))
            torch.testing.assert_close(rows, wanted, atol=1e-5, rtol=1e-5)


def test_collate_shifts_inputs_and_pads_targets() -> None:
    batch = collate([example("paragraph", 256, 256, s)[1] for s in (1, 2)], pad=2)
    shorter = int((batch.targets != IGNORE).sum(1).argmin())
    n = int((batch.targets[shorter] != IGNORE).sum())
    assert (batch.ids[shorter, : n - 1] == batch.targets[shorter, : n - 1]).all()
    assert (batch.ids[shorter, n - 1 :] == 2).all()
    assert batch.targets[shorter, n - 1] == 1
    assert batch.whole.min() >= -1
    assert batch.whole.max() <= 1


def test_misleading_changes_what_is_seen_and_not_what_is_asked() -> None:
    examples = [example("paragraph", 256, 256, s)[1] for s in (1, 2)]
    right = collate(examples, pad=2)
    wrong = collate(examples, pad=2, wrong=0.2, rng=np.random.default_rng(1))
    assert (wrong.ids != right.ids).any(dim=1).all()
    assert (wrong.ids == 2).equal(right.ids == 2)  # padding stays where it is, and nowhere else
    for name in ("targets", "looks", "whole", "cell_glyphs"):
        assert getattr(wrong, name).equal(getattr(right, name))
    again = collate(examples, pad=2, wrong=0.2, rng=np.random.default_rng(1))
    assert again.ids.equal(wrong.ids)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2])
def test_misled_tokens_are_of_the_page_and_about_the_share_asked_for(share: float) -> None:
    rng, ids = np.random.default_rng(0), np.arange(200)
    pages = [mislead(ids, share, rng) for _ in range(200)]
    assert all(page.shape == ids.shape and np.isin(page, ids).all() for page in pages)
    changed = np.mean([np.mean(page != ids) for page in pages])
    assert 0.75 * share <= changed <= 1.1 * share  # spans may overlap
    assert (mislead(np.arange(3), 0.5, rng) < 3).all()
    steps = np.diff(mislead(ids, 0.2, rng))
    assert np.count_nonzero(steps != 1) < 100  # the rest of the page is as it was


def test_pool_deals_every_page_reuse_times() -> None:
    _, one = example("paragraph", 256, 256)
    drawn: list[int] = []

    def draw(seed: int) -> Example:
        drawn.append(seed)
        return one

    pool = Pool(draw, iter(range(100)), size=4, batch=2, reuse=3)
    rng = np.random.default_rng(0)
    dealt = [page for _ in range(6) for page in pool.deal(rng)]
    assert len(dealt) == 12
    assert drawn == [0, 1, 2, 3]


def test_orthogonalise_gives_near_unit_singular_values() -> None:
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonalise(torch.randn(3, 24, 64)))
    assert values.min() > 0.5
    assert values.max() < 1.4


def test_muon_treats_fused_matrices_one_by_one() -> None:
    assert (fused_pieces("a.qkv.weight"), fused_pieces("mlp.gate_up.weight"), fused_pieces("o_proj.weight")) == (
        3,
        2,
        1,
    )
    torch.manual_seed(0)
    p = nn.Parameter(torch.zeros(6, 4))
    p.grad = torch.cat([torch.randn(2, 4) * 1000, torch.randn(4, 4)])
    optimizer = Muon([("x.qkv.weight", p)], lr=1.0)
    optimizer.step()
    sizes = [piece.norm().item() for piece in p.detach().split(2)]
    assert max(sizes) / min(sizes) < 1.5  # one piece's large gradient does not drown the others


def test_flat_gradients_average_and_clip() -> None:
    a, b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    flat = FlatGradients([a, b])
    (a.sum() * 6 + b.sum() * 8).backward()
    norm = flat.finish(micro_batches=2, clip=1.0)
    assert norm == pytest.approx((9 + 9 + 16) ** 0.5)
    assert flat.buffer.norm().item() == pytest.approx(1.0)


def test_clock_walks_the_phases_and_rates_fall_after_the_hold() -> None:
    stream = Stream(kind="paragraph")
    phases = [
        Phase(name="a", minutes=1, streams=[stream]),
        Phase(name="b", minutes=1, hold=0.5, lr_to=0.0, streams=[stream]),
    ]
    assert Clock(phases, 30.0).tick()[:2][0] == 0
    index, done, _ = Clock(phases, 105.0).tick()
    assert index == 1
    assert rate(phases[1], done) == pytest.approx(0.5, abs=0.01)
    assert rate(phases[1], 0.3) == 1.0
    assert Clock(phases, 121.0).tick()[0] == 2
