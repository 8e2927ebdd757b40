"""Commands of one real `maat up`: what outlives it, and what their agents' reports decide."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from up_processes import Up, clean_environment, command_of, one
from worker_processes import PATIENCE_SECONDS, wait_until

from frontend.pages.cluster.slowdowns import slowdowns_view
from maat.client import Client
from maat.demo.jobs import JOBS
from worker.engines.local import LocalEngine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="starts real attempts")

ROOT = Path(__file__).resolve().parents[2]
LAST = 60
COUNTS = f"i=1; while [ $i -le {LAST} ]; do echo $i; i=$((i + 1)); sleep 0.2; done"
FAILS_ONCE = 'test -e "$MARK" && exit 0; touch "$MARK"; kill -9 $$'


class Service:
    """A `maat up` whose clusters run commands, and a client of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start()

    def start(self) -> None:
        self.up = Up(self.folder / "data", 8400, "--no-demo", "--allow-commands")
        self.up.await_ready()
        self.maat = Client(self.up.url, timeout_seconds=PATIENCE_SECONDS)

    def close(self) -> None:
        clusters = [cluster["id"] for cluster in self.maat.clusters()]
        self.up.kill()
        for cluster_id in clusters:
            LocalEngine(self.up.folder / "training" / cluster_id, []).strays([])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    started = Service(tmp_path_factory.mktemp("up"))
    yield started
    started.close()


class Cluster:
    """A cluster of the service; its jobs run in a folder."""

    def __init__(self, service: Service, folder: Path, **fields: Any) -> None:
        self.service, self.folder, self.name = service, folder, fields["name"]
        self.id = service.maat.create_cluster({**fields, "executor": "local"})["id"]

    @property
    def maat(self) -> Client:
        return self.service.maat

    def submit(
        self, argv: list[str], env: dict[str, str], *, profile: bool = True, **fields: Any
    ) -> str:
        env = {"PYTHONPATH": str(ROOT), **env}
        run = {"argv": argv, "cwd": str(self.folder), "env": env, "profile": profile}
        job = {"name": "job", "cluster_id": self.name, "run": run, **fields}
        return str(self.maat.submit_job(job)["id"])

    def state(self, job_id: str) -> str:
        return str(self.maat.job(job_id)["state"])

    def attempts(self, job_id: str) -> list[Any]:
        return list(self.maat.attempts(job_id))

    def last_round(self) -> int:
        rounds = self.maat.rounds(self.id, limit=1)["items"]
        return int(rounds[0]["number"]) if rounds else 0

    def await_that(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, what, log=self.service.up.folder.with_suffix(".out"))

    def await_state(self, job_id: str, state: str) -> None:
        self.await_that(lambda: self.state(job_id) == state, f"the job is {state}")


MakeCluster = Callable[..., Cluster]


@pytest.fixture
def make_cluster(service: Service, tmp_path: Path) -> Iterator[MakeCluster]:
    """Makes clusters, whose jobs are cancelled at the end."""
    yield lambda **fields: Cluster(service, tmp_path, **fields)
    for cluster in service.maat.clusters():
        service.maat.change_jobs({"action": "cancel", "filter": {"cluster": cluster["id"]}})


def shell(cluster: Cluster, script: str, **env: str) -> str:
    rigid = {"model": "sh", "adaptivity": "rigid", "gpu_count": 1}
    return cluster.submit(["/bin/sh", "-c", script], env, **rigid)


HERE = {"shape": "cpu=2x2", "policy": "fifo", "round_seconds": 1.0}


def test_what_trains_outlives_maat_and_is_taken_up_again_and_nothing_else_outlives_its_supervisor(
    service: Service, make_cluster: MakeCluster
) -> None:
    cluster = make_cluster(name="outlives", **HERE)
    job_id = shell(cluster, COUNTS)
    cluster.await_state(job_id, "running")
    worker = one(pid for pid in service.up.processes() if "-Q rounds" in command_of(pid))
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: "The worker was restarted" in service.up.said, "the worker is there again")
    assert len(service.up.processes()) >= 4
    service.up.process.kill()
    service.up.process.wait()
    wait_until(lambda: service.up.processes() == [], "all processes of Maat end")
    service.start()
    cluster.await_state(job_id, "succeeded")
    (attempt,) = cluster.attempts(job_id)
    assert attempt["outcome"] == "succeeded"
    said = str(cluster.maat.log(job_id, 1)["text"])
    assert said.split() == [str(number) for number in range(1, LAST + 1)]


