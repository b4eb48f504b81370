"""The only adapter to Ray Data. A pipeline is a list of stages; a stage says what it does and what it needs.

Between stages travel the records of ``jocr``, packed into one binary column: Arrow then never has to guess a type from
a column of ``None``. The same list runs without Ray in ``run_local``, which is the meaning the Ray run must keep.
"""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

RECORD = "record"
ATTEMPTS = 2  # retries of a task whose process died; more would run a deadly page for ever


@dataclass(frozen=True)
class FunctionStage:
    """A stateless function from one record to any number of records."""

    name: str
    function: Callable[[Any], Iterable[Any]]
    cpus: float = 1.0
    batch: int = 16  # records per call into Python; does not change the result


@dataclass(frozen=True)
class ActorStage:
    """Something made once per actor (weights), called with a batch, which gives back one record for each it was given,
    in any order, as soon as it is ready."""

    name: str
    factory: Callable[[], Callable[[Iterable[Any]], Iterator[Any]]]
    actors: int = 1
    cpus: float = 1.0
    gpus: float = 0.0
    batch: int = 64


@dataclass(frozen=True)
class SinkStage:
    """Takes batches, writes them somewhere under a name derived from their content, returns one receipt each."""

    name: str
    write: Callable[[list[Any]], Any]
    cpus: float = 0.25
    batch: int = 256


@dataclass(frozen=True)
class Spread:
    """Cut the stream into blocks of ``records``, so that one document's pages can go to many workers."""

    records: int


Stage = FunctionStage | ActorStage | SinkStage | Spread


def run_local(records: Iterable[Any], stages: Sequence[Stage]) -> Iterator[Any]:
    """The pipeline in this process, lazily."""
    stream: Iterator[Any] = iter(records)
    for stage in stages:
        if not isinstance(stage, Spread):
            stream = _local(stage, stream)
    return stream


def run_ray(records: Sequence[Any], stages: Sequence[Stage]) -> Iterator[Any]:
    """The pipeline on the Ray cluster this process is connected to. Output order is not input order.

    Raises:
        the first error of a stage, when its retries are used up.
    """
    import ray.data

    if not records:
        return
    rows = [{RECORD: pickle.dumps(record)} for record in records]
    dataset = ray.data.from_items(rows, override_num_blocks=min(len(rows), 64))
    for stage in stages:
        dataset = _attach(dataset, stage)
    for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
        yield from _unpack(batch)


def _local(stage: FunctionStage | ActorStage | SinkStage, stream: Iterator[Any]) -> Iterator[Any]:
    if isinstance(stage, FunctionStage):
        for record in stream:
            yield from stage.function(record)
        return
    call = _Counted(stage) if isinstance(stage, ActorStage) else _written(stage)
    for batch in _batches(stream, stage.batch):
        yield from call(batch)


def _attach(dataset: Any, stage: Stage) -> Any:
    from ray.data import ActorPoolStrategy

    if isinstance(stage, Spread):
        return dataset.repartition(target_num_rows_per_block=stage.records)
    common = {"batch_size": stage.batch, "batch_format": "pyarrow", "num_cpus": stage.cpus}
    if isinstance(stage, ActorStage):
        pool = ActorPoolStrategy(size=stage.actors)
        retries = {"max_restarts": ATTEMPTS, "max_task_retries": ATTEMPTS}
        common |= {"fn_constructor_args": (stage,), "compute": pool, "num_gpus": stage.gpus or None}
        return _map(dataset, type(stage.name, (_Actor,), {}), common, retries)
    return _map(dataset, _task(stage), common, {"max_retries": ATTEMPTS})


def _map(dataset: Any, function: Any, common: dict[str, Any], retries: dict[str, int]) -> Any:
    """``map_batches`` with bounded retries: Ray's default is endless, its only way to say so is announced to go, and
    there is no other yet."""
    from ray.util.annotations import RayDeprecationWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RayDeprecationWarning)
        return dataset.map_batches(function, **common, **retries)


def _task(stage: FunctionStage | SinkStage) -> Callable[[pa.Table], Iterator[pa.Table]]:
    def call(batch: pa.Table) -> Iterator[pa.Table]:
        for record in _local(stage, _unpack(batch)):
            yield _pack(record)

    call.__name__ = call.__qualname__ = stage.name
    return call


class _Actor:
    """A Ray Data actor around an ``ActorStage``. ``os.environ`` keeps native thread pools to the CPUs it was given."""

    def __init__(self, stage: ActorStage) -> None:
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, int(stage.cpus))))
        self._call = _Counted(stage)

    def __call__(self, batch: pa.Table) -> Iterator[pa.Table]:
        for record in self._call(list(_unpack(batch))):
            yield _pack(record)


@dataclass
class _Counted:
    """Calls the stage and holds it to its promise: as many records out as in."""

    stage: ActorStage
    _made: Callable[[Iterable[Any]], Iterator[Any]] | None = field(default=None, init=False)

    def __call__(self, batch: list[Any]) -> Iterator[Any]:
        if self._made is None:
            self._made = self.stage.factory()
        given = 0
        for record in self._made(batch):
            given += 1
            yield record
        if given != len(batch):
            raise RuntimeError(f"stage {self.stage.name}: {len(batch)} records in, {given} out")


def _written(stage: SinkStage) -> Callable[[list[Any]], Iterator[Any]]:
    return lambda batch: iter((stage.write(batch),))


def _batches(stream: Iterator[Any], size: int) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for record in stream:
        batch.append(record)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _pack(record: Any) -> pa.Table:
    return pa.table({RECORD: pa.array([pickle.dumps(record)], pa.large_binary())})


def _unpack(batch: pa.Table) -> Iterator[Any]:
    for value in batch[RECORD]:
        yield pickle.loads(value.as_py())
