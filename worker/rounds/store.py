"""RoundStore in SQL: stores a round and everything it changed in one transaction.

Two guards: the round's number is unique in its cluster, and only the holder of the cluster's latest
fencing number may commit. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.columns import JsonText, json_text, pack_json
from backend.database import Database
from backend.models import Cluster, ClusterRuntime, Job, OutboxMessage, Round
from maat.scheduling.events import Event
from maat.scheduling.job import JobId
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Changes, ClusterState, StoredState
from worker.live.lease import extend
from worker.live.step_seconds import COMMIT, JOURNAL, READ, StepSeconds
from worker.rounds.changes_json import changes_from_json, changes_to_json
from worker.rounds.rows import policy_state_from_json, policy_state_to_json, round_row
from worker.writes import Write, carry_out

_LOCKED_AT_ONCE = 5000  # ids: databases limit the parameters of a statement


class RoundKeeper(Protocol):
    """What a round stores besides itself: the jobs' rows and the executor's state.

    It writes nothing itself.
    """

    def keep_round(self, result: RoundResult, observed: ClusterState) -> Sequence[Write]: ...
    def keep_applied(self, changes: Changes, events: Sequence[Event]) -> Sequence[Write]: ...
    def executor_state(self) -> Mapping[str, Any] | None: ...

    @property
    def declared(self) -> Mapping[JobId, int]:
        """The versions of the jobs' declarations on which the round is decided."""
        ...


class _ChangedMeanwhile(Exception):
    """A job that the round starts asks for something else by now: the round must be made anew."""


