"""The decoder in a Ray actor and in a bare Serve replica: same text, leaving frees it, its death is a typed error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jocr.decoding.vllm_agreement import ours
from jocr.errors import EngineError
from tests.vllm_plugin.actor import Reader, Replica
from tests.vllm_plugin.checkpoints import pages, tiny_checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("vllm")
ray = pytest.importorskip("ray")
REPO = Path(__file__).resolve().parents[2]
SECONDS = 15  # in which a dead engine must have been noticed


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny", 3, 1.3)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[None]:
    environment = {
        "JOCR_CACHE": str(tmp_path_factory.mktemp("cache")), "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPO), "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine's process without one more for its only worker
    }  # fmt: skip
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": environment}, log_to_driver=False)
    yield
    ray.shutdown()


def test_an_actor_reads_cancels_and_reports_a_dead_engine(cluster, checkpoint):
    reader = ray.remote(num_cpus=1)(Reader).remote(str(checkpoint))
    inputs = pages(6, max_tokens=30)
    assert ray.get(reader.read.remote(inputs)) == ours(checkpoint, inputs, 1, backend="torch").tokens
    assert ray.get(reader.leave_early.remote([*pages(1, max_tokens=1), *pages(3, 20, max_tokens=1500)])) == 0
    ray.get(reader.kill_engine.remote())
    begun = time.monotonic()
    with pytest.raises(EngineError, match="died"):
        ray.get(reader.read.remote(inputs))
    assert time.monotonic() - begun < SECONDS
    ray.kill(reader)


@pytest.mark.slow
def test_a_serve_replica_answers_frees_what_is_cancelled_and_reports_a_dead_engine(cluster, checkpoint):
    serve = pytest.importorskip("ray.serve")
    pytest.importorskip("ray.serve._private.controller")  # there only with the extra `serve`
    serve.start(proxy_location="Disabled")
    try:
        bounds = {"max_ongoing_requests": 8, "max_queued_requests": 8, "ray_actor_options": {"num_cpus": 1}}
        handle = serve.run(serve.deployment(Replica, **bounds).bind(str(checkpoint)), route_prefix=None)
        inputs = pages(6, max_tokens=30)
        answers = [handle.remote(page) for page in inputs]
        found = {page.page_id: answer.result() for page, answer in zip(inputs, answers, strict=True)}
        assert found == ours(checkpoint, inputs, 1, backend="torch").tokens

        long = [handle.remote(page) for page in pages(2, 20, max_tokens=1500)]
        assert becomes(2, lambda: handle.running.remote().result())
        for answer in long:
            answer.cancel()
        assert becomes(0, lambda: handle.running.remote().result())

        (unanswered,) = [handle.remote(page) for page in pages(1, 30, max_tokens=1500)]
        assert becomes(1, lambda: handle.running.remote().result())
        handle.kill.remote().result()
        begun = time.monotonic()
        for answer in (unanswered, handle.remote(inputs[0])):
            with pytest.raises(EngineError, match="died"):
                answer.result(timeout_s=SECONDS)
        assert time.monotonic() - begun < SECONDS
    finally:
        serve.shutdown()


def becomes(wanted: int, count: Callable[[], int]) -> bool:
    deadline = time.monotonic() + 30
    while count() != wanted and time.monotonic() < deadline:
        time.sleep(0.02)
    return count() == wanted
