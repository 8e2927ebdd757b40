"""Time for which a job was paused is neither waiting nor unfair, to itself and to others."""

from __future__ import annotations

import pytest
from live_samples import make_cluster, submit
from sqlmodel import Session, select

from backend.database import Database
from backend.fairness.share_rows import raw_shares
from backend.models import Cluster, Job, JobFairness, JobPause
from worker.fairness import work

pytestmark = pytest.mark.both_databases


def ended(database: Database, cluster_id: str, *, begin: float, end: float) -> str:
    (job_id,) = submit(
        database, cluster_id, state="succeeded", submitted_seconds=begin, finished_seconds=end
    )
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        asked = JobFairness(
            job_id=job_id, cluster_id=cluster_id, tenant_id=row.tenant_id, finished_seconds=end
        )
        session.add(asked)
    return job_id


def pause(database: Database, job_id: str, begin: float, end: float | None) -> None:
    with database.session_scope() as session:
        cluster_id = session.get_one(Job, job_id).cluster_id
        session.add(
            JobPause(job_id=job_id, cluster_id=cluster_id, from_seconds=begin, to_seconds=end)
        )


def worked_out(database: Database, job_id: str) -> JobFairness:
    while work.work_out(database):
        pass
    with database.session_scope(writes=False) as session:
        return session.exec(select(JobFairness).where(JobFairness.job_id == job_id)).one()


def test_a_pause_is_no_part_of_the_completion_time(database: Database) -> None:
    cluster_id = make_cluster(database)
    job_id = ended(database, cluster_id, begin=0.0, end=100.0)
    pause(database, job_id, 20.0, 60.0)
    pause(database, job_id, 90.0, None)
    assert worked_out(database, job_id).jct_seconds == pytest.approx(50.0)


def test_only_jobs_that_were_active_while_it_was_count_as_contention(database: Database) -> None:
    cluster_id = make_cluster(database)
    job_id = ended(database, cluster_id, begin=0.0, end=100.0)
    other = ended(database, cluster_id, begin=0.0, end=100.0)
    during = ended(database, cluster_id, begin=20.0, end=60.0)
    pause(database, job_id, 20.0, 60.0)
    pause(database, other, 60.0, 90.0)
    assert worked_out(database, job_id).contention == pytest.approx((20 * 2 + 30 * 1 + 10 * 2) / 60)
    assert worked_out(database, during).contention == pytest.approx(2.0)


def demanded(session: Session, cluster_id: str) -> float:
    shares = raw_shares(session, session.get_one(Cluster, cluster_id), [0.0, 100.0])
    return float(shares.demanded.sum())


def test_a_tenant_deserves_nothing_for_a_paused_job(database: Database) -> None:
    cluster_id = make_cluster(database)
    fields = {"adaptivity": "rigid", "gpu_count": 4, "state": "running"}
    (job_id,) = submit(database, cluster_id, **fields)
    with database.session_scope(writes=False) as session:
        assert demanded(session, cluster_id) == pytest.approx(400.0)
    pause(database, job_id, 30.0, None)
    with database.session_scope(writes=False) as session:
        assert demanded(session, cluster_id) == pytest.approx(120.0)
