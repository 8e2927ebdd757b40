"""Two commands on one GPU: a local cluster with two places on each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlmodel import select
from training_samples import TrainingCluster

from backend.database import Database
from backend.models import Cluster, Node
from backend.settings import Settings
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
