"""``jocr bench decode --engine vllm`` end to end: what it measures is what ``--depth auto`` uses from then on."""

from __future__ import annotations

import json

import pytest

from jocr.decoding import vllm_load
from jocr.decoding.vllm_depth import load_table, pick_depth, table_path
from jocr.evaluation import bench_vllm
from jocr.model.hub import revision
from tests.vllm_plugin.checkpoints import tiny_checkpoint
from tests.vllm_plugin.inprocess import settle

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("vllm")


def test_the_measured_table_decides_the_depth(tmp_path, monkeypatch):
    monkeypatch.setenv("JOCR_CACHE", str(tmp_path / "cache"))
    settle()
    checkpoint, out = tiny_checkpoint(tmp_path / "tiny", 3, 0.3), tmp_path / "rows.json"
    code = bench_vllm.run(json_path=out, model=str(checkpoint), pages=2, depths=(0, 2), concurrencies=(1, 3), tokens=24,
                          modes=(True,))  # fmt: skip
    found = json.loads(out.read_text())
    assert code == 0
    assert found["not_measured"] == {}
    plain, drafted = found["table_8"]
    assert (plain["depth"], drafted["depth"]) == (0, 2)
    assert drafted["tau"] > 2.5  # a clear checkpoint keeps nearly all of two proposals
    assert drafted["step_cost"] == pytest.approx(drafted["tau"] / drafted["speedup"])
    assert [(r["depth"], r["concurrency"], r["pages"]) for r in found["table_7"]] == [
        (0, 1, 1),
        (0, 3, 3),
        (2, 1, 1),
        (2, 3, 3),
    ]
    assert found["provenance"]["versions"]
    stamp = revision(checkpoint)
    table = load_table(table_path(vllm_load.device_name(), stamp, True))
    best = {
        n: max((r["tokens_per_second"], r["depth"]) for r in found["table_7"] if r["concurrency"] == n)[1]
        for n in (1, 3)
    }
    assert table == best
    for batch in (1, 2, 3, 50):
        assert vllm_load._depth("auto", checkpoint, stamp, "cpu", batch, True) == pick_depth(batch, best)


@pytest.mark.slow
def test_a_whole_engine_of_the_published_size_runs_plain_and_with_the_draft(tmp_path, monkeypatch):
    """Random bf16 weights, 9 GB of memory: every layer, tower and head at its published shape."""
    monkeypatch.setenv("JOCR_CACHE", str(tmp_path / "cache"))
    settle()
    out = tmp_path / "rows.json"
    code = bench_vllm.run(json_path=out, published_size=True, pages=1, depths=(0, 1), concurrencies=(1,), tokens=4,
                          modes=(True,))  # fmt: skip
    found = json.loads(out.read_text())
    assert code == 0
    assert [row["depth"] for row in found["table_8"]] == [0, 1]
    assert found["table_8"][1]["tau"] >= 1
    assert all(start["memory"] > 6 << 30 for start in found["starts"])
