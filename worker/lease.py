"""The right to make a cluster's rounds: held by one worker at a time, with a number that grows with every holder.

Its end is a wall time of one clock, the database's (see backend.moments). An end further off than any holder sets it was set before that clock
was set back: such a lease is over. A worker that lost its lease without noticing cannot commit: its fencing number is no longer the cluster's.
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
    """Hold the cluster's lease while the block runs, however long it takes. Gives the fencing number; None where somebody else holds it."""
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
    """Take the lease where nobody holds it or its time is over."""
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
    """Let the lease last its whole time from now on, within the caller's transaction; nothing happens where it is somebody else's.

    A commit may hold the database for longer than a lease lasts, and nobody can renew it meanwhile.
    """
    until = from_now(LEASE_SECONDS, is_sqlite=session.get_bind().dialect.name == "sqlite")
    session.connection().execute(
        _mine(cluster_id, fencing).values(lease_until=until, lease_holder=_holder())
    )


def _renew_until(done: threading.Event, database: Database, cluster_id: str, fencing: int) -> None:
    """A renewal that fails is logged, and the next one tried: the database may be locked or away for a moment."""
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
    """What was done under the lease stands, whether or not this succeeds: a lease that is not given back ends by itself."""
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
