"""The small parts: acceptance rule, stopping, live depth, statistics."""

from __future__ import annotations

import pytest

from jocr.decoding.depth import AutoDepth, Costs
from jocr.decoding.stats import acceptance, tau
from jocr.decoding.stopping import Stopper
from jocr.decoding.verify import accept
from jocr.markup.repeats import LoopGuard
from jocr.records import Transcript


@pytest.mark.parametrize(
    ("drafted", "chosen", "committed", "accepted"),
    [
        ([], [5], [5], 0),
        ([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4], 3),
        ([1, 2, 3], [1, 9, 3, 4], [1, 9], 1),
        ([1, 2, 3], [9, 2, 3, 4], [9], 0),
    ],
)
def test_accept(drafted: list[int], chosen: list[int], committed: list[int], accepted: int) -> None:
    assert accept(drafted, chosen) == (committed, accepted)


def spans(text: list[int], size: int) -> list[list[int]]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def decide(text: list[int], size: int, **more: object) -> tuple[list[int], str | None, str]:
    stopper = Stopper(1, **more)  # type: ignore[arg-type]
    tokens: list[int] = []
    for span in spans(text, size):
        if stopper.stop is None:
            stopper.take(tokens, span)
    return stopper.trim(tokens), stopper.stop, stopper.detail


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_stopping_does_not_depend_on_span_lengths(size: int) -> None:
    assert decide([5, 6, 7, 1, 8, 9], size, limit=10)[:2] == ([5, 6, 7], "end")
    assert decide([5, 6, 7, 8, 1, 9], size, limit=4)[:2] == ([5, 6, 7, 8], "length")
    assert decide([1], size, limit=4)[:2] == ([], "end")
    loop = [*range(10, 30), *[40, 41, 42] * 200]
    kept, stop, detail = decide(loop, size, limit=900, guard=LoopGuard())
    assert stop == "loop"
    assert kept == [*range(10, 30), 40, 41, 42]
    assert "of 3 tokens" in detail


def test_a_limit_of_zero_and_the_clock() -> None:
    assert Stopper(1, 0).stop == "length"
    now = [0.0]
    stopper, tokens = Stopper(1, 100, seconds=2.0, clock=lambda: now[0]), []
    stopper.take(tokens, [5])
    assert stopper.stop is None
    now[0] = 2.5
    stopper.take(tokens, [6])
    assert stopper.stop == "error"
    assert stopper.detail.startswith("decode_timeout")
    assert tokens == [5, 6]


def priced(*seconds: float) -> Costs:
    costs = Costs()
    for depth, value in enumerate(seconds):
        costs.set(1, depth, value)
    return costs


def play(policy: AutoDepth, rate: float, rounds: int, seconds: tuple[float, ...]) -> list[int]:
    """Rounds of one page whose drafts are accepted with a fixed pattern of this rate; the depths chosen."""
    belief, depths, due = policy.admit(), [], 0.0
    for _ in range(rounds):
        depth = policy.choose([belief])
        accepted = 0
        while accepted < depth:
            due += rate
            if due < 1.0:
                break
            due -= 1.0
            accepted += 1
        policy.observe([belief], [depth], [accepted], seconds[depth])
        depths.append(depth)
    return depths


CHEAP = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
DEAR = (1.0, 1.8, 2.6, 3.4, 4.2, 5.0)


def test_auto_goes_deep_where_drafts_are_right_and_cheap() -> None:
    depths = play(AutoDepth(priced(*CHEAP)), 0.95, 200, CHEAP)
    assert depths[-40:].count(5) > 30


def test_auto_falls_back_to_plain_and_probes_ever_more_rarely() -> None:
    depths = play(AutoDepth(priced(*CHEAP)), 0.05, 1000, CHEAP)
    assert sum(d > 0 for d in depths[100:]) < 0.02 * 900
    assert any(d > 0 for d in depths[100:])


def test_auto_stays_plain_where_a_round_costs_too_much() -> None:
    depths = play(AutoDepth(priced(*DEAR)), 0.7, 500, DEAR)
    assert sum(d > 0 for d in depths) < 25


def test_auto_comes_back_when_drafts_become_right() -> None:
    policy = AutoDepth(priced(*CHEAP))
    play(policy, 0.05, 300, CHEAP)
    assert play(policy, 0.95, 600, CHEAP)[-50:].count(0) < 5


def test_costs_follow_a_machine_that_slows_down_without_changing_the_choice() -> None:
    policy = AutoDepth(priced(*CHEAP))
    slow = tuple(3 * s for s in CHEAP)
    depths = play(policy, 0.95, 300, slow)
    assert depths[-60:].count(5) > 50
    assert policy.costs.seconds(1, 0) == pytest.approx(3.0, rel=0.25)  # moved by the common base alone


def test_costs_between_measured_page_counts_are_interpolated() -> None:
    costs = priced(*CHEAP)
    costs.set(8, 0, 4.5)
    assert costs.seconds(4, 0) == pytest.approx(2.5)
    assert costs.seconds(4, 3) is None


def test_statistics() -> None:
    pages = [
        Transcript("a", "", (), "end", 1, 0.0, rounds=10, drafted=(10, 8), accepted=(9, 4)),
        Transcript("b", "", (), "end", 1, 0.0, rounds=5, drafted=(5,), accepted=(1,)),
        Transcript("c", "", (), "end", 1, 0.0),
    ]
    assert tau(pages) == pytest.approx(1 + 14 / 15)
    assert acceptance(pages) == [pytest.approx(10 / 15), pytest.approx(0.5)]
    assert tau(pages[2:]) is None
