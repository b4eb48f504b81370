"""The adapter: the same list of stages means the same thing in this process and on Ray."""

from __future__ import annotations

import os
import threading
from collections import Counter

import pytest

from pipelines.stages import (
    ActorStage,
    FunctionStage,
    call_ray,
    current_actor,
    run_local,
    run_ray,
)


def pairs(n):
    yield from (n, n + 1000)


def nothing_for_odd(n):
    if n % 2 == 0:
        yield n


class Doubler:
    """An actor that answers in reverse order."""

    def __call__(self, batch):
        yield from (2 * n for n in reversed(list(batch)))


class Loser:
    def __call__(self, batch):
        yield from list(batch)[1:]


class Doubter:
    def __call__(self, batch):
        for n in batch:
            yield n
            yield n


STAGES = [
    FunctionStage("pairs", pairs),
    FunctionStage("even", nothing_for_odd, batch=3),
    ActorStage("double", Doubler, actors=2, batch=5),
]


def test_local_run_is_lazy_and_complete():
    taken = []

    def source():
        for n in range(1000):
            taken.append(n)
            yield n

    stream = run_local(source(), STAGES)
    next(stream)
    assert len(taken) < 10
    assert Counter([*stream])[2 * 500] == 1


@pytest.mark.parametrize("broken", [Loser, Doubter])
def test_an_actor_that_loses_or_doubles_records_is_refused(broken):
    with pytest.raises(RuntimeError, match="records in"):
        list(run_local(range(10), [ActorStage("broken", broken, batch=5)]))


@pytest.mark.ray
def test_ray_gives_the_same_records(ray_cluster):
    assert Counter(run_ray(range(37), STAGES)) == Counter(run_local(range(37), STAGES))


@pytest.mark.ray
def test_ray_refuses_a_broken_actor(ray_cluster):
    with pytest.raises(Exception, match="records in"):
        list(run_ray(range(10), [ActorStage("broken", Loser, batch=5)]))


class Meeting:
    """Answers a batch only when another one is at it at the same time."""

    def __init__(self):
        self._barrier = threading.Barrier(2, timeout=60)

    def __call__(self, batch):
        self._barrier.wait()
        yield from batch


@pytest.mark.ray
def test_an_actor_works_on_several_batches_at_a_time(ray_cluster):
    stages = [ActorStage("meet", Meeting, batch=1, calls=2, retries=None)]
    assert sorted(run_ray(range(6), stages, blocks=None)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore:The maximum number of concurrent tasks:UserWarning")  # one block, two tasks allowed
@pytest.mark.parametrize("blocks", [1, 3, None])
def test_blocks_do_not_change_the_result(ray_cluster, blocks):
    stages = [FunctionStage("pairs", pairs, batch=2, tasks=2)]
    assert Counter(run_ray(range(5), stages, blocks=blocks)) == Counter(run_local(range(5), stages))


@pytest.mark.ray
def test_a_call_runs_on_a_worker(ray_cluster):
    assert call_ray(os.getpid) != os.getpid()
    assert current_actor() is None


@pytest.mark.ray
def test_ray_with_nothing_to_do(ray_cluster):
    assert list(run_ray([], STAGES)) == []
