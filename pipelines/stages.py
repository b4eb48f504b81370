"""The only adapter to Ray Data. A pipeline is a list of stages; a stage says what it does and what it needs.

Between stages travel the records of ``jocr``, packed into one binary column: Arrow then never has to guess a type from
a column of ``None``. The same list runs without Ray in ``run_local``, which is the meaning the Ray run must keep.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa

from jocr.decoding.memory import keep_freed_memory
from jocr.errors import JocrError
from pipelines.packing import pack, unpack

RECORD = "record"
TRIM = 64  # batches of results after which the driver gives memory back
ATTEMPTS = 2  # retries of a task whose process died; more would run a deadly page for ever
KEPT = 256 << 20  # bytes that a worker process may hold between two records
BLOCKS = 4096  # most input blocks, where a run does not say: beyond it, planning costs the driver more than it spreads


@dataclass(frozen=True)
class FunctionStage:
    """A stateless function from one record to any number of records."""

    name: str
    function: Callable[[Any], Iterable[Any]]
    cpus: float = 1.0
    batch: int = 16  # records per call into Python; does not change the result
    tasks: int | None = None  # at a time; None: as Ray finds room
    retries: int = ATTEMPTS  # of a task whose process died


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
    max_actors: int | None = None  # let the pool grow to so many; None: it stays as it is
    calls: int = 1  # batches that one actor works on at a time, a thread each; above 1 what is called must stand that
    retries: int | None = ATTEMPTS  # of a batch whose actor died; None: endless, where the stage itself ends them


Stage = FunctionStage | ActorStage


def run_local(records: Iterable[Any], stages: Sequence[Stage]) -> Iterator[Any]:
    """The pipeline in this process, lazily."""
    stream: Iterator[Any] = iter(records)
    for stage in stages:
        stream = _local(stage, stream)
    return stream


def run_ray(records: Sequence[Any], stages: Sequence[Stage], *, blocks: int | None = 64) -> Iterator[Any]:
    """The pipeline on the Ray cluster this process is connected to. Output order is not input order.

    Args:
        blocks: input blocks, which are the units of scheduling; None for one per record, at most ``BLOCKS``.

    Raises:
        the first error of a stage, when its retries are used up.
    """
    import ray.data

    if not records:
        return
    rows = [{RECORD: pack(record).tobytes()} for record in records]
    dataset = ray.data.from_items(rows, override_num_blocks=min(len(rows), blocks or BLOCKS))
    for stage in stages:
        dataset = _attach(dataset, stage)
    try:
        for number, batch in enumerate(
            dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
        ):
            yield from _unpack(batch)
            if number % TRIM == TRIM - 1:
                _trim()
    finally:
        _trim()


@cache
def _keep() -> None:
    """Let a worker process keep a record's memory for the next: it takes tens of MB in and out for each, and mapped
    anew every time they cost seven times what copying them does. A decoder may ask for more afterwards."""
    keep_freed_memory(KEPT)


def _trim() -> None:
    """Give memory that was freed back to the system: a driver's allocator keeps some 10 kB a record for itself."""
    with suppress(OSError, AttributeError):  # another libc than glibc
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def call_ray(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)`` as one task on a worker: for what needs files or memory that the driver may not have."""
    import ray

    return ray.get(ray.remote(num_cpus=1, max_retries=ATTEMPTS)(_apply).remote(function, *args))


def _apply(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)  # Ray takes plain functions only, no built-in one and no ``partial``


def current_actor() -> str | None:
    """Name of the Ray actor this runs in, the same through its restarts; None outside of one."""
    if not on_cluster():
        return None
    import ray

    return ray.get_runtime_context().get_actor_id()


def current_task() -> str:
    """Id of the Ray task this runs in, the same through its retries; empty outside of one."""
    if not on_cluster():
        return ""
    import ray

    return ray.get_runtime_context().get_task_id() or ""


def restarted() -> bool:
    """Whether the Ray actor this runs in died before and was started again."""
    import ray

    return current_actor() is not None and ray.get_runtime_context().was_current_actor_reconstructed


def on_cluster() -> bool:
    """Whether this process belongs to a Ray cluster."""
    ray = sys.modules.get("ray")  # who never imported it does not
    return ray is not None and ray.is_initialized()


def _local(stage: Stage, stream: Iterator[Any]) -> Iterator[Any]:
    if isinstance(stage, FunctionStage):
        for record in stream:
            yield from stage.function(record)
        return
    call = _Counted(stage)
    for batch in _batches(stream, stage.batch):
        yield from call(batch)


def _attach(dataset: Any, stage: Stage) -> Any:
    from ray.data import TaskPoolStrategy

    common: dict[str, Any] = {"batch_size": stage.batch, "batch_format": "pyarrow", "num_cpus": stage.cpus}
    if isinstance(stage, ActorStage):
        retries = -1 if stage.retries is None else stage.retries
        common |= {"fn_constructor_args": (stage,), "compute": _pool(stage), "num_gpus": stage.gpus or None}
        actor = type(stage.name, (_Actor,), {})
        return _map(dataset, actor, common, {"max_restarts": retries, "max_task_retries": retries})
    if stage.tasks is not None:
        common["compute"] = TaskPoolStrategy(size=stage.tasks)
    return _map(dataset, _task(stage), common, {"max_retries": stage.retries})


def _pool(stage: ActorStage) -> Any:
    """Sizes are given explicitly: a pool of GPU actors does not grow from nothing. One batch more than an actor works
    on waits at it, so that it never idles for the driver's sake."""
    from ray.data import ActorPoolStrategy

    return ActorPoolStrategy(
        min_size=stage.actors,
        max_size=max(stage.actors, stage.max_actors or stage.actors),
        initial_size=stage.actors,
        max_concurrent_calls_per_actor=stage.calls,
        max_tasks_in_flight_per_actor=stage.calls + 1,
        enable_true_multi_threading=stage.calls > 1,
    )


