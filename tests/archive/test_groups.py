"""Groups: sizes, and how little an inserted document moves."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.archive.groups import group_ends, unit_name

keys_of = st.tuples(st.integers(0, 3000), st.integers(0, 2**32 - 1))
units = st.sampled_from([1, 2, 3, 4, 5, 16, 64, 256])


def random_keys(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(2**63), 2**63, count, np.int64)


def groups(keys: np.ndarray, unit: int) -> list[tuple[int, ...]]:
    ends = group_ends(keys, unit).tolist()
    return [tuple(keys[a:b].tolist()) for a, b in zip([0, *ends], ends, strict=False)]


@given(keys_of, units)
@settings(deadline=None, max_examples=60)
def test_groups_cover_all_pages_within_the_sizes(made, unit):
    keys = random_keys(*made)
    found = groups(keys, unit)
    assert [key for group in found for key in group] == keys.tolist()
    assert all(max(1, unit // 4) <= len(group) <= unit for group in found[:-1])
    assert all(1 <= len(group) <= unit for group in found[-1:])


@given(keys_of, units, st.integers(1, 2999))
@settings(deadline=None, max_examples=60)
def test_cutting_a_run_as_it_comes_gives_the_same_groups(made, unit, seen):
    keys = random_keys(*made)
    ends = group_ends(keys[:seen], unit, last=False)
    rest = group_ends(keys[ends[-1] if len(ends) else 0 :], unit) + (ends[-1] if len(ends) else 0)
    assert [*ends, *rest] == group_ends(keys, unit).tolist()


@given(st.integers(0, 2**32 - 1), st.integers(0, 4000), st.integers(1, 300), st.booleans())
@settings(deadline=None, max_examples=60)
def test_what_comes_or_goes_disturbs_only_what_is_near(seed, place, count, removed):
    keys = random_keys(4000, seed)
    new = random_keys(count, seed + 1)
    changed = np.concatenate([keys[:place], new, keys[place:]])
    if removed:
        changed = np.concatenate([keys[:place], keys[place + count :]])
    before, after = groups(keys, 64), groups(changed, 64)
    untouched = sum(1 for end in group_ends(keys, 64) if end <= place)
    assert before[: max(0, untouched - 1)] == after[: max(0, untouched - 1)]
    assert len(set(before) - set(after)) <= count // 16 + 12  # of about 125


def test_an_insertion_moves_few_groups_on_average():
    moved = []
    for seed in range(200):
        keys, new = random_keys(4000, seed), random_keys(3, seed + 1000)
        changed = np.concatenate([keys[:2000], new, keys[2000:]])
        moved.append(len(set(groups(keys, 64)) - set(groups(changed, 64))))
    assert 1 <= np.mean(moved) < 3


def test_keys_that_count_up_spread_too():
    sizes = [len(group) for group in groups(np.arange(20_000, dtype=np.int64), 64)]
    assert 25 < np.mean(sizes) < 45


@pytest.mark.parametrize("unit", [1, 2, 3, 7])
def test_tiny_units(unit):
    assert group_ends(random_keys(10, 1), unit)[-1] == 10
    assert len(group_ends(random_keys(0, 1), unit)) == 0


def test_a_unit_is_named_by_its_keys_in_order():
    keys = np.array([5, -7, 2**62], np.int64)
    expected = hashlib.sha256(struct.pack("<3q", 5, -7, 2**62)).hexdigest()[:24]
    assert unit_name(keys) == expected
    assert unit_name(keys[::-1]) != expected
    assert unit_name(np.array([1, 5, 1, -7, 1, 2**62], np.int64)[1::2]) == expected
