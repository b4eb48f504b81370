"""One small Ray for the folder's tests; CPUs are logical, and stages need room beside each other."""

from __future__ import annotations

import contextlib
import os
import warnings

import pytest


@pytest.fixture(scope="session")
def ray_cluster(request):
    """A local Ray with eight logical CPUs. Ray's own warnings while starting are not this project's.

    The S3 server of the tests, where there is one, comes first: workers inherit its address."""
    with contextlib.suppress(pytest.skip.Exception):
        request.getfixturevalue("s3")
    os.environ.setdefault("RAY_DATA_USE_DATASOURCE_V2", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's own 15 starves workers on a machine that has other work
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray
        import ray.data

        ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield ray
        ray.shutdown()