def test_a_command_that_is_killed_is_started_again_and_ends(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(name="killed", **HERE)
    job_id = shell(cluster, FAILS_ONCE, MARK=str(cluster.folder / "mark"))
    cluster.await_state(job_id, "succeeded")
    first, second = cluster.attempts(job_id)
    assert (first["outcome"], second["outcome"]) == ("failed", "succeeded")
    assert first["exit_codes"] == {"0": -9}


@pytest.mark.long
def test_maat_says_at_its_end_what_trains_on(service: Service, make_cluster: MakeCluster) -> None:
    cluster = make_cluster(name="ended", **HERE)
    job_id = shell(cluster, "exec sleep 600")
    cluster.await_state(job_id, "running")
    service.up.process.terminate()
    assert service.up.process.wait(PATIENCE_SECONDS) == 0
    assert f"1 job trains on: {job_id}." in service.up.said
    service.start()
    cluster.await_state(job_id, "running")
    cluster.maat.cancel_job(job_id)
    cluster.await_state(job_id, "cancelled")
    service.up.process.terminate()
    assert service.up.process.wait(PATIENCE_SECONDS) == 0
    assert "trains on" not in service.up.said
    service.start()


LATER = 5  # rounds, in which nothing is to change


class OneGpu(Cluster):
    """One GPU for two jobs, under SJF-BSBF."""

    def __init__(self, service: Service, folder: Path) -> None:
        pair = {"shape": "t4=1x1", "policy": "sjf-bsbf", "jobs_per_gpu": 2, "round_seconds": 2.0}
        super().__init__(service, folder, name=folder.name, **pair)
        self.gpu = folder / "gpu"
        self.gpu.mkdir()

    def train(self, model: str, xi: float, *, epochs: int = 1000) -> str:
        script = Path(__file__).with_name("sharing_script.py")
        env = {"GPU": str(self.gpu), "NAME": model, "XI": str(xi), "EPOCHS": str(epochs)}
        batch = {"adaptivity": "strong-scaling", "batch_size": 32, "max_gpus": 1}
        argv = [sys.executable, str(script)]
        return self.submit(argv, env, profile=False, model=model, **batch)

    def slowdowns(self) -> list[Any]:
        return list(self.maat.slowdowns(self.id))

    def later(self) -> None:
        """Wait for rounds in which something could change."""
        until = self.last_round() + LATER
        wait_until(lambda: self.last_round() >= until, "rounds go on")


@pytest.fixture
def one_gpu(service: Service, make_cluster: MakeCluster, tmp_path: Path) -> OneGpu:
    pytest.importorskip("torch")
    return OneGpu(service, tmp_path)


def said_by_the_command_line(one_gpu: OneGpu) -> list[Any]:
    command = [sys.executable, "-m", "maat", "slowdowns", "--cluster", one_gpu.name, "--json"]
    done = subprocess.run(
        [*command, "--url", one_gpu.service.up.url],
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
    pilot = one_gpu.train("new", xi_new, epochs=8)
    one_gpu.await_state(pilot, "succeeded")
    long = one_gpu.train("long", xi_long)
    one_gpu.await_that(lambda: bool(one_gpu.maat.belief(long)["types"]), "its speed alone is known")
    before = one_gpu.last_round()
    new = one_gpu.train("new", xi_new)
    one_gpu.await_state(new, "running")
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


@pytest.mark.needs_torch
def test_a_pair_that_loses_is_measured_parted_and_not_joined_again(one_gpu: OneGpu) -> None:
    long, new = share(one_gpu, 2.5, 2.5)
    one_gpu.await_state(new, "preempted")
    assert slowdowns(one_gpu) == pytest.approx({"long": 2.5, "new": 2.5}, rel=0.05)
    assert any(one["is_used"] for one in one_gpu.slowdowns())
    assert one_gpu.maat.job(new)["reason"]["code"] == "SHARING_NO_GAIN"
    one_gpu.later()
    assert [one["stop_reason"] for one in one_gpu.attempts(new)] == ["preempted"]
    assert [one["stop_reason"] for one in one_gpu.attempts(long)] == [None]
    one_gpu.maat.cancel_job(long)
    one_gpu.await_state(new, "running")  # it has the GPU alone


@pytest.mark.long
@pytest.mark.needs_torch
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


@pytest.mark.needs_torch
def test_a_planted_slowdown_across_nodes_is_measured_from_reports_and_explains_both_jobs(
    make_cluster: MakeCluster,
) -> None:
    pytest.importorskip("torch")
    planted = JOBS["digits"].across_nodes
    nodes = [
        {"name": name, "gpu_type": "t4", "gpu_count": count}
        for name, count in {"pair": 2, "left": 1, "right": 1}.items()
    ]
    pal = {"policy": "fifo", "placer": "pal", "round_seconds": 2.0}
    cluster = make_cluster(name="apart", nodes=nodes, **pal)

    def train() -> str:
        rigid = {"model": "digits", "adaptivity": "rigid", "gpu_count": 2, "batch_size": 32}
        return cluster.submit(
            [sys.executable, "-m", "maat.demo.digits"], {"EPOCHS": "1000"}, **rigid
        )

    within, across = train(), train()

    def penalty() -> Any:
        (known,) = cluster.maat.belief(across)["locality"]
        return known

    cluster.await_that(lambda: penalty()["origin"] == "measured", "both ways are measured")
    attempts = [cluster.attempts(job_id)[-1]["gpus_by_node"] for job_id in (within, across)]
    assert sorted(len(gpus) for gpus in attempts) == [1, 2]
    assert penalty()["penalty"] == pytest.approx(planted, rel=0.15)
    assert penalty()["configurations"] == 1
    for job_id in (within, across):
        explained = cluster.maat.explanation(job_id)["locality"]
        assert explained is not None
        assert explained["penalty"] == pytest.approx(planted, rel=0.15)
