"""Jobs that start after others: they wait, start when those succeed, and are held if one fails."""

from __future__ import annotations

import pytest
from live_samples import (
    assert_history_is_whole,
    job,
    jobs_of,
    make_cluster,
    states_of,
    step_at,
    submit,
)
from sqlmodel import col, select

from backend.database import Database
from backend.jobs.dependencies import drop_failed_needs
from backend.models import Job, JobDependency, JobEvent
from maat.vocabulary import JobState
from worker.live.memory import MEMORY

pytestmark = pytest.mark.both_databases


def follow(database: Database, job_id: str, *needs: str) -> None:
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        row.after = list(needs)
        session.add(row)
        session.add_all(
            JobDependency(job_id=job_id, needed_id=need, cluster_id=row.cluster_id)
            for need in needs
        )


def open_needs(database: Database) -> list[tuple[str, str]]:
    with database.session_scope(writes=False) as session:
        found = session.exec(select(JobDependency).where(JobDependency.is_open)).all()
    return [(one.job_id, one.needed_id) for one in found]


def causes_of(database: Database, job_id: str) -> list[str]:
    """Return why the job's state changed, where it was not by GPUs that it got or lost."""
    with database.session_scope(writes=False) as session:
        found = session.exec(
            select(JobEvent).where(JobEvent.job_id == job_id).order_by(col(JobEvent.id))
        ).all()
    return [one.data["cause"] for one in found if "cause" in one.data]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_job_starts_in_the_round_after_all_that_it_follows_have_succeeded(
    database: Database, restarts: bool
) -> None:
    cluster_id = make_cluster(database)
    first, second = submit(database, cluster_id, count=2, work_scale=0.3)
    (last,) = submit(database, cluster_id, work_scale=100.0)
    follow(database, last, first, second)
    step_at(database, cluster_id, 30, 90)
    row = job(database, last)
    assert (row.state, row.gpus, row.reason_code) == ("paused", None, "WAITING_DEPENDENCY")
    assert row.reason_evidence["jobs"] == 2
    assert causes_of(database, last) == ["follows-others"]
    for seconds in range(150, 2000, 60):
        if restarts:
            MEMORY.forget(database)
        step_at(database, cluster_id, seconds)
        ended = [job(database, one).finished_seconds for one in (first, second)]
        if job(database, last).gpus is not None:
            break
    assert all(ended)
    started = job(database, last).started_seconds
    assert started is not None
    assert max(one for one in ended if one is not None) <= started
    assert open_needs(database) == []
    assert job(database, last).unwaited_seconds > 0
    assert causes_of(database, last) == ["follows-others", "others-succeeded"]
    assert_history_is_whole(database, cluster_id)


def test_a_job_is_held_when_what_it_follows_is_cancelled_and_runs_once_released(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    first, last = submit(database, cluster_id, count=2, work_scale=100.0)
    follow(database, last, first)
    step_at(database, cluster_id, 30, 90)
    with database.session_scope() as session:
        session.get_one(Job, first).cancel_requested = True
    step_at(database, cluster_id, 150, 210)
    row = job(database, last)
    assert (row.state, row.reason_code) == ("paused", "DEPENDENCY_FAILED")
    assert row.reason_evidence == {"job": first, "state": "cancelled"}
    with database.session_scope() as session:
        drop_failed_needs(session, [last])
    step_at(database, cluster_id, 270, 330)
    assert job(database, last).gpus is not None
    assert JobState.PAUSED in states_of(database, last)


def test_a_job_that_ends_waits_for_nothing_any_more(database: Database) -> None:
    cluster_id = make_cluster(database)
    first, last = submit(database, cluster_id, count=2, work_scale=100.0)
    follow(database, last, first)
    with database.session_scope() as session:
        session.get_one(Job, last).cancel_requested = True
    step_at(database, cluster_id, 30, 90)
    assert {row.id: row.state for row in jobs_of(database, cluster_id)}[last] == "cancelled"
    assert open_needs(database) == []
