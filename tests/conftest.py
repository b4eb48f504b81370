"""Fixtures that every folder of tests may use."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real documents and golden vectors; tests that need it skip where it is absent."""
    path = Path(os.environ.get("JOCR_SHARED_DATA", REPO.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"no shared data at {path}")
    return path


@pytest.fixture(scope="session")
def s3() -> Iterator[Callable[[], str]]:
    """An S3 server on this machine, set as the endpoint of this process and its children; skips without moto.

    Yields a function that makes a new, empty bucket and returns its name: ``out = f"s3://{s3()}/out"``.
    """
    server_module: Any = pytest.importorskip("moto.server")
    import boto3

    dispatcher = server_module.DomainDispatcherApplication
    answer, one_at_a_time = dispatcher.__call__, threading.Lock()

    def atomic(self: Any, environ: dict[str, Any], start: Any) -> Any:
        """As on S3: moto's own check of If-None-Match and its write are two steps, between which another may write."""
        if "HTTP_IF_NONE_MATCH" not in environ:
            return answer(self, environ, start)
        with one_at_a_time:
            return answer(self, environ, start)

    dispatcher.__call__ = atomic
    server = server_module.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    numbers = itertools.count(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        client = boto3.session.Session().client("s3")

        def new_bucket() -> str:
            name = f"scans-{next(numbers)}"
            client.create_bucket(Bucket=name)
            return name

        yield new_bucket
        client.close()
    server.stop()
    dispatcher.__call__ = answer
