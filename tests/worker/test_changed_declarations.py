"""What an owner changes after the submission reaches the next round, with or without a restart."""

from __future__ import annotations

from typing import Any

import pytest
from live_samples import job, make_cluster, set_time, submit

from backend.database import Database
from backend.models import Job
from worker.live import step as live
from worker.rounds.store import SqlRoundStore

pytestmark = pytest.mark.both_databases


def test_a_job_of_a_higher_priority_goes_first_from_the_next_round_on(database: Database) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed")
    settings = {"adaptivity": "rigid", "gpu_count": 8, "batch_size": 512, "gpu_types": ["a100"]}
    (runs,) = submit(database, cluster_id, work_scale=100.0, **settings)
    set_time(database, cluster_id, 90.0)
    live.step_cluster(database, cluster_id)
    assert job(database, runs).gpus is not None
    first, second = submit(database, cluster_id, count=2, submitted_seconds=91.0, **settings)
    set_time(database, cluster_id, 150.0)
    live.step_cluster(database, cluster_id)
    behind = max(first, second)
    with database.session_scope() as session:
        row = session.get_one(Job, behind)
        row.priority, row.declared_version = 5, 2
        session.add(row)
        session.get_one(Job, runs).cancel_requested = True
    done = job(database, runs).progress
    set_time(database, cluster_id, 210.0)
    live.step_cluster(database, cluster_id)
    assert job(database, behind).gpus is not None
    assert job(database, runs).progress >= done


def test_a_round_that_starts_a_job_which_has_changed_meanwhile_is_made_anew(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = make_cluster(database)
    settings = {"adaptivity": "rigid", "gpu_count": 8, "batch_size": 512, "work_scale": 100.0}
    (job_id,) = submit(database, cluster_id, gpu_types=["a100"], **settings)
    commit = SqlRoundStore.commit

    def changes_first(store: SqlRoundStore, *result: Any) -> bool:
        monkeypatch.undo()
        with database.session_scope() as session:
            row = session.get_one(Job, job_id)
            row.gpu_types, row.declared_version = ["t4"], 2
        return commit(store, *result)

    monkeypatch.setattr(SqlRoundStore, "commit", changes_first)
    set_time(database, cluster_id, 90.0)
    assert live.step_cluster(database, cluster_id) is None
    assert job(database, job_id).gpus is None
    assert live.step_cluster(database, cluster_id) == 1
    assert job(database, job_id).gpu_type == "t4"


def test_a_type_that_a_waiting_job_may_use_from_now_on_is_profiled(database: Database) -> None:
    cluster_id = make_cluster(database)
    whole = {"adaptivity": "rigid", "gpu_count": 8, "batch_size": 512, "work_scale": 100.0}
    submit(database, cluster_id, gpu_types=["a100"], preemptible=False, **whole)
    set_time(database, cluster_id, 90.0)
    live.step_cluster(database, cluster_id)
    (waiting,) = submit(database, cluster_id, submitted_seconds=91.0, gpu_types=["a100"], **whole)
    set_time(database, cluster_id, 150.0)
    live.step_cluster(database, cluster_id)
    with database.session_scope() as session:
        row = session.get_one(Job, waiting)
        row.gpu_types, row.declared_version = ["a100", "t4"], 2
    set_time(database, cluster_id, 210.0)
    live.step_cluster(database, cluster_id)
    after = job(database, waiting)
    assert (after.gpu_type, after.reason_code) == ("t4", "GRANTED")
    assert after.reason_evidence["goodput_samples_per_second"] > 0
