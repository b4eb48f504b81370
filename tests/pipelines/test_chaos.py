"""SIGKILL at random moments costs no page; nodes, storage and kills do not change what an archive reads as."""

from __future__ import annotations

import os

import pytest

from jobs.archive_bench import chaos, corpus
from jobs.archive_bench.cluster import Nodes
from jobs.archive_bench.driver import Driver
from jobs.archive_bench.s3 import s3_server, upload
from jobs.archive_bench.verify import verify

pytestmark = pytest.mark.ray
POISON = ("exit", "render_crash", "loop")
QUICK = {"ray__unit": 16, "report__pages": 4, "job__attempts": 2}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """60 pages, and how they must end."""
    work = tmp_path_factory.mktemp("chaos")
    made = corpus.plan(60, POISON)
    corpus.write(made, work / "source")
    return work / "source", corpus.reference(made, work / "reference")


@pytest.fixture(scope="module")
def bucket():
    pytest.importorskip("moto.server")
    with s3_server() as name:
        yield name


@pytest.fixture(scope="module")
def cluster(bucket):
    """Its workers know the S3 server by the environment they are started in."""
    before = dict(os.environ)
    with Nodes(2) as nodes:
        yield nodes
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_no_page_is_lost_or_doubled(cluster, archive, tmp_path, seed):
    source, ends = archive
    trial = chaos.run(seed, cluster, str(source), tmp_path, ends, kills=3, limit=400, **QUICK)
    assert trial.problems == []
    assert len(trial.kills) == 3
    assert trial.unasked == []


def test_three_nodes_and_s3_give_what_one_process_gives(cluster, bucket, archive, tmp_path):
    source, ends = archive
    cluster.count = 3
    cluster.complete()
    out = f"s3://{bucket}/out"
    settings = chaos.settings(upload(source, bucket, "archive"), out, **QUICK)
    driver = Driver(settings, tmp_path / "log", {"RAY_ADDRESS": cluster.address})
    driver.start()
    assert driver.wait(400) == 0, driver.tail()
    assert verify(out, ends).problems == []
