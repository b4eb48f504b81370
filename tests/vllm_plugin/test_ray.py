"""The decoder inside a Ray actor: it starts there too, leaving early frees the engine, its death is a typed error."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from jocr.decoding.vllm_agreement import ours
from jocr.errors import EngineError
from tests.vllm_plugin.actor import Reader
from tests.vllm_plugin.checkpoints import pages, tiny_checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("vllm")
ray = pytest.importorskip("ray")
REPO = Path(__file__).resolve().parents[2]


def test_an_actor_reads_cancels_and_reports_a_dead_engine(tmp_path):
    checkpoint = tiny_checkpoint(tmp_path / "tiny", 3, 1.3)
    environment = {
        "JOCR_CACHE": str(tmp_path), "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(REPO), "VLLM_LOGGING_LEVEL": "WARNING",
    }  # fmt: skip
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": environment}, log_to_driver=False)
    try:
        reader = ray.remote(num_cpus=1)(Reader).remote(str(checkpoint))
        inputs = pages(6, max_tokens=30)
        assert ray.get(reader.read.remote(inputs)) == ours(checkpoint, inputs, 1, backend="torch").tokens
        assert ray.get(reader.leave_early.remote([*pages(1, max_tokens=1), *pages(3, 20, max_tokens=1500)])) == 0
        ray.get(reader.kill_engine.remote())
        begun = time.monotonic()
        with pytest.raises(EngineError, match="died"):
            ray.get(reader.read.remote(inputs))
        assert time.monotonic() - begun < 15
    finally:
        ray.shutdown()
