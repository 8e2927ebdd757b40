"""Tests of the migration of an executor from one piece to a row per job, and back.

The cluster goes on from the migrated rows.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from live_samples import make_cluster, set_time, submit
from sqlmodel import select

from alembic import command
from backend.columns import unpack_json
from backend.database import Database
from backend.migrations import alembic_config, upgrade
from backend.models import ClusterRuntime, ExecutorJob, ExecutorSamples
from worker.live import memory as live_memory
from worker.live import step as live


def test_an_executor_goes_on_across_the_change_to_a_row_per_job(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    upgrade(database)
    cluster_id = make_cluster(database)
    submit(database, cluster_id, count=3, work_scale=100.0)
    for seconds in (30.0, 90.0):
        set_time(database, cluster_id, seconds)
        live.step_cluster(database, cluster_id)
    before = executor_of(database)
    downgrade(database, "0007")
    with database.engine.connect() as connection:
        whole = unpack_json(
            connection.execute(sa.text("SELECT executor_state FROM cluster_states")).scalar_one()
        )
    assert set(whole["executor"]["jobs"]) == set(before[1]) == set(whole["executor"]["applied"])
    assert all(set(job["samples"]) == {"t4", "a100"} for job in whole["executor"]["jobs"].values())
    upgrade(database)
    assert executor_of(database) == before
    live_memory.MEMORY.forget(database)
    set_time(database, cluster_id, 150.0)
    assert live.step_cluster(database, cluster_id) == 3
    database.dispose()


def executor_of(database: Database) -> tuple[Any, ...]:
    """What belongs to no job, how every job stands, and what it has seen."""
    with database.session_scope(writes=False) as session:
        head = session.exec(select(ClusterRuntime.executor_state)).one()
        jobs = {row.job_id: json.loads(row.standing) for row in session.exec(select(ExecutorJob))}
        samples = {
            row.job_id: json.loads(row.samples) for row in session.exec(select(ExecutorSamples))
        }
    return head, jobs, samples


def downgrade(database: Database, revision: str) -> None:
    with database.migration() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
