"""Which units are pending: the anti-join, rows carried over, redrives, and a million pages of it."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter

import numpy as np
import pytest

from jocr.archive.groups import group_ends, unit_name
from jocr.archive.ledger import Commit
from jocr.archive.plan import plan_groups


class Recorded:
    """A ledger that knows its commits' keys."""

    def __init__(self, units):
        self.units = {unit_name(keys): keys for keys in units}
        self.read_names = []

    def names(self):
        return dict.fromkeys(self.units, 0)

    def read(self, names):
        for name, generation in names:
            self.read_names.append(name)
            packed = self.units[name].astype(">i8").tobytes()
            yield Commit(name, generation, "", len(packed) // 8, {}, {}, 0, 0, 0.0, 0.0, 0.0, 0, "", {}, packed)


def grouped(keys, unit):
    ends = group_ends(keys, unit)
    return [("part", int(start), int(end), keys[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def keys_of(count, seed=1):
    return np.random.default_rng(seed).integers(-(2**63), 2**63, count, np.int64)


def test_only_what_is_not_committed_is_pending():
    groups = grouped(keys_of(1000), 32)
    ledger = Recorded([group[3] for group in groups[::2]])
    plan = plan_groups(groups, ledger.names(), ledger)
    assert [work.unit.start for work in plan.works] == [group[1] for group in groups[1::2]]
    assert plan.pages + plan.pages_done == 1000
    assert plan.units_done == len(groups[::2])
    assert ledger.read_names == []  # nothing is left of the ledger that the manifest does not name
    assert not any(work.carried for work in plan.works)


def test_everything_committed_leaves_nothing():
    groups = grouped(keys_of(1000), 32)
    ledger = Recorded([group[3] for group in groups])
    assert plan_groups(groups, ledger.names(), ledger).works == ()


@pytest.mark.parametrize("position", [0, 1, 517, 1000])
def test_a_document_that_comes_disturbs_its_neighbours_and_their_rows_are_carried(position):
    keys = keys_of(1000)
    before = grouped(keys, 32)
    ledger = Recorded([group[3] for group in before])
    new = keys_of(5, seed=2)
    after = grouped(np.concatenate([keys[:position], new, keys[position:]]), 32)
    plan = plan_groups(after, ledger.names(), ledger)
    assert 1 <= len(plan.works) <= 8
    held = {name: set(group.tolist()) for name, group in ledger.units.items()}
    missing = set()
    for work in plan.works:
        pages = {key for group in after if group[1] == work.unit.start for key in group[3].tolist()}
        missing |= pages - set().union(*(held[name] for name, _ in work.carried))
        assert all(held[name] & pages for name, _ in work.carried)
    assert missing == set(new.tolist())


def test_pending_shrinks_as_units_are_committed():
    groups = grouped(keys_of(200), 16)
    plan = plan_groups(groups, {}, Recorded([]))
    first = plan.works[0].unit.name
    assert len(plan.pending({})) == len(groups)
    assert [work.unit.name for work in plan.pending({first: 0})] == [work.unit.name for work in plan.works[1:]]


def test_a_million_pages_are_planned_in_seconds_and_little_memory():
    groups = grouped(keys_of(1_000_000), 128)
    names = {unit_name(group[3]): 0 for group in groups[::2]}
    tracemalloc.start()
    begun = time.process_time()
    plan = plan_groups(groups, names, Recorded([]))
    seconds, (_, peak) = time.process_time() - begun, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert plan.pages + plan.pages_done == 1_000_000
    assert Counter(len(work.carried) for work in plan.works) == {0: len(plan.works)}
    assert seconds < 20  # 0.3 s without tracing
    assert peak < 64 << 20
