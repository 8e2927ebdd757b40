"""Two jobs on a GPU of a live simulated cluster: shared where it pays, at the declared slowdown."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from live_samples import job, jobs_of, make_cluster, set_time, step_at, submit
from sqlmodel import select

from backend.database import Database
from backend.models import Cluster, ExecutorJob, Node, SharingSample
from worker.live import step as live
from worker.live.memory import MEMORY

RIGID: dict[str, Any] = {
    "adaptivity": "rigid", "batch_size": 512, "gpu_count": 2, "work_scale": 0.5,
}  # fmt: skip


def sharing_cluster(database: Database, **fields: Any) -> str:
    """Make a cluster of two T4 where two jobs may share a GPU."""
    shares = {"policy": "sjf-bsbf", "placer": "shared", "jobs_per_gpu": 2, "round_seconds": 10.0}
    cluster_id = make_cluster(database, **{**shares, "interference": "1.2", **fields})
    with database.session_scope() as session:
        for node in session.exec(select(Node).where(Node.cluster_id == cluster_id)):
            if node.position:
                session.delete(node)
            else:
                node.gpu_count = 2
    return cluster_id


def shared_gpus(database: Database, cluster_id: str) -> list[int]:
    holders = Counter(gpu for row in jobs_of(database, cluster_id) for gpu in row.gpus or ())
    return sorted(gpu for gpu, count in holders.items() if count > 1)


def processed(database: Database, cluster_id: str) -> dict[str, float]:
    """Return the samples that each job has processed, as the executor has stored them."""
    with database.session_scope(writes=False) as session:
        rows = session.exec(select(ExecutorJob).where(ExecutorJob.cluster_id == cluster_id))
        return {row.job_id: json.loads(row.standing)["processed_samples"] for row in rows}


def test_two_jobs_share_the_gpus_within_two_rounds(database: Database) -> None:
    cluster_id = sharing_cluster(database)
    submit(database, cluster_id, count=2, **RIGID)
    step_at(database, cluster_id, 200.0, 210.0)
    assert shared_gpus(database, cluster_id) == [0, 1]


def test_nothing_is_shared_where_jobs_would_lose_too_much(database: Database) -> None:
    cluster_id = sharing_cluster(database, interference="2.5")
    first, second = submit(database, cluster_id, count=2, **RIGID)
    step_at(database, cluster_id, 200.0, 210.0, 220.0)
    assert shared_gpus(database, cluster_id) == []
    assert sorted([len(job(database, one).gpus or ()) for one in (first, second)]) == [0, 2]
    waiting = next(row for row in jobs_of(database, cluster_id) if row.gpus is None)
    assert waiting.reason_code == "SHARING_NO_GAIN"


def test_the_next_decision_goes_by_what_was_measured(database: Database) -> None:
    cluster_id = sharing_cluster(database, interference="1.2")
    measured = {"gpu_type": "t4", "gpu_count": 2, "ratio_m2": 0.0, "updated_seconds": 0.0}
    pair = {"victim": "cifar10", "partner": "cifar10", "victim_batch": 256, "partner_batch": 256}
    with database.session_scope() as session:
        key = {"cluster_id": cluster_id, **pair, **measured}
        session.add(SharingSample(**key, count=3, weight=3.0, ratio=2.5))
    submit(database, cluster_id, count=2, **RIGID)
    step_at(database, cluster_id, 200.0, 210.0)
    assert shared_gpus(database, cluster_id) == []
    with database.session_scope() as session:
        session.exec(select(SharingSample)).one().ratio = 1.1
    step_at(database, cluster_id, 220.0)
    assert shared_gpus(database, cluster_id) == [0, 1]


@pytest.mark.parametrize("forgets", [False, True], ids=["remembered", "restored"])
def test_jobs_on_one_gpu_are_slowed_by_each_other(database: Database, forgets: bool) -> None:
    """By the same factor in a worker that has been restarted."""
    done = {}
    for xi in ("1", "1.25"):
        cluster_id = sharing_cluster(database, interference=xi, name=xi)
        submit(database, cluster_id, count=2, **RIGID)
        step_at(database, cluster_id, 200.0, 210.0)
        if forgets:
            MEMORY.forget(database)
        step_at(database, cluster_id, 300.0)
        before = processed(database, cluster_id)
        step_at(database, cluster_id, 400.0)
        assert shared_gpus(database, cluster_id) == [0, 1]
        after = processed(database, cluster_id)
        done[xi] = [after[job_id] - before[job_id] for job_id in before]
    assert done["1"] == pytest.approx([1.25 * each for each in done["1.25"]])


def test_a_change_of_what_is_declared_holds_from_the_next_round_on(database: Database) -> None:
    cluster_id = sharing_cluster(database, interference="2.5")
    submit(database, cluster_id, count=2, **RIGID)
    step_at(database, cluster_id, 200.0, 210.0)
    with database.session_scope() as session:
        session.get_one(Cluster, cluster_id).interference = "1.2"
    step_at(database, cluster_id, 220.0)
    assert shared_gpus(database, cluster_id) == [0, 1]


def test_models_of_which_nothing_is_declared_share_under_first_fit_and_go_on(
    database: Database,
) -> None:
    """The shipped table has no pair with itself of a model that it lacks; rounds go on."""
    fields = {"policy": "sjf-ffs", "interference": "synthetic"}
    cluster_id = sharing_cluster(database, **fields)
    submit(database, cluster_id, count=2, **(RIGID | {"model": "bert", "batch_size": 16}))
    step_at(database, cluster_id, 200.0, 210.0, 220.0)
    set_time(database, cluster_id, 400.0)
    assert live.step_cluster(database, cluster_id) is not None
    assert shared_gpus(database, cluster_id) == [0, 1]