def _map(dataset: Any, function: Any, common: dict[str, Any], retries: dict[str, int]) -> Any:
    """``map_batches`` with bounded retries: Ray's default is endless, its only way to say so is announced to go, and
    there is no other yet."""
    from ray.util.annotations import RayDeprecationWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RayDeprecationWarning)
        return dataset.map_batches(function, **common, **retries)


def _task(stage: FunctionStage) -> Callable[[pa.Table], Iterator[pa.Table]]:
    def call(batch: pa.Table) -> Iterator[pa.Table]:
        _keep()
        for record in _local(stage, _unpack(batch)):
            yield _pack(record)

    call.__name__ = call.__qualname__ = stage.name
    return call


class _Actor:
    """A Ray Data actor around an ``ActorStage``. ``os.environ`` keeps native thread pools to the CPUs it was given."""

    def __init__(self, stage: ActorStage) -> None:
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, int(stage.cpus))))
        _keep()
        self._call = _Counted(stage)

    def __call__(self, batch: pa.Table) -> Iterator[pa.Table]:
        for record in self._call(list(_unpack(batch))):
            yield _pack(record)


@dataclass
class _Counted:
    """Calls the stage and holds it to its promise: as many records out as in."""

    stage: ActorStage
    _made: Callable[[Iterable[Any]], Iterator[Any]] | None = field(default=None, init=False)
    _making: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __call__(self, batch: list[Any]) -> Iterator[Any]:
        with self._making:
            made = self._made = self._made or self.stage.factory()
        given = 0
        for record in made(batch):
            given += 1
            yield record
        if given != len(batch):
            raise RuntimeError(f"stage {self.stage.name}: {len(batch)} records in, {given} out")


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
    """One record as a table; its bytes, tens of MB where it holds page images, are not copied again."""
    data = pack(record)
    buffers = [None, pa.py_buffer(struct.pack("=qq", 0, len(data))), pa.py_buffer(data)]
    return pa.table({RECORD: pa.Array.from_buffers(pa.large_binary(), 1, buffers)})


def _unpack(batch: pa.Table) -> Iterator[Any]:
    for value in batch[RECORD]:
        yield unpack(memoryview(value.as_buffer()))


def project_error(error: BaseException | None) -> JocrError | None:
    """The error of this project behind ``error``: Ray wraps what a task raises, once or more, also in a class that
    inherits from the error's own and says a whole traceback."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        cause = getattr(error, "cause", None)
        if isinstance(error, JocrError) and not isinstance(cause, JocrError):
            return error
        error = cause or error.__cause__ or error.__context__
    return None
