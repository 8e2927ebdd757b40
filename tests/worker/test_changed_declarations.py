"""What an owner changes after the submission reaches the next round, with or without a restart."""

from __future__ import annotations

import pytest
from live_samples import job, make_cluster, set_time, submit

from backend.database import Database
from backend.models import Job
from worker import live

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
