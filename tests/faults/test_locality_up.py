"""Two agents on emulated devices of a real `maat up`: what nodes apart cost them is measured."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from up_processes import Up
from worker_processes import PATIENCE_SECONDS, wait_until

from maat.client import Client
from maat.demo.jobs import JOBS
from worker.engines.local import LocalEngine

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="starts real attempts"),
    pytest.mark.needs_torch,
]

PLANTED = JOBS["digits"].across_nodes
NODES = {"pair": 2, "left": 1, "right": 1}


@pytest.fixture
def maat(tmp_path: Path) -> Iterator[Client]:
    """A cluster under PAL of one node for two processes, and of two nodes for one each."""
    pytest.importorskip("torch")
    up = Up(tmp_path / "data", 8471, "--no-demo", "--allow-commands")
    up.await_ready()
    with Client(up.url, timeout_seconds=PATIENCE_SECONDS) as client:
        nodes = [
            {"name": name, "gpu_type": "t4", "gpu_count": count} for name, count in NODES.items()
        ]
        body = {"name": "apart", "nodes": nodes, "policy": "fifo", "placer": "pal"}
        cluster = client.create_cluster({**body, "round_seconds": 2.0, "executor": "local"})
        yield client
        up.kill()
        LocalEngine(up.folder / "training" / cluster["id"], []).strays([])


def submit(maat: Client, folder: Path) -> str:
    root = Path(__file__).resolve().parents[2]
    run = {
        "argv": [sys.executable, "-m", "maat.demo.digits"],
        "cwd": str(folder),
        "env": {"EPOCHS": "1000", "PYTHONPATH": str(root)},
    }
    job = {"name": "digits", "model": "digits", "cluster_id": "apart", "adaptivity": "rigid"}
    return str(maat.submit_job({**job, "gpu_count": 2, "batch_size": 32, "run": run})["id"])


def test_a_planted_slowdown_across_nodes_is_measured_from_reports_and_explains_both_jobs(
    maat: Client, tmp_path: Path
) -> None:
    within, across = submit(maat, tmp_path), submit(maat, tmp_path)

    def penalty() -> Any:
        (known,) = maat.belief(across)["locality"]
        return known

    wait_until(lambda: penalty()["origin"] == "measured", "both ways are measured")
    attempts = [maat.attempts(job_id)[-1]["gpus_by_node"] for job_id in (within, across)]
    assert sorted(len(gpus) for gpus in attempts) == [1, 2]
    assert penalty()["penalty"] == pytest.approx(PLANTED, rel=0.15)
    assert penalty()["configurations"] == 1
    for job_id in (within, across):
        explained = maat.explanation(job_id)["locality"]
        assert explained is not None
        assert explained["penalty"] == pytest.approx(PLANTED, rel=0.15)
