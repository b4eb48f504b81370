"""Speculation never changes the text: the same tokens as the readable oracle for every depth, batch size and page."""

from __future__ import annotations

import pytest
import torch

from jocr.decoding.depth import AutoDepth, Costs
from jocr.decoding.greedy import greedy
from jocr.decoding.load import make_steps
from jocr.decoding.stopping import Stopper
from tests.decoding.models import EOS, acceptance, prompts, run, tiny_model

NOISES = {0.3: (0.9, 1.01), 0.6: (0.6, 0.95), 1.0: (0.7, 0.98), 1.5: (0.02, 0.5), 3.0: (0.0, 0.2)}
PAGES = 40  # a model; five models: 200 pages
ORACLE = 6  # of these the readable oracle decodes too
LIMIT = 20


@pytest.mark.parametrize("noise", NOISES)
def test_every_depth_and_batch_size_gives_the_same_tokens(noise: float) -> None:
    model = tiny_model(int(noise * 10), noise)
    ids = prompts(int(noise * 100), PAGES)
    plain = run(model, ids, LIMIT, 0, 1)
    want = [plain[str(i)].tokens for i in range(PAGES)]
    assert len({tuple(w) for w in want}) > PAGES // 2  # the pages differ
    for i in range(ORACLE):
        assert greedy(model, ids[i].tolist(), None, Stopper(EOS, LIMIT)) == want[i]
    for depth in range(6):
        for batch in (1, 5):
            ended = run(model, ids, LIMIT, depth, batch)
            assert [ended[str(i)].tokens for i in range(PAGES)] == want, (depth, batch)
            if depth == 1:
                low, high = NOISES[noise]
                assert low <= acceptance(ended) <= high
    ended = run(model, ids, LIMIT, AutoDepth(Costs()), 5)
    assert [ended[str(i)].tokens for i in range(PAGES)] == want


def test_the_torch_steps_agree_where_nothing_is_nearly_tied() -> None:
    model, ids = tiny_model(1, 0.3), prompts(1, 6)
    want = run(model, ids, 12, 0, 1)
    for depth in (0, 2, 5):
        ended = run(model, ids, 12, depth, 3, "torch")
        assert {i: f.tokens for i, f in ended.items()} == {i: f.tokens for i, f in want.items()}
        assert depth == 0 or acceptance(ended) > 0.8


def test_compiled_rows_do_not_depend_on_the_rows_beside_them() -> None:
    """Bit for bit: states of the same page from prefills of any length and from single rows."""
    model, prompt = tiny_model(2, 1.0), prompts(2, 1)[0].repeat(4)[:60]
    whole = _states(model, prompt, len(prompt))
    for rows in (1, 2, 3, 5, 7):
        assert torch.equal(_states(model, prompt, rows), whole)


def _states(model, prompt, rows):  # type: ignore[no-untyped-def]
    from jocr.decoding.steps import Rows

    steps = make_steps(model, 2)
    steps.prefill(1, prompt[:rows], None)
    for start in range(rows, len(prompt), rows):
        steps.verify([Rows(1, start, prompt[start : start + rows].tolist())])
    return steps.cache.hidden[1, : len(prompt)].clone()


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_order_of_pages_does_not_change_results(backend: str) -> None:
    model, ids = tiny_model(3, 0.6), prompts(3, 9)
    forward = run(model, ids, 10, 3, 4, backend)  # type: ignore[arg-type]
    backward = run(model, ids[::-1], 10, 3, 4, backend)  # type: ignore[arg-type]
    assert all(forward[str(i)].tokens == backward[str(8 - i)].tokens for i in range(9))


def test_the_cache_grows_while_pages_decode() -> None:
    model, ids = tiny_model(4, 0.6), prompts(4, 3)
    long = [prompt.repeat(20)[:240] for prompt in ids]
    want = [greedy(model, prompt.tolist(), None, Stopper(EOS, 40)) for prompt in long]
    for backend in ("compiled", "torch"):
        ended = run(model, long, 40, 3, 2, backend)  # type: ignore[arg-type]
        assert [ended[str(i)].tokens for i in range(3)] == want
