"""Two commands on one GPU: a local cluster with two places on each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from live_samples import job
from sqlmodel import select
from training_samples import TrainingCluster

from backend.database import Database
from backend.models import Cluster, JobCommand, Node, StepSample
from backend.settings import Settings
from maat.scheduling.explain import sentence_of
from maat.vocabulary import AttemptState, StopReason


@pytest.fixture
def cluster(database: Database, tmp_path: Path) -> Iterator[TrainingCluster]:
    """One slot on which two commands may run, shared by first fit."""
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", allow_commands=True)
    made = TrainingCluster(database, settings, tmp_path)
    with database.session_scope() as session:
        row = session.get_one(Cluster, made.cluster_id)
        row.policy, row.placer, row.jobs_per_gpu, row.interference = "sjf-ffs", "shared", 2, "1.25"
        for node in session.exec(select(Node).where(Node.cluster_id == made.cluster_id)):
            if node.position:
                session.delete(node)
            else:
                node.gpu_count = 1
    yield made
    made.close()


def test_two_commands_run_on_one_gpu_and_a_third_waits(cluster: TrainingCluster) -> None:
    first, second, third = (cluster.submit("sleep", "60") for _ in range(3))
    cluster.round()
    running = [i for i in (first, second, third) if cluster.attempts(i)]
    assert len(running) == 2
    for job_id in running:
        cluster.look_until(lambda i=job_id: cluster.attempt_state(i) == AttemptState.RUNNING)
    assert cluster.holds() == [("t4-0", 0), ("t4-0", 0)]
    assert cluster.round() is not None
    cluster.forget_everything()
    assert cluster.round() is not None
    assert [i for i in (first, second, third) if cluster.attempts(i)] == running
    waiting = next(i for i in (first, second, third) if i not in running)
    cluster.ask_to_end(running[0], StopReason.CANCELLED)
    cluster.look_until(lambda: cluster.has_ended(running[0]))
    cluster.change(running[0], cancel_requested=True)
    cluster.round()
    cluster.look_until(lambda: cluster.attempts(waiting) and cluster.round())
    cluster.look_until(lambda: cluster.attempt_state(waiting) == AttemptState.RUNNING)
    assert cluster.holds() == [("t4-0", 0), ("t4-0", 0)]


def know(cluster: TrainingCluster, job_id: str, *, work: float) -> None:
    """Let a job of 32 samples a step be known to step in 0.1 s, with so many samples left."""
    with cluster.database.session_scope() as session:
        session.get_one(JobCommand, job_id).total_samples = work
        session.add(
            StepSample(
                job_id=job_id,
                gpu_type="t4",
                node_count=1,
                replica_count=1,
                per_gpu_batch_size=32,
                accumulation_steps=0,
                count=1000,
                step_mean=0.1,
                step_m2=0.0,
                sync_mean=0.0,
                believed_step=0.1,
                believed_sync=0.0,
                believed_weight=1.0,
                first_seconds=0.0,
                last_seconds=0.0,
            )
        )


@pytest.mark.parametrize(("declared", "shares"), [("1.25", True), ("2.5", False)])
def test_commands_of_known_speed_share_where_it_pays(
    cluster: TrainingCluster, declared: str, shares: bool
) -> None:
    """Of two jobs that take as long, by theorem 1: below a slowdown of 1.5."""
    with cluster.database.session_scope() as session:
        row = session.get_one(Cluster, cluster.cluster_id)
        row.policy, row.interference = "sjf-bsbf", declared
    jobs = [cluster.submit("sleep", "60", batch_size=32) for _ in range(2)]
    for job_id in jobs:
        know(cluster, job_id, work=320_000.0)
    for _ in range(2):
        assert cluster.round() is not None
    running = [job_id for job_id in jobs if cluster.attempts(job_id)]
    assert len(running) == (2 if shares else 1)
    for job_id in running:
        cluster.look_until(lambda i=job_id: cluster.attempt_state(i) == AttemptState.RUNNING)
    assert len(cluster.holds()) == len(running)


@pytest.mark.parametrize(
    ("declared", "many", "says"),
    [
        ("1.25", 2, "Jobs of known length or that came before it"),
        ("1.5", 1, "share GPUs only where that pays at any length"),
    ],
)
def test_rigid_commands_that_never_ran_run_first_come_first_served(
    cluster: TrainingCluster, declared: str, many: int, says: str
) -> None:
    """Nobody knows how long they take: they share where that pays at any length."""
    with cluster.database.session_scope() as session:
        row = session.get_one(Cluster, cluster.cluster_id)
        row.policy, row.interference = "sjf-bsbf", declared
    jobs = [cluster.submit("sleep", "60") for _ in range(3)]
    for _ in range(2):
        assert cluster.round() is not None
    assert [job_id for job_id in jobs if cluster.attempts(job_id)] == jobs[:many]
    for job_id in jobs[:many]:
        cluster.look_until(lambda i=job_id: cluster.attempt_state(i) == AttemptState.RUNNING)
    waits = job(cluster.database, jobs[-1])
    assert says in sentence_of(waits.reason_code, waits.reason_evidence)
    for job_id in jobs[:many]:
        cluster.change(job_id, cancel_requested=True)
    cluster.note()
    cluster.look_until(lambda: all(cluster.has_ended(job_id) for job_id in jobs[:many]))
    assert cluster.round() is not None
    cluster.look_until(lambda: cluster.attempt_state(jobs[many]) == AttemptState.RUNNING)
