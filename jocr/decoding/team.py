"""Several threads in one compiled call: each takes its share of the panels and heads, and all meet at barriers.

Every thread runs the same function on the same arrays. What a row or an element needs is computed by one thread, or by
all of them alike, in the same order whatever their number; so the number changes no result.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

Team = namedtuple("Team", "me size met")
"""This thread's number, how many there are, and a counter of arrivals at barriers."""

SPINS = 2000  # looks at the counter before the core is offered to others at every look
LONG = ir.IntType(64)

_give_way = types.ExternalFunction("sched_yield", types.int32())


@intrinsic
def _arrive(typingctx: Any, counter: Any) -> Any:
    """Add one to an int64 array's first element; what it was."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", place, LONG(1), "seq_cst")

    return types.int64(counter), emit


@intrinsic
def _look(typingctx: Any, counter: Any) -> Any:
    """An int64 array's first element, read anew."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.load_atomic(place, "seq_cst", 8)

    return types.int64(counter), emit


@njit(cache=True)
def barrier(t):
    """Wait until every thread of the team has come here."""
    if t.size == 1:
        return
    goal = (_arrive(t.met) // t.size + 1) * t.size
    looks = 0
    while _look(t.met) < goal:
        looks += 1
        if looks > SPINS:
            _give_way()


@njit(cache=True, inline="always")
def share(count, t):
    """(first, end) of this thread's part of ``count`` things."""
    return t.me * count // t.size, (t.me + 1) * count // t.size


class Crew:
    """The threads of a team; the calling thread is its first. They are started by the first call that needs them."""

    def __init__(self, size: int) -> None:
        met = np.zeros(1, np.int64)
        self.teams = [Team(i, size, met) for i in range(size)]
        self._pool: ThreadPoolExecutor | None = None

    def run(self, function: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]]) -> None:
        """Call ``function(*arguments(i), team)`` in thread i, for all of them at once."""
        if len(self.teams) > 1 and self._pool is None:
            self._pool = ThreadPoolExecutor(len(self.teams) - 1, "decode")
        others = [self._pool.submit(function, *arguments(t.me), t) for t in self.teams[1:]] if self._pool else []
        function(*arguments(0), self.teams[0])
        for other in others:
            other.result()
