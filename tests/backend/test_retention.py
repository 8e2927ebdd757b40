"""Reports of a year say the same after what they were made of is deleted; of four months in CI."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from round_rows import round_row
from sqlalchemy import delete, func
from sqlmodel import select
from usage_history import DAY, HOUR, Held, cluster_at, lived_job, person

from backend.database import Database
from backend.models import (
    AllocationReading,
    Cluster,
    Job,
    JobAllocation,
    JobEvent,
    Round,
    ShareDay,
)
from backend.settings import Settings
from worker import housekeeping, retention
from worker.fairness.days import keep_days

DAYS = 366 if os.environ.get("MAAT_TESTS_LONG") else 122
LAST = datetime(2026, 3, 2, tzinfo=UTC) + timedelta(days=DAYS - 2)
YEAR = {"from": "2026-03-02T00:00:00Z", "to": LAST.isoformat()}
TYPES = ("t4", "rtx", "a100")
WAYS = ("tenant", "user", "model", "label", "gpu_type", "day")


def keeps(tmp_path: Path, days: float) -> Settings:
    return Settings(
        _env_file=None, data_dir=tmp_path, keep_allocations_days=days, keep_events_days=days
    )


@pytest.fixture
def year(client: TestClient, database: Database) -> str:
    """A cluster that has lived for a year: a job every nine days, and one that goes on."""
    with database.session_scope() as session:
        cluster = cluster_at(session, DAYS * 24.0 + 1.0)
        owners = [person(session, tenant, name) for tenant, name in (("blue", "ann"), ("red", "x"))]
        for number, day in enumerate(range(0, DAYS - 3, 9)):
            begin = day * 24.0 + 5.0
            spans = (Held(begin, begin + 31.0), Held(begin + 40.0, begin + 41.5, efficiency=0.25))
            job = lived_job(session, cluster, owners[number % 2], *spans, submitted=begin - 1.0)
            job.state, job.finished_seconds = "succeeded", (begin + 41.5) * HOUR
            session.add(
                JobEvent(
                    job_id=job.id, cluster_id=cluster.id, cluster_seconds=begin * HOUR, kind="state"
                )
            )
        lived_job(session, cluster, owners[0], Held(30.0, None, gpus=(8,)), submitted=20.0)
        session.execute(delete(Round))
        for number, day in enumerate(range(DAYS + 1), start=1):
            session.add(
                round_row(
                    cluster.id,
                    number,
                    at_seconds=day * DAY,
                    active_jobs=1,
                    running_jobs=1,
                    gpus_total=64,
                    gpus_by_type={name: {"used": 0, "capacity": 24} for name in TYPES},
                )
            )
        cluster.next_round_number = DAYS + 2
        cluster.keep_rounds = 3
        return cluster.id


def reports(client: TestClient) -> list[Any]:
    asked = [("/api/v1/usage", {"by": by}) for by in WAYS]
    asked += [("/api/v1/fairness/shares", {"points": "12"})]
    found = []
    for path, query in asked:
        answer = client.get(path, params={"cluster": "demo", **YEAR, **query})
        assert answer.status_code == 200, answer.text
        found.append(answer.json() | {"as_of": ""})
    return found


def rows(database: Database, table: Any) -> int:
    with database.session_scope(writes=False) as session:
        return session.exec(select(func.count()).select_from(table)).one()


def sum_all_use(database: Database) -> None:
    """Sum up the use of all days: one run sums what it can within seconds."""
    while housekeeping.sum_days(database):
        pass


def sum_all_days(database: Database) -> None:
    sum_all_use(database)
    while keep_days(database):
        pass


def test_a_year_says_the_same_when_its_raw_rows_are_deleted(
    client: TestClient, database: Database, year: str, tmp_path: Path
) -> None:
    raw = reports(client)
    assert raw[0]["total"]["allocated_gpu_hours"] > 3 * DAYS
    sum_all_days(database)
    assert reports(client) == raw
    housekeeping.prune_rounds(database)
    before = rows(database, JobAllocation)
    assert retention.forget_jobs(database, keeps(tmp_path, 30)) > DAYS / 4
    assert reports(client) == raw
    assert 0 < rows(database, JobAllocation) < before / 3
    assert rows(database, Job) == len(range(0, DAYS - 3, 9)) + 1
    assert retention.forget_jobs(database, keeps(tmp_path, 30)) == 0


def test_nothing_is_deleted_of_which_no_sum_is_made_yet(
    client: TestClient, database: Database, year: str, tmp_path: Path
) -> None:
    held, read = rows(database, JobAllocation), rows(database, AllocationReading)
    retention.forget_jobs(database, keeps(tmp_path, 30))
    assert (rows(database, JobAllocation), rows(database, AllocationReading)) == (held, read)
    sum_all_use(database)
    housekeeping.prune_rounds(database)
    retention.forget_jobs(database, keeps(tmp_path, 30))
    assert rows(database, ShareDay) == 0
    assert rows(database, JobAllocation) == held
    keep_days(database)  # of a week
    retention.forget_jobs(database, keeps(tmp_path, 30))
    with database.session_scope(writes=False) as session:
        gone_before = session.exec(select(func.min(JobAllocation.to_seconds))).one()
    assert 2 * DAY < gone_before < 12 * DAY


def test_what_goes_on_and_what_ended_lately_stays(
    client: TestClient, database: Database, year: str, tmp_path: Path
) -> None:
    sum_all_days(database)
    housekeeping.prune_rounds(database)
    retention.forget_jobs(database, keeps(tmp_path, 30))
    with database.session_scope(writes=False) as session:
        cluster = session.exec(select(Cluster)).one()
        cutoff = cluster.anchor_seconds - 30 * DAY
        ended = session.exec(
            select(JobAllocation.to_seconds, Job.finished_seconds).join(
                Job, Job.id == JobAllocation.job_id
            )
        ).all()
        events = session.exec(select(JobEvent.cluster_seconds)).all()
    assert any(to is None for to, _ in ended)
    assert all(finished is None or finished >= cutoff for _, finished in ended)
    assert len(events) == len({finished for _, finished in ended if finished is not None}) > 0
