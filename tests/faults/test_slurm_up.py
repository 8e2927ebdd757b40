"""A `maat up` beside a real Slurm: a script that adapts, by the commands of docs/slurm.md."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from slurm_cluster import SlurmCluster
from up_processes import Up
from worker_processes import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).resolve().parent.parent / "agent" / "examples" / "adaptive.py"
EPOCHS = 400


class Service:
    """A running Maat, and its command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.up = Up(folder / "data", 8500, "--no-demo", "--allow-commands")
        self.up.await_ready()
        self.client = httpx.Client(
            base_url=f"{self.up.url}/api/v1", trust_env=False, timeout=PATIENCE_SECONDS
        )

    def maat(self, *words: str) -> str:
        """Run a command of `maat`, and return what it prints."""
        name, *rest = words
        done = subprocess.run(
            [sys.executable, "-m", "maat", name, "--url", self.up.url, *rest],
            cwd=self.folder,
            env={**os.environ, "NO_PROXY": "127.0.0.1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def read(self, path: str) -> Any:
        return self.client.get(path).json()

    def attempts(self, job_id: str) -> list[Any]:
        found: list[Any] = self.read(f"/jobs/{job_id}/attempts")["items"]
        return found


@pytest.fixture
def service(slurm: SlurmCluster, tmp_path: Path) -> Iterator[Service]:
    slurm.settle()
    found = Service(tmp_path)
    yield found
    found.up.kill()
    slurm.settle()


def test_a_script_that_adapts_moves_from_type_to_type_on_slurm(
    service: Service, slurm: SlurmCluster
) -> None:
    pytest.importorskip("torch")
    shared = service.folder / "shared"
    shared.mkdir()
    given = (f"shared_dir={shared}", f"conf={slurm.conf}", "partition=maat")
    parameters = [word for each in given for word in ("--executor-parameter", each)]
    service.maat("create-cluster", "site", "--executor", "slurm", *parameters)
    wait_until(lambda: len(service.read("/clusters/site/nodes")["items"]) == 3, "nodes are found")
    changes = {"round_seconds": 2.0}
    etag = service.client.get("/clusters/site").headers["ETag"]
    service.client.patch("/clusters/site", json=changes, headers={"If-Match": etag})
    text = SCRIPT.read_text().replace("job.epochs(3)", f"job.epochs({EPOCHS})")
    (service.folder / "adaptive.py").write_text(text)
    batch = ("--batch-size", "64", "--max-batch-size", "512")
    run = ("--", sys.executable, "adaptive.py")
    service.maat("submit", *batch, "--stop-seconds", "60", *run)
    job_id = service.read("/jobs")["items"][0]["id"]
    wait_until(
        lambda: any(a["checkpoint_step"] or a["progress"] for a in service.attempts(job_id)),
        "the job gets on",
        log=service.up.folder.with_suffix(".out"),
    )
    first = service.attempts(job_id)[-1]
    for node in [name for name in ("t4-0", "t4-1", "a100-0") if name.startswith(first["gpu_type"])]:
        slurm.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=repair")
    wait_until(
        lambda: (
            service.attempts(job_id)[-1]["gpu_type"] != first["gpu_type"]
            and service.attempts(job_id)[-1]["progress"]
        ),
        "it gets on with the other type",
    )
    wait_until(
        lambda: service.read(f"/jobs/{job_id}")["state"] == "succeeded", "it has done its work"
    )
    moved = next(a for a in service.attempts(job_id) if a["number"] == first["number"])
    assert moved["outcome"] == "stopped"
    assert set(moved["exit_codes"].values()) == {143}
    lines = service.maat("logs", job_id).splitlines()
    assert lines[0].startswith("epoch ")
    assert not lines[0].startswith("epoch 0:"), "it goes on from its checkpoint"
    assert lines[-1].startswith(f"epoch {EPOCHS - 1}: loss")
