"""Sums up days, deletes what is stored for a limited time, and sums gathered counts.

It deletes rounds beyond a cluster's limit, applied changes, old answers to repeated requests, and
the logs of jobs that ended long ago.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlmodel import col, select

from backend.accounts.sessions import forget_old_sessions
from backend.accounts.throttle import forget_old_tries
from backend.attempts.folders import attempt_folder, attempts_folder, cluster_folder
from backend.clocktime import cluster_seconds, utc_now
from backend.clusters.repository import all_clusters
from backend.database import Database
from backend.jobs.counting import counts_have_gathered, fold_counts
from backend.laboratory.use import WINDOW, forget_old_use
from backend.models import (
    AttemptRow,
    AuditRecord,
    Cluster,
    IdempotencyKey,
    Job,
    Operation,
    OutboxMessage,
    Report,
    ReportDelivery,
    Round,
    RoundPreview,
)
from backend.moments import moment_of
from backend.reports.service import forget
from backend.settings import Settings
from backend.usage.days import (
    fold_rounds,
    rounds_with_next,
    settled_days,
    store_day,
    tally_of_day,
)
from backend.usage.months import months_to_sum, rows_of_month, store_month

log = logging.getLogger(__name__)

AT_ONCE = 500  # rows per transaction, to keep it short
KEEP_PREVIEWS_DAYS = 1.0
SUMMING_SECONDS = 20.0
"""Wall time after which the days that are left wait for the next run: rounds wait too."""


def sum_days(database: Database) -> int:
    """Sum up the days of every cluster that no round can change any more. Returns their number.

    Each day is a transaction of its own, prepared before it begins.
    """
    summed, end = 0, time.monotonic() + SUMMING_SECONDS
    for cluster in _clusters(database):
        with database.session_scope(writes=False) as session:
            days = settled_days(session, cluster)
        for day in days:
            if time.monotonic() > end:
                return summed
            with database.session_scope(writes=False) as session:
                tally = tally_of_day(session, cluster, day)
            try:
                with database.session_scope() as session:
                    summed += store_day(session, cluster.id, day, tally)
            except IntegrityError:
                log.info("another process sums up %s of %s", day, cluster.id)
    return summed


def sum_months(database: Database) -> int:
    """Sum up the months whose days were all summed up. Returns their number."""
    summed = 0
    for cluster in _clusters(database):
        with database.session_scope(writes=False) as session:
            months = months_to_sum(session, cluster.id)
        for month in months:
            with database.session_scope(writes=False) as session:
                rows = rows_of_month(session, cluster.id, month)
            try:
                with database.session_scope() as session:
                    store_month(session, rows)
                summed += bool(rows)
            except IntegrityError:
                log.info("another process sums up %s of %s", month, cluster.id)
    return summed


def prune_rounds(database: Database) -> int:
    """Delete the oldest rounds beyond `keep_rounds` of every cluster.

    Returns their number.
    """
    return sum(
        _prune_rounds_of(database, row.id, row.next_round_number - row.keep_rounds)
        for row in _clusters(database)
        if row.next_round_number - row.keep_rounds > 1
    )


def _prune_rounds_of(database: Database, cluster_id: str, oldest_kept: int) -> int:
    """Delete in portions, oldest first. What they found usable is kept in their transaction."""
    gone = 0
    portion = (
        sa.select(col(Round.number))
        .where(col(Round.cluster_id) == cluster_id, col(Round.number) < oldest_kept)
        .order_by(col(Round.number))
        .limit(AT_ONCE)
    )
    while True:
        with database.session_scope() as session:
            cluster = session.get_one(Cluster, cluster_id, with_for_update=True)
            numbers = list(session.connection().execute(portion).scalars())
            if numbers:
                fold_rounds(session, cluster, rounds_with_next(session, cluster_id, numbers))
                mine = (col(Round.cluster_id) == cluster_id, col(Round.number) <= numbers[-1])
                session.connection().execute(sa.delete(Round).where(*mine))
        gone += len(numbers)
        if len(numbers) < AT_ONCE:
            return gone


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


def prune_reports(database: Database, *, days: float) -> int:
    """Delete kept reports and ended deliveries that are older than this. Files stay."""
    before = utc_now() - timedelta(days=days)
    old = sa.select(col(Report.id)).where(col(Report.made_at) < before).limit(AT_ONCE)
    ended = (col(ReportDelivery.finished_at) < before,)
    with database.session_scope(writes=False) as session:
        found = list(session.connection().execute(old).scalars())
        over = session.exec(select(ReportDelivery.id).where(*ended).limit(AT_ONCE)).all()
    if found or over:
        with database.session_scope() as session:
            forget(session, found)
            wanted = sa.delete(ReportDelivery).where(col(ReportDelivery.id).in_(over))
            session.connection().execute(wanted)
    return len(found)


def prune_previews(database: Database) -> int:
    """Delete previews of rounds that are older than a day, with their operations."""
    before = utc_now() - timedelta(days=KEEP_PREVIEWS_DAYS)
    old = sa.select(col(RoundPreview.id), col(RoundPreview.operation_id)).where(
        col(RoundPreview.created_at) < before
    )
    with database.session_scope(writes=False) as session:
        found = session.execute(old.limit(AT_ONCE)).all()
    if found:
        with database.session_scope() as session:
            previews, operations = zip(*found, strict=True)
            session.execute(sa.delete(RoundPreview).where(col(RoundPreview.id).in_(previews)))
            session.execute(sa.delete(Operation).where(col(Operation.id).in_(operations)))
    return len(found)


def prune_audit(database: Database, *, days: float) -> int:
    """Delete records of changes that are older than this."""
    before = utc_now() - timedelta(days=days)
    return _delete(database, AuditRecord, col(AuditRecord.at) < before)


def prune_laboratory_use(database: Database) -> None:
    """Delete what was charged to tenants before the day that counts."""
    with database.session_scope() as session:
        forget_old_use(session, before=utc_now() - 2 * WINDOW)


def prune_sign_ins(database: Database, settings: Settings) -> None:
    """Delete sessions of browsers that are over, and tries to sign in that no longer count."""
    with database.session_scope() as session:
        forget_old_sessions(session)
        forget_old_tries(session, settings)


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
    table: type[AuditRecord | OutboxMessage | IdempotencyKey],
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