class SqlRoundStore:
    """The rounds of one cluster, for the worker that holds its lease.

    `fencing`: the lease's number. `policy`, `placer`: their names, and `policy_version`, the digest
    of the policy's parameters, are for the round's row. Everything is prepared before a transaction
    begins. `has_written_all`: False if a write was refused because another worker took over.
    """

    def __init__(
        self,
        database: Database,
        cluster_id: str,
        *,
        policy: str,
        placer: str,
        fencing: int,
        keeper: RoundKeeper,
        policy_version: str = "",
        seconds: StepSeconds | None = None,
    ) -> None:
        self._database, self._cluster_id, self._policy, self._placer = (
            database,
            cluster_id,
            policy,
            placer,
        )
        self._fencing, self._keeper, self._policy_version = fencing, keeper, policy_version
        self._seconds = StepSeconds() if seconds is None else seconds
        self.has_written_all = True

    def load(self) -> StoredState:
        with self._seconds.part(READ), self._database.session_scope(writes=False) as session:
            number = session.exec(
                select(Cluster.next_round_number).where(Cluster.id == self._cluster_id)
            ).one()
            states = (col(ClusterRuntime.policy_state), col(ClusterRuntime.placer_state))
            found = session.exec(
                select(*states).where(ClusterRuntime.cluster_id == self._cluster_id)
            ).first()
        return (
            StoredState(number)
            if found is None
            else StoredState(number, *map(policy_state_from_json, found))
        )

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        """Store all of the round or nothing.

        Returns False if its number is taken, another worker has the lease, or a job that it starts
        has changed what it asks for.
        """
        _ = result.explained  # computed on first read: part of the decision, not of the journal
        with self._seconds.part(JOURNAL):
            row, changes = self._round(result, observed), json_text(changes_to_json(result.changes))
            writes, runtime = self._keeper.keep_round(result, observed), self._runtime(result)
        try:
            with self._seconds.part(COMMIT), self._database.session_scope() as session:
                if not self._advance(session, result):
                    return False
                self._check_declarations(session, result)
                self._write_round(session, row, changes)
                carry_out(session, writes)
                self._write_runtime(session, runtime)
                extend(session, self._cluster_id, self._fencing)
        except _ChangedMeanwhile:
            return False
        except IntegrityError:
            if self._is_taken(result.round_number):
                return False
            raise
        return True

    def unapplied(self) -> Sequence[Changes]:
        statement = (
            select(OutboxMessage.payload)
            .where(
                OutboxMessage.cluster_id == self._cluster_id,
                col(OutboxMessage.applied_at).is_(None),
            )
            .order_by(col(OutboxMessage.round_number))
        )
        with self._seconds.part(READ), self._database.session_scope(writes=False) as session:
            return [changes_from_json(payload) for payload in session.exec(statement)]

    def applied(self, changes: Changes, events: Sequence[Event]) -> None:
        """Store what the executor did, once.

        A second call, or one after the lease is lost, writes nothing.
        """
        with self._seconds.part(JOURNAL):
            writes, state = (
                self._keeper.keep_applied(changes, events),
                _packed(self._keeper.executor_state()),
            )
        with self._seconds.part(COMMIT), self._database.session_scope() as session:
            if self._mark_applied(session, changes.round_number):
                carry_out(session, writes)
                self._write_runtime(session, {"executor_state": state})
            else:
                self.has_written_all = False

    def _advance(self, session: Session, result: RoundResult) -> bool:
        """Move the cluster to its next round and lock its row.

        Of two workers one waits and then finds the round taken. A round that shares GPUs is not
        stored once they may not be shared any more.
        """
        number, gpus = result.round_number, result.placement.placement.gpus
        mine = (
            col(Cluster.id) == self._cluster_id,
            col(Cluster.fencing) == self._fencing,
            col(Cluster.next_round_number) == number,
            col(Cluster.jobs_per_gpu) >= int(np.bincount(gpus).max(initial=1)),
        )
        statement = sa.update(Cluster).where(*mine).values(next_round_number=number + 1)
        return session.connection().execute(statement).rowcount == 1

    def _check_declarations(self, session: Session, result: RoundResult) -> None:
        """Lock the jobs that start, so that none changes what it asks for until this is stored.

        Who changes it later finds the round's message (backend/jobs/requests.py).
        """
        declared = self._keeper.declared
        starts = sorted(
            change.job_id
            for change in result.changes.items
            if change.before is None and change.job_id in declared
        )
        for first in range(0, len(starts), _LOCKED_AT_ONCE):
            some = col(Job.id).in_(starts[first : first + _LOCKED_AT_ONCE])
            rows = select(Job.id, Job.declared_version).where(some).order_by(col(Job.id))
            for job_id, version in session.exec(rows.with_for_update()):
                if version != declared[job_id]:
                    raise _ChangedMeanwhile

    def _round(self, result: RoundResult, observed: ClusterState) -> dict[str, Any]:
        row = round_row(
            result,
            observed,
            cluster_id=self._cluster_id,
            policy=self._policy,
            policy_version=self._policy_version,
            placer=self._placer,
        )
        made = {
            "record": pack_json(row.record),
            "prices": json_text(row.prices),
            "gpus_by_type": json_text(row.gpus_by_type),
        }
        return row.model_dump(exclude={"id", "committed_at", *made}) | made

    def _write_round(self, session: Session, row: Mapping[str, Any], changes: JsonText) -> None:
        session.connection().execute(sa.insert(Round).values(**row, committed_at=utc_now()))
        message = {
            "cluster_id": self._cluster_id,
            "round_number": row["number"],
            "payload": changes,
            "created_at": utc_now(),
        }
        session.connection().execute(sa.insert(OutboxMessage).values(**message))

    def _runtime(self, result: RoundResult) -> dict[str, Any]:
        return {
            "round_number": result.round_number,
            "policy_state": json_text(policy_state_to_json(result.decision.state)),
            "placer_state": json_text(policy_state_to_json(result.placement.state)),
            "executor_state": _packed(self._keeper.executor_state()),
        }

    def _write_runtime(self, session: Session, values: Mapping[str, Any]) -> None:
        connection, mine = session.connection(), col(ClusterRuntime.cluster_id) == self._cluster_id
        if connection.execute(sa.update(ClusterRuntime).where(mine).values(**values)).rowcount == 0:
            connection.execute(
                sa.insert(ClusterRuntime).values(cluster_id=self._cluster_id, **values)
            )

    def _mark_applied(self, session: Session, number: int) -> bool:
        still_mine = sa.exists().where(
            col(Cluster.id) == self._cluster_id, col(Cluster.fencing) == self._fencing
        )
        waiting = (
            col(OutboxMessage.cluster_id) == self._cluster_id,
            col(OutboxMessage.round_number) == number,
        )
        statement = (
            sa.update(OutboxMessage)
            .where(*waiting, col(OutboxMessage.applied_at).is_(None), still_mine)
            .values(applied_at=utc_now())
        )
        return session.connection().execute(statement).rowcount > 0

    def _is_taken(self, number: int) -> bool:
        with self._database.session_scope(writes=False) as session:
            return (
                session.exec(
                    select(Cluster.next_round_number).where(Cluster.id == self._cluster_id)
                ).one()
                != number
            )


def _packed(state: Mapping[str, Any] | None) -> bytes | None:
    return None if state is None else pack_json(dict(state))
