"""vLLM inside the test's own process: no start of a second interpreter for every engine."""

from __future__ import annotations

import os
from typing import Any


def settle() -> None:
    """Environment of an in-process CPU engine; before vLLM is imported.

    vLLM 0.32's CPU build looks into every module's objects when a worker starts, and llvmlite's library object (which
    answers to any name, ``__dict__`` too) breaks that. Engines of ``jocr`` run in a spawned process without llvmlite.
    """
    os.environ.update(
        VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1",
        VLLM_LOGGING_LEVEL="WARNING", OMP_NUM_THREADS="1",
    )  # fmt: skip
    import llvmlite.binding.ffi as ffi
    import vllm.model_executor.models.registry as registry

    ffi._lib_fn_wrapper.get = lambda self, key, default=None: default
    registry._run_in_subprocess = lambda work: work()  # a class is looked at here, not in another interpreter


def engine(arguments: dict[str, Any]) -> Any:
    """An ``LLM`` in this process."""
    from vllm import LLM

    return LLM(**arguments)
