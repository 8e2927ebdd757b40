"""SqlRoundStore on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from contracts.round_store import (
    JOB_IDS,
    DurableRoundStoreContract,
    commit,
    observed_at,
    round_result,
)
from live_samples import make_cluster, round_numbers
from sqlmodel import select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster, ClusterRuntime, OutboxMessage, Round
from maat.scheduling.events import Event
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Changes, ClusterState, Placement
from worker.live.lease import take
from worker.rounds.store import SqlRoundStore
from worker.writes import Write


class NothingElse:
    """A round of a cluster of which nothing but the rounds is kept."""

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken

    @property
    def declared(self) -> Mapping[str, int]:
        return {}

    def keep_round(self, result: RoundResult, observed: ClusterState) -> Sequence[Write]:
        return [Write(sa.text("INSERT INTO the_power_went_out VALUES (1)"))] if self.broken else []

    def keep_applied(self, changes: Changes, events: Sequence[Event]) -> Sequence[Write]:
        return []

    def executor_state(self) -> Mapping[str, Any]:
        return {"nodes": [], "executor": {}}


@pytest.fixture
def cluster_id(database: Database) -> str:
    return make_cluster(database)


@pytest.fixture
def store(database: Database, cluster_id: str) -> SqlRoundStore:
    """The store of the worker that holds the lease."""
    fencing = take(database, cluster_id)
    assert fencing is not None
    return SqlRoundStore(
        database,
        cluster_id,
        fencing=fencing,
        policy="fifo",
        placer="packed-sticky",
        keeper=NothingElse(),
    )


class TestSqlRoundStore(DurableRoundStoreContract):
    @pytest.fixture
    def store(self, store: SqlRoundStore) -> SqlRoundStore:
        return store

    @pytest.fixture
    def reopened(self, store: SqlRoundStore, database: Database, cluster_id: str) -> SqlRoundStore:
        return SqlRoundStore(
            database,
            cluster_id,
            fencing=1,
            policy="fifo",
            placer="packed-sticky",
            keeper=NothingElse(),
        )


def test_keeps_nothing_of_a_round_whose_commit_breaks_off(
    database: Database, cluster_id: str, store: SqlRoundStore
) -> None:
    broken = SqlRoundStore(
        database,
        cluster_id,
        fencing=1,
        policy="fifo",
        placer="packed-sticky",
        keeper=NothingElse(broken=True),
    )
    with pytest.raises(sa.exc.DBAPIError):
        commit(broken, 1)
    with database.session_scope(writes=False) as session:
        assert [
            session.exec(select(table)).all() for table in (Round, OutboxMessage, ClusterRuntime)
        ] == [[], [], []]
    assert store.load().next_round_number == 1


def test_refuses_a_worker_whose_lease_has_passed_on(
    database: Database, cluster_id: str, store: SqlRoundStore
) -> None:
    newer = SqlRoundStore(
        database,
        cluster_id,
        fencing=take_over(database, cluster_id),
        policy="fifo",
        placer="packed-sticky",
        keeper=NothingElse(),
    )
    assert not commit(store, 1)
    assert commit(newer, 1)
    store.applied(round_result(1).changes, ())
    assert list(newer.unapplied()) == [round_result(1).changes]


def test_a_lease_that_is_held_is_given_to_nobody_else(
    database: Database, cluster_id: str, store: SqlRoundStore
) -> None:
    assert take(database, cluster_id) is None


def test_lets_one_of_four_commit_each_round(database: Database, store: SqlRoundStore) -> None:
    with ThreadPoolExecutor(4) as pool:
        for number in range(1, 6):
            result, observed = round_result(number), observed_at(number)
            assert sum(pool.map(lambda _, r=result, o=observed: store.commit(r, o), range(4))) == 1
    assert store.load().next_round_number == 6


def test_keeps_the_whole_decision_with_the_round(database: Database, store: SqlRoundStore) -> None:
    commit(store, 1)
    with database.session_scope(writes=False) as session:
        row = session.exec(select(Round)).one()
    assert (row.active_jobs, row.running_jobs, row.pending_jobs, row.gpus_used, row.gpus_total) == (
        2,
        2,
        0,
        4,
        4,
    )
    assert row.gpus_by_type == {"t4": {"used": 4, "capacity": 4}}
    assert row.record["job_ids"] == list(JOB_IDS)
    assert row.record["grants"]["job-a"]["gpu_type"] == "t4"
    assert row.record["reasons"]["job-a"]["code"] == "GRANTED"


def test_numbers_are_of_a_cluster(
    database: Database, store: SqlRoundStore, cluster_id: str
) -> None:
    other = make_cluster(database, name="other")
    assert commit(store, 1)
    assert commit(
        SqlRoundStore(
            database,
            other,
            fencing=take_over(database, other),
            policy="fifo",
            placer="packed-sticky",
            keeper=NothingElse(),
        ),
        1,
    )
    assert (round_numbers(database, cluster_id), round_numbers(database, other)) == ([1], [1])


def take_over(database: Database, cluster_id: str) -> int:
    """What a worker gets that comes when the lease of another has run out."""
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(Cluster).values(lease_until=utc_now() - timedelta(seconds=1))
        )
    fencing = take(database, cluster_id)
    assert fencing is not None
    return fencing


def test_a_round_that_shares_gpus_is_not_stored_once_they_may_not_be_shared(
    database: Database, cluster_id: str, store: SqlRoundStore
) -> None:
    made = round_result(1)
    (first, second) = JOB_IDS[:2]
    gpus = made.placement.placement.by_job[first]
    both = Placement.of({first: gpus, second: gpus})
    shared = replace(made, placement=replace(made.placement, placement=both))
    assert not store.commit(shared, observed_at(1))
    with database.session_scope() as session:
        session.get_one(Cluster, cluster_id).jobs_per_gpu = 2
    assert store.commit(shared, observed_at(1))
