"""Two agents that slow each other on one GPU of a real `maat up`: measured, and decided by."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from up_processes import Up, clean_environment
from worker_processes import PATIENCE_SECONDS, wait_until

from frontend.pages.cluster.slowdowns import slowdowns_view
from maat.client import Client
from worker.engines.local import LocalEngine

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="starts real attempts"),
    pytest.mark.needs_torch,
]

SCRIPT = Path(__file__).with_name("sharing_script.py")
ROUND_SECONDS = 2.0
LATER = 5  # rounds, in which nothing is to change


class OneGpu:
    """A `maat up` whose cluster has one GPU for two jobs, under SJF-BSBF."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.gpu = folder, folder / "gpu"
        self.gpu.mkdir()
        self.up = Up(folder / "data", 8470, "--no-demo", "--allow-commands")
        self.up.await_ready()
        self.maat = Client(self.up.url, timeout_seconds=PATIENCE_SECONDS)
        body = {"name": "one", "shape": "t4=1x1", "policy": "sjf-bsbf", "jobs_per_gpu": 2}
        self.cluster_id = self.maat.create_cluster(
            {**body, "round_seconds": ROUND_SECONDS, "executor": "local"}
        )["id"]

    def submit(self, model: str, xi: float, *, epochs: int = 1000) -> str:
        root = Path(__file__).resolve().parents[2]
        env = {
            "GPU": str(self.gpu),
            "NAME": model,
            "XI": str(xi),
            "EPOCHS": str(epochs),
            "PYTHONPATH": str(root),
        }
        argv = [sys.executable, str(SCRIPT)]
        job = {
            "name": model,
            "model": model,
            "cluster_id": "one",
            "adaptivity": "strong-scaling",
            "batch_size": 32,
            "max_gpus": 1,
            "run": {"argv": argv, "cwd": str(self.folder), "env": env, "profile": False},
        }
        return str(self.maat.submit_job(job)["id"])

    def state(self, job_id: str) -> str:
        return str(self.maat.job(job_id)["state"])

    def attempts(self, job_id: str) -> list[Any]:
        return list(self.maat.attempts(job_id))

    def slowdowns(self) -> list[Any]:
        return list(self.maat.slowdowns(self.cluster_id))

    def last_round(self) -> int:
        return self.up.last_round()

    def later(self) -> None:
        """Wait for rounds in which something could change."""
        until = self.last_round() + LATER
        wait_until(lambda: self.last_round() >= until, "rounds go on")

    def await_that(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, what, log=self.up.folder.with_suffix(".out"))

    def close(self) -> None:
        self.maat.close()
        self.up.kill()
        LocalEngine(self.up.folder / "training" / self.cluster_id, []).strays([])


@pytest.fixture
def one_gpu(tmp_path: Path) -> Iterator[OneGpu]:
    pytest.importorskip("torch")
    started = OneGpu(tmp_path)
    yield started
    started.close()


def said_by_the_command_line(one_gpu: OneGpu) -> list[Any]:
    command = [sys.executable, "-m", "maat", "slowdowns", "--cluster", "one", "--json"]
    done = subprocess.run(
        [*command, "--url", one_gpu.up.url],
        capture_output=True,
        check=True,
        env=clean_environment(),
    )
    found: list[Any] = json.loads(done.stdout)
    return found


def share(one_gpu: OneGpu, xi_long: float, xi_new: float) -> tuple[str, str]:
    """Let a job train alone, and another join it within two rounds of its submission.

    An earlier job of the newcomer's model has shown what its steps take alone.
    """
    pilot = one_gpu.submit("new", xi_new, epochs=8)
    one_gpu.await_that(lambda: one_gpu.state(pilot) == "succeeded", "the pilot ends")
    long = one_gpu.submit("long", xi_long)
    one_gpu.await_that(lambda: bool(one_gpu.maat.belief(long)["types"]), "its speed alone is known")
    before = one_gpu.last_round()
    new = one_gpu.submit("new", xi_new)
    one_gpu.await_that(lambda: one_gpu.state(new) == "running", "both train")
    assert one_gpu.attempts(new)[0]["round_number"] <= before + 2
    assert one_gpu.state(long) == "running"
    return long, new


def slowdowns(one_gpu: OneGpu) -> dict[str, float]:
    """Return the measured slowdowns by the model slowed, as all places show them."""
    found = one_gpu.slowdowns()
    assert {(one["victim"], one["partner"]) for one in found} == {("long", "new"), ("new", "long")}
    by_model = {one["victim"]: one["slowdown"] for one in found}
    said = {one["victim"]: one["slowdown"] for one in said_by_the_command_line(one_gpu)}
    assert said == pytest.approx(by_model, rel=0.02), "the same table a moment later"
    shown = str(slowdowns_view(found))
    assert all(f"{xi:.2f}" in shown for xi in by_model.values())
    return by_model


def test_a_pair_that_loses_is_measured_parted_and_not_joined_again(one_gpu: OneGpu) -> None:
    long, new = share(one_gpu, 2.5, 2.5)
    one_gpu.await_that(lambda: one_gpu.state(new) == "preempted", "they are parted")
    assert slowdowns(one_gpu) == pytest.approx({"long": 2.5, "new": 2.5}, rel=0.05)
    assert any(one["is_used"] for one in one_gpu.slowdowns())
    assert one_gpu.maat.job(new)["reason"]["code"] == "SHARING_NO_GAIN"
    one_gpu.later()
    assert [one["stop_reason"] for one in one_gpu.attempts(new)] == ["preempted"]
    assert [one["stop_reason"] for one in one_gpu.attempts(long)] == [None]
    one_gpu.maat.cancel_job(long)
    one_gpu.await_that(lambda: one_gpu.state(new) == "running", "it has the GPU alone")


@pytest.mark.long
@pytest.mark.parametrize(("xi_long", "xi_new"), [(1.1, 1.2), (1.1, 1.5)])
def test_a_pair_that_gains_is_measured_and_shares_on(
    one_gpu: OneGpu, xi_long: float, xi_new: float
) -> None:
    both = share(one_gpu, xi_long, xi_new)
    one_gpu.await_that(
        lambda: sum(one["is_used"] for one in one_gpu.slowdowns()) == 2, "both are measured"
    )
    one_gpu.later()
    assert slowdowns(one_gpu) == pytest.approx({"long": xi_long, "new": xi_new}, rel=0.05)
    for job_id in both:
        (attempt,) = one_gpu.attempts(job_id)
        assert attempt["stop_reason"] is None
        assert one_gpu.state(job_id) == "running"
