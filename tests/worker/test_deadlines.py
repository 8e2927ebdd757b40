"""Deadlines: told once when they will be missed, and shown; no round reads them."""

from __future__ import annotations

import pytest
from live_samples import job, make_cluster, step_at, submit
from sqlmodel import col, select

from backend.database import Database
from backend.jobs.deadlines import outlook_of
from backend.models import Job, JobEvent
from worker.live.memory import MEMORY

pytestmark = pytest.mark.both_databases


def told(database: Database, job_id: str) -> list[float]:
    mine = (JobEvent.job_id == job_id, JobEvent.kind == "deadline")
    with database.session_scope(writes=False) as session:
        found = session.exec(select(JobEvent).where(*mine).order_by(col(JobEvent.id))).all()
    return [event.data["seconds_late"] for event in found]


def test_a_deadline_that_will_be_missed_is_told_once(database: Database) -> None:
    cluster_id = make_cluster(database)
    (late,) = submit(database, cluster_id, work_scale=100.0, deadline_seconds=500.0)
    (early,) = submit(database, cluster_id, work_scale=100.0, deadline_seconds=1e9)
    (none,) = submit(database, cluster_id, work_scale=100.0)
    step_at(database, cluster_id, 30, 90, 150)
    (seconds_late,) = told(database, late)
    row = job(database, late)
    assert row.goodput is not None
    assert seconds_late > 0
    MEMORY.forget(database)
    step_at(database, cluster_id, 210, 270, 700)
    assert len(told(database, late)) == 1
    assert told(database, early) == told(database, none) == []


def test_a_new_deadline_is_told_again_if_it_will_be_missed_too(database: Database) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id, work_scale=100.0, deadline_seconds=500.0)
    step_at(database, cluster_id, 30, 90, 150)
    for deadline in (600.0, 1e9):
        with database.session_scope() as session:
            row = session.get_one(Job, job_id)
            row.deadline_seconds, row.declared_version = deadline, row.declared_version + 1
            session.add(row)
        step_at(database, cluster_id, 210 if deadline == 600.0 else 270)
    step_at(database, cluster_id, 330)
    assert len(told(database, job_id)) == 2


def test_a_job_that_waits_past_its_deadline_has_missed_it(database: Database) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id, deadline_seconds=100.0)
    with database.session_scope() as session:
        session.get_one(Job, job_id).pause_requested = True
    step_at(database, cluster_id, 30, 90)
    assert told(database, job_id) == []
    step_at(database, cluster_id, 150, 210)
    assert told(database, job_id) == [pytest.approx(50.0)]


@pytest.mark.parametrize(
    ("fields", "now", "left", "expected"),
    [
        ({}, 10.0, 5.0, (None, None)),
        ({"deadline_seconds": 100.0}, 10.0, None, ("unknown", None)),
        ({"deadline_seconds": 100.0}, 10.0, 90.0, ("on-time", None)),
        ({"deadline_seconds": 100.0}, 10.0, 95.0, ("late", 5.0)),
        ({"deadline_seconds": 100.0}, 130.0, 20.0, ("missed", 50.0)),
        (
            {"deadline_seconds": 100.0, "finished_seconds": 90.0, "state": "succeeded"},
            500.0,
            0.0,
            ("met", None),
        ),
        (
            {"deadline_seconds": 100.0, "finished_seconds": 160.0, "state": "succeeded"},
            500.0,
            0.0,
            ("missed", 60.0),
        ),
        (
            {"deadline_seconds": 100.0, "finished_seconds": 50.0, "state": "failed"},
            500.0,
            0.0,
            (None, None),
        ),
    ],
)
def test_the_outlook_follows_from_what_is_left(
    fields: dict[str, object], now: float, left: float | None, expected: object
) -> None:
    row = Job(
        cluster_id="c", name="x", owner_id="u", tenant_id="t", model="bert", adaptivity="rigid",
        submitted_seconds=0.0, remaining_work=1.0, **fields,
    )  # fmt: skip
    assert tuple(outlook_of(row, now=now, remaining_seconds=left)) == expected
