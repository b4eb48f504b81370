"""An S3 server in a process of its own, for benchmarks on one machine: moto's, with conditional writes in one step.

``python -m jobs.archive_bench.s3 FILE`` serves, and writes its address to FILE when it is ready.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_SECONDS = 60.0


@contextmanager
def s3_server() -> Iterator[str]:
    """Yields the name of an empty bucket; this process and its children find the server by AWS_ENDPOINT_URL."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "address")
        server = subprocess.Popen([sys.executable, "-m", __name__, str(told)], stderr=subprocess.DEVNULL)
        before = dict(os.environ)
        try:
            end = time.monotonic() + START_SECONDS
            while not told.exists() and time.monotonic() < end:
                time.sleep(0.1)
            keys = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "testing")
            os.environ.update(keys, AWS_ENDPOINT_URL=told.read_text(), AWS_DEFAULT_REGION="us-east-1")
            _client().create_bucket(Bucket="scans")
            yield "scans"
        finally:
            os.environ.clear()
            os.environ.update(before)
            server.kill()
            server.wait()


def upload(folder: Path, bucket: str, prefix: str) -> str:
    """Put the files below ``folder`` under the prefix; its URI."""

    def put(paths: Sequence[Path]) -> None:
        client = _client()
        for path in paths:
            client.put_object(Bucket=bucket, Key=f"{prefix}/{path.relative_to(folder)}", Body=path.read_bytes())

    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, [paths[i::4] for i in range(4)]))
    return f"s3://{bucket}/{prefix}"


def _client() -> Any:
    import boto3

    return boto3.session.Session().client("s3")


def _serve(told: Path) -> None:
    from moto import server

    answer, one_at_a_time = server.DomainDispatcherApplication.__call__, threading.Lock()

    def atomic(self: Any, environ: dict[str, Any], start: Any) -> Any:
        if "HTTP_IF_NONE_MATCH" not in environ:
            return answer(self, environ, start)
        with one_at_a_time:  # moto looks and writes in two steps; S3 does in one
            return answer(self, environ, start)

    server.DomainDispatcherApplication.__call__ = atomic  # type: ignore[method-assign, assignment]
    serving = server.ThreadedMotoServer(port=0, verbose=False)
    serving.start()
    host, port = serving.get_host_and_port()
    draft = told.with_suffix(".draft")
    draft.write_text(f"http://{host}:{port}")
    draft.rename(told)
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1.0)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
