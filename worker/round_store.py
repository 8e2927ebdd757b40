"""RoundStore in SQL: a round, what it changed and what a restarted worker needs, in one transaction. Decides nothing.

Two guards: the round's number is unique in its cluster, and only the holder of the cluster's latest fencing number may commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster, ClusterRuntime, OutboxMessage
from maat.scheduling.events import Event
from maat.scheduling.rounds import Changes, ClusterState, RoundResult, StoredState
from worker.changes_json import changes_from_json, changes_to_json
from worker.round_rows import policy_state_from_json, policy_state_to_json, round_row


class RoundKeeper(Protocol):
    """What belongs to a round beside the round itself: the jobs' rows, and what the executor remembers."""

    def keep_round(self, session: Session, result: RoundResult, observed: ClusterState) -> None: ...
    def keep_applied(self, session: Session, changes: Changes, events: Sequence[Event]) -> None: ...
    def executor_state(self) -> Mapping[str, Any] | None: ...


class SqlRoundStore:
    """The rounds of one cluster, for a worker that holds its lease with this fencing number."""

    def __init__(self, database: Database, cluster_id: str, *, fencing: int, keeper: RoundKeeper) -> None:
        self._database, self._cluster_id = database, cluster_id
        self._fencing, self._keeper = fencing, keeper

    def load(self) -> StoredState:
        with self._database.session_scope(writes=False) as session:
            number = session.exec(select(Cluster.next_round_number).where(Cluster.id == self._cluster_id)).one()
            runtime = session.get(ClusterRuntime, self._cluster_id)
        if runtime is None:
            return StoredState(number)
        return StoredState(number, policy_state_from_json(runtime.policy_state), policy_state_from_json(runtime.placer_state))

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        """All of the round or nothing. False where its number is taken, or the lease has passed to somebody else."""
        try:
            with self._database.session_scope() as session:
                if not self._advance(session, result.round_number):
                    return False
                self._write_round(session, result, observed)
                self._keeper.keep_round(session, result, observed)
                self._write_runtime(session, result)
        except IntegrityError:
            if self._is_taken(result.round_number):
                return False
            raise
        return True

    def unapplied(self) -> Sequence[Changes]:
        statement = (
            select(OutboxMessage)
            .where(OutboxMessage.cluster_id == self._cluster_id, col(OutboxMessage.applied_at).is_(None))
            .order_by(col(OutboxMessage.round_number))
        )
        with self._database.session_scope(writes=False) as session:
            return [changes_from_json(message.payload) for message in session.exec(statement)]

    def applied(self, changes: Changes, events: Sequence[Event]) -> None:
        """Keep what the executor did, once: a second time, or after the lease has passed on, nothing is written."""
        with self._database.session_scope() as session:
            if self._mark_applied(session, changes.round_number):
                self._keeper.keep_applied(session, changes, events)
                self._write_executor_state(session)

    def _advance(self, session: Session, number: int) -> bool:
        """Move the cluster to its next round; the row is locked from here on, so that of two workers one waits and then finds it moved."""
        mine = (col(Cluster.id) == self._cluster_id, col(Cluster.fencing) == self._fencing, col(Cluster.next_round_number) == number)
        statement = sa.update(Cluster).where(*mine).values(next_round_number=number + 1)
        return session.connection().execute(statement).rowcount == 1

    def _write_round(self, session: Session, result: RoundResult, observed: ClusterState) -> None:
        cluster = session.get_one(Cluster, self._cluster_id)
        session.add(round_row(result, observed, cluster_id=cluster.id, policy=cluster.policy, placer=cluster.placer))
        message = OutboxMessage(cluster_id=cluster.id, round_number=result.round_number, payload=changes_to_json(result.changes))
        session.add(message)
        session.flush()

    def _write_runtime(self, session: Session, result: RoundResult) -> None:
        runtime = session.get(ClusterRuntime, self._cluster_id) or ClusterRuntime(cluster_id=self._cluster_id)
        runtime.round_number = result.round_number
        runtime.policy_state = policy_state_to_json(result.decision.state)
        runtime.placer_state = policy_state_to_json(result.placement.state)
        runtime.executor_state = self._keeper.executor_state()
        session.add(runtime)

    def _mark_applied(self, session: Session, number: int) -> bool:
        still_mine = sa.exists().where(col(Cluster.id) == self._cluster_id, col(Cluster.fencing) == self._fencing)
        waiting = (col(OutboxMessage.cluster_id) == self._cluster_id, col(OutboxMessage.round_number) == number)
        statement = (
            sa.update(OutboxMessage).where(*waiting, col(OutboxMessage.applied_at).is_(None), still_mine).values(applied_at=utc_now())
        )
        return session.connection().execute(statement).rowcount > 0

    def _write_executor_state(self, session: Session) -> None:
        runtime = session.get(ClusterRuntime, self._cluster_id)
        if runtime is not None:
            runtime.executor_state = self._keeper.executor_state()
            session.add(runtime)

    def _is_taken(self, number: int) -> bool:
        with self._database.session_scope(writes=False) as session:
            return session.exec(select(Cluster.next_round_number).where(Cluster.id == self._cluster_id)).one() != number
