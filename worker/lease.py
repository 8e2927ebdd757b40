"""The right to make a cluster's rounds: held by one worker at a time, in wall time, with a number that grows with every holder.

A worker that lost its lease without noticing cannot commit: the fencing number that it holds is no longer the cluster's.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import sqlalchemy as sa
from sqlmodel import col

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster

LEASE_SECONDS = 6.0
RENEW_SECONDS = 2.0


@contextmanager
def leased(database: Database, cluster_id: str) -> Iterator[int | None]:
    """Hold the cluster's lease while the block runs, however long it takes. Gives the fencing number; None where somebody else holds it."""
    fencing = take(database, cluster_id)
    if fencing is None:
        yield None
        return
    done = threading.Event()
    renewer = threading.Thread(target=_renew_until, args=(done, database, cluster_id, fencing), daemon=True)
    renewer.start()
    try:
        yield fencing
    finally:
        done.set()
        renewer.join()
        _extend(database, cluster_id, fencing, seconds=None)


def take(database: Database, cluster_id: str) -> int | None:
    """Take the lease where nobody holds it or its time is over."""
    now = utc_now()
    statement = (
        sa.update(Cluster)
        .where(col(Cluster.id) == cluster_id, sa.or_(col(Cluster.lease_until).is_(None), col(Cluster.lease_until) < now))
        .values(lease_holder=_holder(), lease_until=now + timedelta(seconds=LEASE_SECONDS), fencing=col(Cluster.fencing) + 1)
        .returning(col(Cluster.fencing))
    )
    with database.session_scope() as session:
        found: int | None = session.connection().execute(statement).scalar_one_or_none()
        return found


def _renew_until(done: threading.Event, database: Database, cluster_id: str, fencing: int) -> None:
    while not done.wait(RENEW_SECONDS):
        _extend(database, cluster_id, fencing, seconds=LEASE_SECONDS)


def _extend(database: Database, cluster_id: str, fencing: int, *, seconds: float | None) -> None:
    """Move the lease's end to `seconds` from now; None gives it back. Nothing happens where it is somebody else's by now."""
    until = None if seconds is None else utc_now() + timedelta(seconds=seconds)
    statement = (
        sa.update(Cluster)
        .where(col(Cluster.id) == cluster_id, col(Cluster.fencing) == fencing)
        .values(lease_until=until, lease_holder=None if until is None else _holder())
    )
    with database.session_scope() as session:
        session.connection().execute(statement)


def _holder() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"[:200]
