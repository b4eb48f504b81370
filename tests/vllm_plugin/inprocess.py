"""vLLM inside the test's own process: no start of a second interpreter for every engine."""

from __future__ import annotations

import os


def settle() -> None:
    """Environment of an in-process CPU engine; before vLLM is imported."""
    os.environ.update(
        VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1",
        VLLM_LOGGING_LEVEL="WARNING", OMP_NUM_THREADS="1",
    )  # fmt: skip
    import vllm.model_executor.models.registry as registry

    registry._run_in_subprocess = lambda work: work()  # a class is looked at here, not in another interpreter
