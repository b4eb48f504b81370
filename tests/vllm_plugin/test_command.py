"""``vllm serve CHECKPOINT`` as a user runs it: the printed command, a chat completion of a page, the draft at work."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from jocr.decoding.vllm_agreement import ours
from jocr.records import PageInput
from tests.vllm_plugin.checkpoints import page, tiny_checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("vllm")
REPO = Path(__file__).resolve().parents[2]
STARTS_WITHIN = 900


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    return tiny_checkpoint(tmp_path / "tiny", 3, 0.6)


@pytest.fixture
def server(checkpoint, tmp_path) -> Iterator[str]:
    """The address of a server that was started by the command, word for word, with a port added."""
    scripts = str(Path(sys.executable).parent)
    environment = {
        **os.environ, "JOCR_CACHE": str(tmp_path), "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPO),
        "PATH": f"{scripts}:{os.environ['PATH']}",
    }  # fmt: skip
    words = [sys.executable, "-m", "jocr.vllm_plugin", str(checkpoint), "2"]
    line = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    assert line.startswith(f"vllm serve {checkpoint} ")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path / "server.log"
    with log.open("w") as out:
        command = f"exec {line} --host 127.0.0.1 --port {port} --dtype float32 --enforce-eager"
        process = subprocess.Popen(command, shell=True, env=environment, cwd=tmp_path, stdout=out, stderr=out,
                                   start_new_session=True)  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{address}/health", process, log)
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()[-4000:]
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"no server within {STARTS_WITHIN} s: {log.read_text()[-4000:]}")


def ask(address: str, checkpoint: Path, sent: PageInput) -> dict:
    """One chat completion with the page's PNG and its instruction."""
    image = {"url": f"data:image/png;base64,{base64.b64encode(sent.png).decode()}"}
    content = [{"type": "image_url", "image_url": image}, {"type": "text", "text": sent.instruction}]
    body = {"model": str(checkpoint), "temperature": 0, "max_tokens": sent.max_tokens, "return_token_ids": True,
            "messages": [{"role": "user", "content": content}]}  # fmt: skip
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


def test_the_printed_command_serves_what_our_own_engine_writes(server, checkpoint):
    sent = [page(seed, max_tokens=40) for seed in (0, 3)]  # one view, nine tiles
    want = ours(checkpoint, sent, 2, backend="torch")
    for one in sent:
        answer = ask(server, checkpoint, one)
        (choice,) = answer["choices"]
        assert tuple(choice["token_ids"]) == want.tokens[one.page_id]
        assert choice["finish_reason"] == "length"
        assert answer["usage"]["prompt_tokens"] == want.prompt_tokens[one.page_id]
    with urllib.request.urlopen(f"{server}/metrics", timeout=10) as response:
        found = re.search(r"(?m)^vllm:spec_decode_num_accepted_tokens_total\{.*\} (\S+)$", response.read().decode())
    assert found
    assert float(found[1]) > 0
