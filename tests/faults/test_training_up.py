"""Commands of a real `maat up`, of which everything is killed but what trains."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from up_processes import Up, command_of, one
from worker_processes import PATIENCE_SECONDS, wait_until

from worker.engines.local import LocalEngine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="starts real attempts")

LAST = 60
COUNTS = f"i=1; while [ $i -le {LAST} ]; do echo $i; i=$((i + 1)); sleep 0.2; done"
FAILS_ONCE = 'test -e "$MARK" && exit 0; touch "$MARK"; kill -9 $$'


class Service:
    """A `maat up` with a cluster of two nodes that runs commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start()
        shape = {"name": "here", "shape": "cpu=2x2", "policy": "fifo", "round_seconds": 1.0}
        made = self.post("/clusters", {**shape, "executor": "local"})
        self.cluster_id = made["id"]

    def start(self) -> None:
        self.up = Up(self.folder / "data", 8400, "--no-demo", "--allow-commands")
        self.up.await_ready()
        self.client = httpx.Client(
            base_url=f"{self.up.url}/api/v1", trust_env=False, timeout=PATIENCE_SECONDS
        )

    def post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def submit(self, script: str, **env: str) -> str:
        run = {"argv": ["/bin/sh", "-c", script], "cwd": str(self.folder), "env": env}
        job = {"name": "job", "model": "sh", "adaptivity": "rigid", "gpu_count": 1, "run": run}
        return str(self.post("/jobs", {**job, "cluster_id": "here"})["id"])

    def job(self, job_id: str) -> Any:
        return self.client.get(f"/jobs/{job_id}").json()

    def attempts(self, job_id: str) -> list[Any]:
        found: list[Any] = self.client.get(f"/jobs/{job_id}/attempts").json()["items"]
        return found

    def log(self, job_id: str) -> str:
        return str(self.client.get(f"/jobs/{job_id}/attempts/1/logs/0").json()["text"])

    def await_state(self, job_id: str, state: str) -> None:
        wait_until(lambda: self.job(job_id)["state"] == state, f"the job is {state}")

    def close(self) -> None:
        self.up.kill()
        LocalEngine(self.up.folder / "training" / self.cluster_id, []).strays([])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    started = Service(tmp_path_factory.mktemp("up"))
    yield started
    started.close()


def test_what_trains_outlives_maat_and_is_taken_up_again_and_nothing_else_outlives_its_supervisor(
    service: Service,
) -> None:
    job_id = service.submit(COUNTS)
    service.await_state(job_id, "running")
    worker = one(pid for pid in service.up.processes() if "-Q rounds" in command_of(pid))
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: "The worker was restarted" in service.up.said, "the worker is there again")
    assert len(service.up.processes()) >= 4
    service.up.process.kill()
    service.up.process.wait()
    wait_until(lambda: service.up.processes() == [], "all processes of Maat end")
    service.start()
    service.await_state(job_id, "succeeded")
    (attempt,) = service.attempts(job_id)
    assert attempt["outcome"] == "succeeded"
    assert service.log(job_id).split() == [str(number) for number in range(1, LAST + 1)]


def test_a_command_that_is_killed_is_started_again_and_ends(service: Service) -> None:
    job_id = service.submit(FAILS_ONCE, MARK=str(service.folder / "mark"))
    service.await_state(job_id, "succeeded")
    outcomes = [attempt["outcome"] for attempt in service.attempts(job_id)]
    assert outcomes == ["failed", "succeeded"]
    assert service.attempts(job_id)[0]["exit_codes"] == {"0": -9}


@pytest.mark.long
def test_maat_says_at_its_end_what_trains_on(service: Service) -> None:
    job_id = service.submit("exec sleep 600")
    service.await_state(job_id, "running")
    service.up.process.terminate()
    assert service.up.process.wait(PATIENCE_SECONDS) == 0
    assert f"1 job trains on: {job_id}." in service.up.said
    service.start()
    service.await_state(job_id, "running")
    assert service.client.post(f"/jobs/{job_id}/actions/cancel").is_success
    service.await_state(job_id, "cancelled")
    service.up.process.terminate()
    assert service.up.process.wait(PATIENCE_SECONDS) == 0
    assert "trains on" not in service.up.said
