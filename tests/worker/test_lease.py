"""Tests of the lease of a cluster on both databases.

A living holder keeps renewing it, even if the database fails or keeps it waiting.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa
from contracts.round_store import commit
from live_samples import make_cluster
from sqlmodel import col
from test_round_store import NothingElse

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import ClusterState
from worker.live import lease
from worker.rounds.store import SqlRoundStore
from worker.writes import Write

pytestmark = pytest.mark.both_databases

PATIENCE_SECONDS = 60.0  # only a test that fails waits as long


def test_a_renewal_that_fails_is_followed_by_the_next(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(database_url, busy_seconds=0.05)
    cluster_id = make_cluster(database)
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.05)
    with lease.leased(database, cluster_id):
        with in_the_way(database, cluster_id):
            await_(lambda: "could not be renewed" in caplog.text)
        at_failure = end_of(database, cluster_id)
        await_(lambda: end_of(database, cluster_id) > at_failure)
    database.dispose()


def test_a_lease_that_cannot_be_given_back_undoes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster_id = make_cluster(database)
    with lease.leased(database, cluster_id) as fencing:
        monkeypatch.setattr(Database, "session_scope", _unreachable)
    assert fencing == 1
    assert "could not be given back" in caplog.text


def test_a_commit_that_lasts_longer_than_the_lease_keeps_it(database: Database) -> None:
    cluster_id = make_cluster(database)
    fencing = lease.take(database, cluster_id)
    assert fencing is not None
    assert commit(
        SqlRoundStore(
            database,
            cluster_id,
            policy="fifo",
            placer="packed-sticky",
            fencing=fencing,
            keeper=Slow(cluster_id),
        ),
        1,
    )
    assert lease.take(database, cluster_id) is None


class Slow(NothingElse):
    """Keeps the round for so long that the lease is over meanwhile."""

    def __init__(self, cluster_id: str) -> None:
        super().__init__()
        self._cluster_id = cluster_id

    def keep_round(self, result: RoundResult, observed: ClusterState) -> Sequence[Write]:
        over = utc_now() - timedelta(seconds=60)
        return [
            Write(
                sa.update(Cluster)
                .where(col(Cluster.id) == self._cluster_id)
                .values(lease_until=over)
            )
        ]


@contextmanager
def in_the_way(database: Database, cluster_id: str) -> Iterator[None]:
    """Keep others from writing to the cluster's row.

    On SQLite another connection writes. On PostgreSQL another holds the row, and the connections
    that wait for it are killed.
    """
    stop, killer = threading.Event(), None
    with database.engine.execution_options(maat_begin="BEGIN IMMEDIATE").begin() as connection:
        connection.execute(
            sa.update(Cluster).where(col(Cluster.id) == cluster_id).values(name="held")
        )
        if not database.is_sqlite:
            killer = threading.Thread(target=_kill_waiting, args=(database, stop))
            killer.start()
        try:
            yield
        finally:
            stop.set()
            if killer is not None:
                killer.join()


def _kill_waiting(database: Database, stop: threading.Event) -> None:
    waiting = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    while not stop.wait(0.02):
        with database.engine.connect() as connection:
            connection.exec_driver_sql(waiting)


def end_of(database: Database, cluster_id: str) -> datetime:
    with database.session_scope(writes=False) as session:
        end = session.get_one(Cluster, cluster_id).lease_until
    assert end is not None
    return end


def await_(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _unreachable(*_: object, **__: object) -> None:
    raise OSError("the database is away")
