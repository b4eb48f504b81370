"""``load_decoder(engine="vllm")`` as users get it: an engine in a process of its own, which finds the plugin itself."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from jocr.decoding.load import load_decoder
from jocr.decoding.vllm_agreement import ours
from jocr.decoding.vllm_golden import FILE, Golden, find_golden
from jocr.errors import EngineError
from tests.vllm_plugin.checkpoints import pages, tiny_checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("vllm")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny", 3, 0.6)


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch) -> None:
    for name, value in {
        "JOCR_CACHE": str(tmp_path), "VLLM_ENABLE_V1_MULTIPROCESSING": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
        "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)


def test_the_engine_feeds_cancels_falls_silent_and_dies_as_promised(checkpoint):
    """One start for all: it takes half a minute."""
    decoder = load_decoder(str(checkpoint), engine="vllm", depth=2, batch=4, dtype="float32")
    assert decoder.info.engine.startswith("vllm ")
    inputs = pages(14, max_tokens=40)
    done = {t.page_id: t for t in decoder.decode(inputs)}
    want = ours(checkpoint, inputs, 2, backend="torch")
    assert {name: t.tokens for name, t in done.items()} == want.tokens
    assert {name: t.prompt_tokens for name, t in done.items()} == want.prompt_tokens
    assert all(t.stop == "length" for t in done.values())
    assert decoder.speculation.tau > 1

    answers = decoder.decode([*pages(1, max_tokens=1), *pages(7, start=20, max_tokens=1500)])
    assert next(answers).page_id == "page-0"  # the others go on in the engine
    assert decoder.engine.get_num_unfinished_requests() > 0
    answers.close()
    deadline = time.monotonic() + 30
    while decoder.engine.get_num_unfinished_requests() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert decoder.engine.get_num_unfinished_requests() == 0

    processes = decoder.engine.engine_core.resources.engine_manager.processes
    decoder.settings = replace(decoder.settings, stall_seconds=4.0)
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    begun = time.monotonic()
    with pytest.raises(EngineError, match="gave nothing for 4 s with pages in flight"):
        list(decoder.decode(pages(2)))
    assert time.monotonic() - begun < 15
    for process in processes:
        os.kill(process.pid, signal.SIGCONT)
        process.kill()
    begun = time.monotonic()
    with pytest.raises(EngineError, match="died"):
        list(decoder.decode(pages(2)))
    assert time.monotonic() - begun < 10
    decoder.close()


def test_a_golden_page_that_does_not_come_out_refuses_to_start(checkpoint):
    golden = find_golden(checkpoint)
    wrong = tuple(token + 1 for token in golden.tokens) or (7,)
    Golden(golden.revision, golden.prompt, golden.prompt_ids, wrong).write(checkpoint / FILE)
    try:
        with pytest.raises(EngineError, match=r"parts at token 0.*vllm 0\.32\.0 is known good"):
            load_decoder(str(checkpoint), engine="vllm", depth=0, batch=2, dtype="float32")
    finally:
        (checkpoint / FILE).unlink()
