"""The right to make a cluster's rounds.

One worker holds it at a time, with a fencing number that grows with every holder. It ends at a wall
time of the database's clock (see backend.moments). An end later than any holder sets is from before
that clock was set back: such a lease is over. A worker that lost its lease without noticing cannot
commit: the cluster's fencing number has changed.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.database import Database
from backend.models import Cluster
from backend.moments import from_now

LEASE_SECONDS = 6.0
RENEW_SECONDS = 2.0

log = logging.getLogger(__name__)


@contextmanager
def leased(database: Database, cluster_id: str) -> Iterator[int | None]:
    """Hold the cluster's lease while the block runs, however long it takes.

    Yields the fencing number, or None if another worker holds the lease.
    """
    fencing = take(database, cluster_id)
    if fencing is None:
        yield None
        return
    done = threading.Event()
    renewer = threading.Thread(
        target=_renew_until, args=(done, database, cluster_id, fencing), daemon=True
    )
    renewer.start()
    try:
        yield fencing
    finally:
        done.set()
        renewer.join()
        _give_back(database, cluster_id, fencing)


def take(database: Database, cluster_id: str) -> int | None:
    """Take the lease if it is free or has expired."""
    now, until, never = (
        from_now(seconds, is_sqlite=database.is_sqlite)
        for seconds in (0.0, LEASE_SECONDS, 2 * LEASE_SECONDS)
    )
    end = col(Cluster.lease_until)
    statement = (
        sa.update(Cluster)
        .where(col(Cluster.id) == cluster_id, sa.or_(end.is_(None), end < now, end > never))
        .values(lease_holder=_holder(), lease_until=until, fencing=col(Cluster.fencing) + 1)
        .returning(col(Cluster.fencing))
    )
    with database.session_scope() as session:
        found: int | None = session.connection().execute(statement).scalar_one_or_none()
        return found


def extend(session: Session, cluster_id: str, fencing: int) -> None:
    """Renew the lease within the caller's transaction, if this worker still holds it.

    A commit may lock the database for longer than a lease lasts, and no renewal can run meanwhile.
    """
    until = from_now(LEASE_SECONDS, is_sqlite=session.get_bind().dialect.name == "sqlite")
    session.connection().execute(
        _mine(cluster_id, fencing).values(lease_until=until, lease_holder=_holder())
    )


def _renew_until(done: threading.Event, database: Database, cluster_id: str, fencing: int) -> None:
    """Renew until done.

    A failed renewal is logged and retried: the database may be locked briefly.
    """
    while not done.wait(RENEW_SECONDS):
        try:
            with database.session_scope() as session:
                extend(session, cluster_id, fencing)
        except Exception:
            log.exception(
                "The lease of cluster %s could not be renewed; the next attempt is in %.0f s.",
                cluster_id,
                RENEW_SECONDS,
            )


def _give_back(database: Database, cluster_id: str, fencing: int) -> None:
    """Give the lease back.

    If this fails, the lease expires by itself; work done under it stays.
    """
    try:
        with database.session_scope() as session:
            session.connection().execute(
                _mine(cluster_id, fencing).values(lease_until=None, lease_holder=None)
            )
    except Exception:
        log.exception(
            "The lease of cluster %s could not be given back; it ends in %.0f s.",
            cluster_id,
            LEASE_SECONDS,
        )


def _mine(cluster_id: str, fencing: int) -> sa.Update:
    return sa.update(Cluster).where(col(Cluster.id) == cluster_id, col(Cluster.fencing) == fencing)


def _holder() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"[:200]
