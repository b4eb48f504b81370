"""Experts against a plain loop; only chosen experts are touched."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from jocr.model.moe import LEAN_ROWS, Gate, MoE

from .tiny_model import TEXT, scatter

MANY = replace(TEXT, n_routed_experts=16, num_experts_per_tok=6, hidden_size=96, moe_intermediate_size=48)


def make(cfg, dtype: torch.dtype = torch.float32) -> MoE:
    moe = MoE(cfg)
    scatter(moe, 7)
    return moe.to(dtype).eval()


def plain_loop(moe: MoE, x: Tensor) -> Tensor:
    """The definition, a row and an expert at a time, in float64, reading the published names."""
    state = {name: t.double() for name, t in moe.state_dict().items()}
    rows = []
    for row in x.double():
        scores = (state["gate.weight"] @ row).softmax(0)
        total = mlp(state, "shared_experts.", row)
        for expert in scores.argsort(descending=True)[: moe.gate.top_k].tolist():
            total = total + scores[expert] * mlp(state, f"experts.{expert}.", row)
        rows.append(total)
    return torch.stack(rows)


def mlp(state: dict[str, Tensor], prefix: str, row: Tensor) -> Tensor:
    gate, up, down = (state[f"{prefix}{name}_proj.weight"] for name in ("gate", "up", "down"))
    return down @ (F.silu(gate @ row) * (up @ row))


ROWS = [1, 2, 3, LEAN_ROWS, LEAN_ROWS + 1, 40]


@pytest.mark.parametrize("cfg", [TEXT, MANY], ids=["2 of 8", "6 of 16"])
@pytest.mark.parametrize("rows", ROWS)
def test_fp32_equals_the_plain_loop(cfg, rows: int) -> None:
    moe = make(cfg)
    x = torch.randn(rows, cfg.hidden_size, generator=torch.Generator().manual_seed(rows))
    expected = plain_loop(moe, x).float()
    with torch.no_grad():
        torch.testing.assert_close(moe(x), expected, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(moe(x[None])[0], expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(moe(x).detach(), expected, atol=1e-4, rtol=1e-4)  # with gradients: always grouped


@pytest.mark.parametrize("rows", ROWS)
def test_bf16_equals_the_plain_loop_within_its_precision(rows: int) -> None:
    moe = make(MANY, torch.bfloat16)
    x = torch.randn(rows, MANY.hidden_size, generator=torch.Generator().manual_seed(rows)).bfloat16()
    expected = plain_loop(moe, x)
    with torch.no_grad():
        got = moe(x)
    assert got.dtype == torch.bfloat16
    assert (got.double() - expected).norm() / expected.norm() < 0.02


@pytest.mark.parametrize("rows", [1, 4, 40])
def test_experts_not_chosen_are_never_read(rows: int) -> None:
    moe = make(MANY)
    x = torch.randn(rows, MANY.hidden_size)
    with torch.no_grad():
        x = x.abs()
        moe.gate.weight[:8] *= 0.01
        moe.gate.weight[8:] = -1.0  # experts 8..15 score far below, whatever the row
        clean = moe(x)
        moe.experts.gate_up[8:] = float("nan")
        moe.experts.down[8:] = float("nan")
        assert set(moe.gate(x)[1].flatten().tolist()) <= set(range(8))
        assert torch.equal(moe(x), clean)
        if rows == 1:
            unused = sorted(set(range(8)) - set(moe.gate(x)[1][0].tolist()))
            moe.experts.gate_up[unused] = float("nan")
            assert torch.equal(moe(x), clean)


def test_gate_is_softmax_over_all_without_renormalising() -> None:
    gate = Gate(TEXT)
    x = torch.randn(3, TEXT.hidden_size)
    weights, chosen, scores = gate(x)
    torch.testing.assert_close(scores, (x @ gate.weight.T).softmax(-1))
    torch.testing.assert_close(weights, scores.gather(1, chosen))
    assert (weights.sum(-1) < 0.999).all()
    scaled = Gate(replace(TEXT, norm_topk_prob=True, routed_scaling_factor=2.5))
    torch.testing.assert_close(scaled(x)[0].sum(-1), torch.full((3,), 2.5))


def test_gradients_reach_gate_and_chosen_experts() -> None:
    moe = make(TEXT).train()
    x = torch.randn(20, TEXT.hidden_size)
    chosen = set(moe.gate(x)[1].flatten().tolist())
    moe(x).square().sum().backward()
    assert moe.gate.weight.grad.abs().sum() > 0
    touched = {i for i in range(8) if moe.experts.gate_up.grad[i].abs().sum() > 0}
    assert touched == chosen


@pytest.mark.parametrize("cfg", [TEXT, MANY], ids=["2 of 8", "6 of 16"])
def test_lean_rows_do_not_feel_their_neighbours(cfg) -> None:
    moe = make(cfg)
    x = torch.randn(LEAN_ROWS, cfg.hidden_size)
    with torch.no_grad():
        weights, chosen, _ = moe.gate(x)
        whole = moe.experts.lean(x, weights, chosen)
        for i in range(LEAN_ROWS):
            alone = moe.experts.lean(x[i : i + 1], weights[i : i + 1], chosen[i : i + 1])
            assert torch.equal(alone[0], whole[i])
