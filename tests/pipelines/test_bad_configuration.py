"""Bad configuration ends the parse job in seconds, with one sentence that says the remedy, and writes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
EXAMPLES = str(REPO / "jocr" / "data" / "examples")
SECONDS = 60  # of a machine that has other work; alone it is 2


def job(*sets, env=None):
    """(exit code, what standard error said) of ``python -m jobs.parse``."""
    words = [word for text in ("model.name=fake", *sets) for word in ("--set", text)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(env or {})}
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "jobs.parse", *words],
        capture_output=True, text=True, timeout=120, cwd=REPO, env=environment, check=False,
    )  # fmt: skip
    assert time.monotonic() - begin < SECONDS
    return done.returncode, done.stderr


def refused(answer, *words):
    code, said = answer
    assert code == 2, said
    assert "Traceback" not in said
    last = said.strip().splitlines()[-1]
    assert last.startswith("jobs: ")
    for word in words:
        assert word in last, last


def test_an_unknown_key(tmp_path):
    refused(job(f"sources=['{EXAMPLES}']", f"out={tmp_path}/out", "ray.units=64"), "did you mean 'ray.unit'")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_output_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    refused(job(f"sources=['{EXAMPLES}']", f"out={tmp_path}/file/out"), f"{tmp_path}/file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
def test_sources_that_are_not_there(tmp_path):
    refused(job(f"sources=['{tmp_path}/nowhere']", f"out={tmp_path}/out"), "nowhere", "check the path")
    assert list(tmp_path.iterdir()) == []


def test_two_documents_that_would_write_one_file(tmp_path):
    (tmp_path / "a" / "page.png.md").mkdir(parents=True)
    (tmp_path / "a" / "page.png.md" / "x.png").write_bytes(Path(EXAMPLES, "harbour.png").read_bytes())
    (tmp_path / "a" / "page.png").write_bytes(Path(EXAMPLES, "harbour.png").read_bytes())
    answer = job(f"sources=['{tmp_path}/a']", f"out={tmp_path}/out")
    refused(answer, "page.png.md", "rename one")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.slow
def test_a_bucket_that_cannot_be_read(s3, tmp_path):
    s3()
    refused(job("sources=['s3://no-such-bucket/scans/']", f"out={tmp_path}/out"), "s3://no-such-bucket/scans/", "ucket")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_bucket_that_cannot_be_written(s3, tmp_path):
    s3()
    refused(job(f"sources=['{EXAMPLES}']", "out=s3://no-such-bucket/out"), "s3://no-such-bucket/out")


class _Denied(BaseHTTPRequestHandler):
    """An S3 endpoint that knows the credentials and lets them do nothing."""

    def _answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer

    def log_message(self, *_):
        pass


@pytest.fixture
def denied():
    """The environment of a job that talks to such an endpoint."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Denied)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "AWS_ACCESS_KEY_ID": "known",
        "AWS_SECRET_ACCESS_KEY": "known", "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    server.shutdown()
    server.server_close()


def test_a_bucket_whose_reading_is_not_allowed(denied, tmp_path):
    answer = job("sources=['s3://theirs/scans/']", f"out={tmp_path}/out", env=denied)
    refused(answer, "s3://theirs/scans/", "AccessDenied", "grant s3:ListBucket on bucket 'theirs'")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_bucket_whose_writing_is_not_allowed(denied):
    answer = job(f"sources=['{EXAMPLES}']", "out=s3://theirs/out", env=denied)
    refused(answer, "s3://theirs/out", "AccessDenied", "grant s3:PutObject on bucket 'theirs'")
