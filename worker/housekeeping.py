"""Deletes what is stored for a limited time, and sums gathered counts.

It deletes rounds beyond a cluster's limit, applied changes, old answers to repeated requests, and
the logs of jobs that ended long ago.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import sqlalchemy as sa
from sqlmodel import col, select

from backend.attempts.folders import attempt_folder, attempts_folder, cluster_folder
from backend.clocktime import cluster_seconds, utc_now
from backend.clusters.repository import all_clusters
from backend.database import Database
from backend.jobs.counting import counts_have_gathered, fold_counts
from backend.models import AttemptRow, Cluster, IdempotencyKey, Job, OutboxMessage, Round
from backend.moments import moment_of
from backend.settings import Settings

AT_ONCE = 500  # rows per transaction, to keep it short


def prune_rounds(database: Database) -> int:
    """Delete the oldest rounds beyond `keep_rounds` of every cluster.

    Returns their number.
    """
    with database.session_scope(writes=False) as session:
        oldest_kept = {
            row.id: row.next_round_number - row.keep_rounds for row in session.exec(select(Cluster))
        }
    return sum(
        _delete(database, Round, col(Round.cluster_id) == cluster_id, col(Round.number) < number)
        for cluster_id, number in oldest_kept.items()
        if number > 1
    )


def prune_outbox(database: Database) -> int:
    """Delete changes that the executor has applied.

    Their rounds have rows of their own.
    """
    return _delete(database, OutboxMessage, col(OutboxMessage.applied_at).is_not(None))


def prune_idempotency_keys(database: Database, *, hours: float) -> int:
    return _delete(
        database,
        IdempotencyKey,
        col(IdempotencyKey.created_at) < utc_now() - timedelta(hours=hours),
    )


def prune_logs(database: Database, settings: Settings) -> int:
    """Delete the folders of attempts whose jobs ended long ago, with their logs."""
    return sum(
        _prune_logs_of(database, cluster.id, cluster_folder(settings, cluster), settings)
        for cluster in _clusters(database)
        if attempts_folder(cluster_folder(settings, cluster)).is_dir()
    )


def _clusters(database: Database) -> Sequence[Cluster]:
    with database.session_scope(writes=False) as session:
        return all_clusters(session)


def _prune_logs_of(database: Database, cluster_id: str, folder: Path, settings: Settings) -> int:
    gone, all_names = 0, sorted(os.listdir(attempts_folder(folder)))
    for names in (all_names[i : i + AT_ONCE] for i in range(0, len(all_names), AT_ONCE)):
        with database.session_scope(writes=False) as session:
            cluster = session.get_one(Cluster, cluster_id)
            now = cluster_seconds(cluster, moment_of(session))
            ended_before = now - settings.keep_logs_days * 86_400
            found = session.exec(
                select(AttemptRow.id)
                .join(Job, col(Job.id) == col(AttemptRow.job_id))
                .where(col(AttemptRow.id).in_(names), col(Job.finished_seconds) < ended_before)
            ).all()
        for attempt_id in found:
            shutil.rmtree(attempt_folder(folder, attempt_id), ignore_errors=True)
        gone += len(found)
    return gone


def fold_job_counts(database: Database) -> int:
    """Sum the gathered counts of jobs, if there are any.

    Checks first without the writer's lock.
    """
    with database.session_scope(writes=False) as session:
        if not counts_have_gathered(session):
            return 0
    with database.session_scope() as session:
        return fold_counts(session)


def _delete(
    database: Database,
    table: type[Round | OutboxMessage | IdempotencyKey],
    *condition: sa.ColumnElement[bool],
) -> int:
    """Delete in portions, oldest first."""
    gone = 0
    while True:
        portion = sa.select(col(table.id)).where(*condition).order_by(col(table.id)).limit(AT_ONCE)
        with database.session_scope() as session:
            found = (
                session.connection()
                .execute(sa.delete(table).where(col(table.id).in_(portion)))
                .rowcount
            )
        gone += found
        if found < AT_ONCE:
            return gone
