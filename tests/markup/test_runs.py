import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.markup.runs import periodic_runs


def naive_runs(items: list[int], max_period: int, min_count: int, min_length: int) -> list[tuple[int, int, int]]:
    """The definition, by comparing everything with everything."""
    found: list[tuple[int, int, int]] = []
    n = len(items)
    for p in range(1, min(max_period, n // min_count) + 1):
        need = max((min_count - 1) * p, min_length - p)
        at = p
        while at < n:
            end = at
            while end < n and items[end] == items[end - p]:
                end += 1
            start = at - p
            inside = any(a <= start and end <= b and p % q == 0 for q, a, b in found)
            if end - at >= need and not inside:
                found.append((p, start, end))
            at = end + 1
    return sorted(found, key=lambda r: (r[1], r[2], r[0]))


pieces = st.lists(
    st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 30)), min_size=1, max_size=5
)


@given(pieces)
@settings(max_examples=150, deadline=None)
def test_finds_exactly_the_runs_of_the_definition(parts: list[tuple[list[int], int]]) -> None:
    items = [x for unit, times in parts for x in unit * times]
    got = periodic_runs(np.array(items, np.int64), max_period=40, min_count=4, min_length=32)
    assert sorted(got, key=lambda r: (r[1], r[2], r[0])) == naive_runs(items, 40, 4, 32)


@given(pieces)
@settings(max_examples=100, deadline=None)
def test_short_sequences_of_lines(parts: list[tuple[list[int], int]]) -> None:
    items = [x for unit, times in parts for x in unit * times]
    got = periodic_runs(np.array(items, np.int64), max_period=40, min_count=4, min_length=4)
    assert sorted(got, key=lambda r: (r[1], r[2], r[0])) == naive_runs(items, 40, 4, 4)


def test_every_period_up_to_the_bound_wherever_it_stands() -> None:
    rng = np.random.default_rng(3)
    for p in (1, 2, 3, 7, 31, 100, 255, 511, 512):
        unit = rng.integers(0, 1000, p)
        unit[0] = -1  # primitive
        head, tail = rng.integers(1000, 2000, 700), rng.integers(2000, 3000, 300)
        run = np.tile(unit, max(5, 40 // p))
        runs = periodic_runs(np.concatenate([head, run, tail]), max_period=512, min_count=4, min_length=32)
        assert runs == [(p, 700, 700 + len(run))]


def test_period_past_the_bound_is_not_reported() -> None:
    unit = np.arange(513)
    assert periodic_runs(np.tile(unit, 6), max_period=512, min_count=4, min_length=32) == []
