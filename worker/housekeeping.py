"""Deletes what is stored for a limited time, and sums gathered counts.

It deletes rounds beyond a cluster's limit, applied changes and old answers to repeated requests.
"""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa
from sqlmodel import col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.jobs.counting import counts_have_gathered, fold_counts
from backend.models import Cluster, IdempotencyKey, OutboxMessage, Round

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
