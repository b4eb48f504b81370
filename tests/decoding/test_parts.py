"""The small parts: acceptance rule, stopping, live depth, statistics."""

from __future__ import annotations

import pytest

from jocr.decoding.depth import MAX_DEPTH, AutoDepth, Belief, Costs, Prices
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


def priced(first: float, further: float, pages: int = 1) -> Costs:
    """Plain rounds of one second; what a proposal adds, for each page that drafts."""
    costs = Costs()
    costs.set(pages, Prices(1.0, 0.0, first, 0.0, further))
    return costs


def play(policy: AutoDepth, rate: float, calls: int, slower: float = 1.0, pages: int = 1) -> list[int]:
    """Calls of up to 8 rounds whose proposals are accepted in a fixed pattern of this rate; how many pages drafted."""
    beliefs, due, busy = [policy.admit() for _ in range(pages)], 0.0, []
    for _ in range(calls):
        plan = policy.choose(beliefs, 8)
        drafted, accepted = ([[0] * MAX_DEPTH for _ in beliefs] for _ in range(2))
        for i, depth in enumerate(plan.depths):
            for _ in range(plan.most if depth else 0):
                going = True
                for at in range(depth if plan.gate < rate else 1):
                    drafted[i][at] += 1
                    due += rate
                    going = going and due >= 1.0
                    due -= due >= 1.0
                    accepted[i][at] += going
        seconds = slower * policy.costs.known[pages].predict(drafted, plan.most)
        policy.observe(beliefs, drafted, accepted, plan.most, seconds)
        busy.append(sum(depth > 0 for depth in plan.depths))
    return busy


def cheap() -> AutoDepth:
    return AutoDepth(priced(0.3, 0.2))


def test_auto_drafts_where_drafts_are_right_and_cheap() -> None:
    assert sum(play(cheap(), 0.95, 200)[-40:]) > 35


def test_auto_falls_back_to_plain_and_probes_ever_more_rarely() -> None:
    busy = play(cheap(), 0.05, 1000)
    assert sum(busy[100:]) < 0.02 * 900
    assert any(busy[100:])


def test_auto_stays_plain_where_a_round_costs_too_much() -> None:
    assert not any(play(AutoDepth(priced(1.1, 0.8)), 0.95, 500))


def test_auto_comes_back_when_drafts_become_right() -> None:
    policy = cheap()
    play(policy, 0.05, 50)
    assert sum(play(policy, 0.95, 300)[-50:]) > 45


def test_costs_follow_a_machine_that_slows_down_without_changing_the_choice() -> None:
    policy = cheap()
    assert sum(play(policy, 0.95, 300, slower=3.0)[-60:]) > 50
    assert policy.costs.ratio(1) == pytest.approx(1.0, rel=0.1)


def test_one_slow_moment_changes_little() -> None:
    policy = cheap()
    play(policy, 0.95, 40)
    prices = policy.costs.known[1]
    policy.costs.observe(1, [[0]], 8, 8.0)
    policy.costs.observe(1, [[8, 8]], 8, 100 * prices.predict([[8, 8]], 8))
    assert policy.costs.ratio(1) < 1.2


def test_drafting_that_costs_more_than_calibrated_is_found_out() -> None:
    policy, dear = AutoDepth(priced(0.3, 0.2)), Prices(1.0, 0.0, 0.8, 0.0, 0.6)
    beliefs, drafts = [policy.admit()], []
    for _ in range(6000):
        plan = policy.choose(beliefs, 8)
        n = plan.most if plan.depths[0] else 0  # two proposals a round, of which one is right: worth 1, costs 1.4
        policy.observe(beliefs, [[n, n]], [[n, 0]], plan.most, dear.predict([[n, n]], plan.most))
        drafts.append(n > 0)
    assert sum(drafts[:100]) > 80
    assert sum(drafts[-1000:]) < 300


def test_of_several_pages_only_those_draft_for_which_it_pays() -> None:
    policy = AutoDepth(priced(0.1, 0.1, pages=4))  # a page's share of a plain round is 0.25
    good, bad = Belief(90.0, 110.0, 100.0), Belief(20.0, 100.0, 100.0)
    plan = policy.choose([bad, good, bad, good], 8)
    assert plan.depths == [0, MAX_DEPTH, 0, MAX_DEPTH]
    policy = AutoDepth(priced(0.3, 0.3, pages=4))
    assert policy.choose([good] * 4, 8).depths == [0] * 4


def test_what_is_paid_once_a_round_is_shared() -> None:
    costs = Costs()
    costs.set(2, Prices(1.0, 0.5, 0.0, 0.1, 0.0))
    page = Belief(80.0, 100.0, 100.0)  # saves 0.4 of a second a round, alone less than drafting costs
    assert AutoDepth(costs).choose([page, page], 8).depths == [MAX_DEPTH] * 2
    assert AutoDepth(costs).choose([page, Belief(0.0, 100.0, 100.0)], 8).depths == [0, 0]


def test_prices_between_measured_page_counts_are_interpolated() -> None:
    costs = priced(0.3, 0.2)
    costs.set(8, Prices(4.5, 0.0, 0.3, 0.0, 0.2))
    prices = costs.of(4)
    assert prices is not None
    assert prices.plain == pytest.approx(2.5)
    assert costs.of(9) is None


def test_statistics() -> None:
    pages = [
        Transcript("a", "", (), "end", 1, 0.0, rounds=10, drafted=(10, 8), accepted=(9, 4)),
        Transcript("b", "", (), "end", 1, 0.0, rounds=5, drafted=(5,), accepted=(1,)),
        Transcript("c", "", (), "end", 1, 0.0),
    ]
    assert tau(pages) == pytest.approx(1 + 14 / 15)
    assert acceptance(pages) == [pytest.approx(10 / 15), pytest.approx(0.5)]
    assert tau(pages[2:]) is None
