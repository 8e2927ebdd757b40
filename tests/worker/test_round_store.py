"""SqlRoundStore on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from live_samples import make_cluster, round_numbers
from round_store_contract import OpenStore, RoundStoreContract, planned
from sqlmodel import Session, select

from backend.database import Database
from backend.models import ClusterRuntime, OutboxMessage, Round
from maat.scheduling.events import Event
from maat.scheduling.rounds import Changes, ClusterState, RoundResult
from worker.lease import take
from worker.round_store import SqlRoundStore


class NothingElse:
    """A round of a cluster of which nothing but the rounds is kept."""

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken

    def keep_round(self, session: Session, result: RoundResult, observed: ClusterState) -> None:
        if self.broken:
            raise RuntimeError("the power went out")

    def keep_applied(self, session: Session, changes: Changes, events: Sequence[Event]) -> None:
        pass

    def executor_state(self) -> Mapping[str, Any]:
        return {"nodes": [], "executor": {}}


@pytest.fixture
def cluster_id(database: Database) -> str:
    return make_cluster(database)


class TestSqlRoundStore(RoundStoreContract):
    @pytest.fixture
    def open_store(self, database: Database, cluster_id: str) -> OpenStore:
        fencing = take(database, cluster_id)
        assert fencing is not None
        return lambda: SqlRoundStore(database, cluster_id, fencing=fencing, keeper=NothingElse())

    def test_keeps_nothing_of_a_round_whose_commit_breaks_off(self, database: Database, cluster_id: str, open_store: OpenStore) -> None:
        broken = SqlRoundStore(database, cluster_id, fencing=1, keeper=NothingElse(broken=True))
        with pytest.raises(RuntimeError):
            broken.commit(*planned(1))
        with database.session_scope(writes=False) as session:
            assert [session.exec(select(table)).all() for table in (Round, OutboxMessage, ClusterRuntime)] == [[], [], []]
        assert open_store().load().next_round_number == 1

    def test_refuses_a_worker_whose_lease_has_passed_on(self, database: Database, cluster_id: str, open_store: OpenStore) -> None:
        late = open_store()
        result, observed = planned(1)
        newer = SqlRoundStore(database, cluster_id, fencing=take_over(database, cluster_id), keeper=NothingElse())
        assert not late.commit(result, observed)
        assert newer.commit(result, observed)
        late.applied(result.changes, ())
        assert list(newer.unapplied()) == [result.changes]

    def test_keeps_the_whole_decision_with_the_round(self, database: Database, cluster_id: str, open_store: OpenStore) -> None:
        result, observed = planned(1)
        open_store().commit(result, observed)
        with database.session_scope(writes=False) as session:
            row = session.exec(select(Round)).one()
        assert (row.active_jobs, row.running_jobs, row.pending_jobs, row.gpus_used, row.gpus_total) == (2, 2, 0, 2, 8)
        assert row.gpus_by_type == {"t4": {"used": 2, "capacity": 8}}
        assert row.record["job_ids"] == ["first", "second"]
        assert row.record["grants"]["first"]["gpu_type"] == "t4"
        assert row.record["reasons"]["first"]["code"] == "GRANTED"

    def test_numbers_are_of_a_cluster(self, database: Database, open_store: OpenStore, cluster_id: str) -> None:
        other = make_cluster(database, name="other")
        assert open_store().commit(*planned(1))
        assert SqlRoundStore(database, other, fencing=take_over(database, other), keeper=NothingElse()).commit(*planned(1))
        assert (round_numbers(database, cluster_id), round_numbers(database, other)) == ([1], [1])


def take_over(database: Database, cluster_id: str) -> int:
    """What a worker gets that comes when the lease of another has run out."""
    from datetime import timedelta

    import sqlalchemy as sa

    from backend.clocktime import utc_now
    from backend.models import Cluster

    with database.session_scope() as session:
        session.connection().execute(sa.update(Cluster).values(lease_until=utc_now() - timedelta(seconds=1)))
    fencing = take(database, cluster_id)
    assert fencing is not None
    return fencing
