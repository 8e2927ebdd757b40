"""Tests of the migration of fairness: jobs that ended before it are queued, and left out."""

from __future__ import annotations

from live_samples import make_cluster, set_time, submit
from sqlmodel import select

from alembic import command
from backend.database import Database
from backend.migrations import alembic_config, upgrade
from backend.models import JobFairness
from maat.vocabulary import WithoutRho
from worker.fairness.work import work_out
from worker.live import memory as live_memory
from worker.live import step as live


def test_jobs_that_ended_before_the_change_are_told_to_have_no_rho(
    empty_database_url: str,
) -> None:
    database = Database(empty_database_url)
    upgrade(database)
    cluster_id = make_cluster(database)
    (over,) = submit(database, cluster_id, state="succeeded", finished_seconds=5.0)
    submit(database, cluster_id, work_scale=1000.0)
    with database.migration() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.downgrade(config, "0016")
    upgrade(database)
    with database.session_scope(writes=False) as session:
        assert list(session.exec(select(JobFairness.job_id))) == [over]
    work_out(database)
    with database.session_scope(writes=False) as session:
        row = session.exec(select(JobFairness)).one()
        assert (row.state, row.reason) == ("succeeded", WithoutRho.NO_MODEL)
    live_memory.MEMORY.forget(database)
    set_time(database, cluster_id, 90.0)
    assert live.step_cluster(database, cluster_id) == 1
    database.dispose()
