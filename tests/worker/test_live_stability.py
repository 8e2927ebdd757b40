"""Jobs of a live cluster that must stay: by its bounds, by their own, over a restart."""

from __future__ import annotations

from typing import Any

import pytest
from live_samples import job, make_cluster, step_at, submit

from backend.database import Database
from backend.models import AttemptRow, Cluster
from maat.vocabulary import AttemptKind, AttemptState, StopReason
from worker.executors.training_status import moved_at
from worker.live.memory import MEMORY

BOUND = {"least_stay_seconds": 1800.0}


RIGID: dict[str, Any] = {
    "adaptivity": "rigid", "batch_size": 512, "gpu_count": 8, "gpu_types": ["t4"]
}  # fmt: skip


def long_before_short(
    database: Database, *, of_cluster: dict[str, Any], of_job: dict[str, Any]
) -> str:
    """Start a long job on all t4s, and submit a short one, for which SRTF takes them away."""
    parts = {"policy": "srtf", "placer": "packed-sticky"}
    cluster_id = make_cluster(database, **parts, **of_cluster)
    (long,) = submit(database, cluster_id, work_scale=10.0, **RIGID, **of_job)
    step_at(database, cluster_id, 60.0)
    submit(database, cluster_id, work_scale=0.5, **RIGID)
    return long


def holds_after(database: Database, job_id: str, *times: float) -> bool:
    step_at(database, job(database, job_id).cluster_id, *times)
    return job(database, job_id).gpus is not None


def test_without_bounds_a_shorter_job_takes_the_gpus_at_once(database: Database) -> None:
    job_id = long_before_short(database, of_cluster={}, of_job={})
    assert not holds_after(database, job_id, 300.0)


@pytest.mark.parametrize("of_cluster", [BOUND, {}], ids=["the cluster's", "the job's own"])
@pytest.mark.parametrize("forgets", [False, True], ids=["remembered", "restored"])
def test_a_job_loses_its_gpus_once_it_has_held_them_for_the_least_stay(
    database: Database, of_cluster: dict[str, Any], forgets: bool
) -> None:
    job_id = long_before_short(database, of_cluster=of_cluster, of_job={} if of_cluster else BOUND)
    assert holds_after(database, job_id, 300.0)
    row = job(database, job_id)
    assert row.reason_code == "PINNED"
    assert row.reason_evidence["stays_for_seconds"] == pytest.approx(1560.0)
    if forgets:
        MEMORY.forget(database)
    assert holds_after(database, job_id, 1800.0)
    assert not holds_after(database, job_id, 1861.0)


def test_a_change_of_the_bounds_holds_from_the_next_round_on(database: Database) -> None:
    job_id = long_before_short(database, of_cluster=BOUND, of_job={})
    assert holds_after(database, job_id, 300.0)
    with database.session_scope() as session:
        cluster = session.get_one(Cluster, job(database, job_id).cluster_id)
        cluster.least_stay_seconds = None
        session.add(cluster)
    assert not holds_after(database, job_id, 360.0)


def attempt(
    number: int, stopped: float | None, why: StopReason | None, **fields: Any
) -> AttemptRow:
    return AttemptRow(
        job_id="job_1", cluster_id="clu_1", number=number, round_number=number,
        state=AttemptState.ENDED.value, reports=True, gpu_type="t4", gpus_by_node={}, gpu_count=1,
        ordered_seconds=0.0, stop_seconds=stopped,
        stop_reason=None if why is None else why.value, **fields,
    )  # fmt: skip


def test_the_moves_of_a_command_are_the_attempts_that_rounds_stopped() -> None:
    attempts = [
        attempt(1, 50.0, StopReason.MOVED),
        attempt(2, 150.0, StopReason.MOVED),
        attempt(3, 160.0, StopReason.PAUSED),
        attempt(4, 170.0, StopReason.PROFILED, kind=AttemptKind.PROFILE.value),
        attempt(5, None, None),
        attempt(6, 200.0, StopReason.PREEMPTED),
    ]
    assert moved_at(attempts, since=100.0) == (150.0, 200.0)
