"""Brings the processes of a cluster to what its rounds want of them. Runs every second or so.

    read attempts -> engine.look -> next_move -> store -> engine acts -> store that it has heard

No transaction is open while the engine is asked. What a move allows is stored before the engine is
told, so that a worker killed in between leaves a move that is made again. All of it happens under
the cluster's lease; a worker that lost the lease stores nothing more.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select

from backend.attempts.logs import last_lines
from backend.clocktime import cluster_seconds
from backend.clusters.repository import nodes_of
from backend.database import Database
from backend.models import AttemptRow, Cluster
from backend.moments import moment_of
from maat.vocabulary import AttemptKind, AttemptState, Outcome, StopReason
from worker.engines.protocol import Engine, Phase, Refused, Seen, Unreachable
from worker.training.agent_shown import has_agent
from worker.training.attempt_rows import LiveAttempt, columns_of
from worker.training.attempts import (
    CANNOT_SAVE,
    Attempt,
    End,
    Launch,
    Move,
    Rules,
    Stop,
    TakeGpus,
    after,
    heard,
    next_move,
)
from worker.training.haste import by_haste
from worker.training.hold_rows import NoPlace, any_free, hold, release
from worker.training.holds import GpusByNode, as_named
from worker.training.nodes import follow_nodes
from worker.training.orders import OrderError, Orders, raise_fence

log = logging.getLogger(__name__)

_ATTEMPTS: sa.Table = AttemptRow.__table__  # type: ignore[attr-defined]
_MOST_PASSES = 4  # of one call: ordered, queued, launched, alive
_MOST_SECONDS = 1.0  # of one call: rounds and other clusters wait meanwhile


class LeaseLost(Exception):
    """Another worker makes this cluster's rounds now."""


class _AllDone(Exception):
    """The job ended well after a round had decided where it is to go on."""


class Reconciler:
    """Reconciles one cluster, once, while its lease is held under this fencing number.

    `fault`: why its engine did not answer; None if it did so far. `told_to_end`: the attempts whose
    processes were told to end and are not seen to have ended. `has_more`: there was no time for all
    moves, and the next call is to come soon.
    """

    def __init__(
        self,
        database: Database,
        cluster_id: str,
        engine: Engine,
        orders: Orders,
        *,
        fencing: int,
        rules: Rules | None = None,
    ) -> None:
        self._database, self._cluster_id, self._fencing = database, cluster_id, fencing
        self._engine, self._orders, self._rules = engine, orders, rules or Rules()
        self.fault: str | None = None
        self._known_fault: str | None = None
        self.told_to_end: tuple[str, ...] = ()
        self.has_more = False
        self._until = 0.0

    def run(self) -> bool:
        """Make the moves that can be made now; return whether anything changed.

        Starting many takes long: what there is no time for is left to the next call. An engine that
        does not answer is not asked again: that would take long each time.
        """
        self._until, self.has_more = time.monotonic() + _MOST_SECONDS, False
        changed = False
        try:
            changed = follow_nodes(self._database, self._cluster_id, self._engine)
        except Unreachable as error:
            self._is_away(error)
        for _ in range(_MOST_PASSES):
            moved = self._pass()
            changed |= moved
            if not moved or self.has_more:
                break
        return self._note_fault() or changed

    @property
    def answers(self) -> bool:
        return self.fault is None

    def end_strays(self) -> Sequence[str]:
        """End processes of attempts that are over, or that nobody knows; return the attempts."""
        _, live = self._read()
        try:
            strays = self._engine.strays([one.row.id for one in live])
        except Unreachable:
            return []
        for attempt_id in strays:
            log.warning("attempt %s ran though it is over, and was ended", attempt_id)
        return strays

    def _pass(self) -> bool:
        now, live = self._read()
        self.told_to_end = tuple(one.row.id for one in live if one.row.stop_told)
        seen = self._look([one.row.id for one in live if one.row.launched])
        live = [
            replace(one, has_agent=has_agent(self._orders.root, one.row, seen.get(one.row.id)))
            for one in live
        ]
        moved = self._follow_gpus([one.row for one in live], seen)
        moves = [
            (one, next_move(one.attempt(), seen.get(one.row.id), self._rules, now)) for one in live
        ]
        for index, (one, move) in enumerate(by_haste(moves, turn=self._fencing)):
            if index and time.monotonic() >= self._until:
                self.has_more = True
                break
            if isinstance(move, TakeGpus):
                moved |= self._take_gpus(one, [other.row for other in live], now)
            else:
                self._make(one, move, seen.get(one.row.id), now)
                moved = True
        return moved

    def _read(self) -> tuple[float, list[LiveAttempt]]:
        with self._database.session_scope(writes=False) as session:
            cluster = session.get_one(Cluster, self._cluster_id)
            now = cluster_seconds(cluster, moment_of(session))
            self._known_fault = cluster.fault
            rows = session.exec(
                select(AttemptRow)
                .where(
                    AttemptRow.cluster_id == self._cluster_id,
                    AttemptRow.state != AttemptState.ENDED.value,
                )
                .order_by(col(AttemptRow.id))
            ).all()
            grace = self._orders.stop_seconds(session, [row.job_id for row in rows])
        return now, [LiveAttempt(row, grace[row.job_id]) for row in rows]

    def _now(self) -> float:
        """Return the time of the cluster, in seconds: an engine may take long to answer."""
        with self._database.session_scope(writes=False) as session:
            cluster = session.get_one(Cluster, self._cluster_id)
            return cluster_seconds(cluster, moment_of(session))

    def _look(self, attempt_ids: Sequence[str]) -> Mapping[str, Seen]:
        if not attempt_ids or not self.answers:
            return {}
        try:
            return self._engine.look(attempt_ids)
        except Unreachable as error:
            self._is_away(error)
            return {}

    def _is_away(self, error: Unreachable) -> None:
        self.fault = str(error)[:1000]
        log.warning("cluster %s: its engine does not answer: %s", self._cluster_id, error)

    def _note_fault(self) -> bool:
        """Store whether the engine answers; return whether that is news."""
        if (self.fault is None) == (self._known_fault is None):
            return False
        mine = (col(Cluster.id) == self._cluster_id, col(Cluster.fencing) == self._fencing)
        with self._database.session_scope() as session:
            note = sa.update(Cluster).where(*mine).values(fault=self.fault)
            session.connection().execute(note)
        return True

    def _make(self, one: LiveAttempt, move: Move, seen: Seen | None, now: float) -> None:
        """Store a move, then tell the engine, then store that it has heard."""
        moved = after(one.attempt(), move, now)
        if isinstance(move, End):
            self._end(one.row, move, now, failed_first=None if seen is None else seen.first_failed)
            return
        self._store(one.row, moved, seen=seen)
        try:
            engine_id = self._tell(one.row, move)
        except Unreachable as error:
            log.warning("attempt %s: the engine does not answer: %s", one.row.id, error)
            return
        except (Refused, OrderError) as error:
            self._end(one.row, End(Outcome.REFUSED, {}, str(error)), now)
            return
        if isinstance(move, Stop):
            self._store(one.row, heard(moved, move, self._now()))
        elif engine_id is not None and engine_id != one.row.engine_id:
            self._write(one.row, {"engine_id": engine_id})

    def _tell(self, row: AttemptRow, move: Move) -> str | None:
        if not self.answers:
            raise Unreachable("It did not answer before.")
        match move:
            case Launch():
                with self._database.session_scope(writes=False) as session:
                    order = self._orders.order_of(session, row)
                raise_fence(order)
                return self._engine.launch(order)
            case Stop(kill=True):
                self._engine.kill(row.id)
            case Stop():
                self._engine.stop(row.id)
        return None

    def _take_gpus(self, one: LiveAttempt, live: Sequence[AttemptRow], now: float) -> bool:
        """Hold the GPUs of an ordered attempt; return False if one has no place yet."""
        row = one.row
        older = any(other.job_id == row.job_id and other.number < row.number for other in live)
        if older:
            return False
        try:
            with self._database.session_scope() as session:
                nodes = {node.name: node for node in nodes_of(session, self._cluster_id)}
                if not row.gpus_by_node.keys() <= nodes.keys():
                    raise OrderError("A node of it was removed.")
                if _has_succeeded(session, row.job_id):
                    raise _AllDone
                gpus: GpusByNode | None = row.gpus_by_node
                if not self._engine.capabilities.names_gpus:
                    gpus = any_free(session, row, nodes)
                if gpus is None:
                    return False
                values = columns_of(after(one.attempt(), TakeGpus(), now))
                self._guarded(session, row, {**values, "gpus_by_node": dict(gpus)})
                places = session.get_one(Cluster, self._cluster_id).jobs_per_gpu
                hold(session, row, gpus, nodes, places=places)
        except (IntegrityError, NoPlace):
            return False
        except _AllDone:
            self._end(row, End(Outcome.NEVER_STARTED, {}, "All the job's work is done."), now)
        except OrderError as error:
            self._end(row, End(Outcome.REFUSED, {}, str(error)), now)
        return True

    def _follow_gpus(self, rows: Sequence[AttemptRow], seen: Mapping[str, Seen]) -> bool:
        """Let holds follow the GPUs that the engine names; return whether any changed."""
        holding = {row.id: row for row in rows if row.state != AttemptState.ORDERED}
        named = {
            each: seen[each].gpus_by_node or {}
            for each in holding
            if each in seen and seen[each].gpus_by_node is not None
        }
        now = as_named({each: row.gpus_by_node for each, row in holding.items()}, named)
        changed = {each: gpus for each, gpus in now.items() if gpus != holding[each].gpus_by_node}
        if not changed:
            return False
        with self._database.session_scope() as session:
            nodes = {node.name: node for node in nodes_of(session, self._cluster_id)}
            release(session, changed)
            for attempt_id, gpus in changed.items():
                log.info("attempt %s holds %s, by its engine's choice", attempt_id, gpus)
                self._guarded(session, holding[attempt_id], {"gpus_by_node": gpus})
                hold(session, holding[attempt_id], gpus, nodes)
        return True

    def _end(
        self, row: AttemptRow, end: End, now: float, *, failed_first: int | None = None
    ) -> None:
        values: dict[str, object] = {
            "state": AttemptState.ENDED.value,
            "outcome": end.outcome.value,
            "reason": (end.reason or row.reason)[:1000],
            "exits": {str(rank): code for rank, code in end.exits.items()} or None,
            "ended_seconds": now,
            **({"finished": True} if end.finished else {}),
        }
        if end.outcome is Outcome.FAILED or CANNOT_SAVE in end.exits.values():
            rank = next((r for r, code in sorted(end.exits.items()) if code), 0)
            rank = rank if failed_first is None else failed_first
            values["last_lines"] = last_lines(self._orders.root, row.id, rank) or None
        with self._database.session_scope() as session:
            self._guarded(session, row, values)
            release(session, [row.id])
        if row.launched:
            try:
                self._engine.forget(row.id)
            except Unreachable as error:
                log.warning("attempt %s: the engine keeps its folder: %s", row.id, error)

    def _store(self, row: AttemptRow, attempt: Attempt, *, seen: Seen | None = None) -> None:
        values = columns_of(attempt)
        if seen is not None and seen.engine_id is not None:
            values["engine_id"] = seen.engine_id
        # Later the engine may not say it any more.
        if seen is not None and attempt.stop_reason is StopReason.NOT_STARTED:
            values["reason"] = seen.reason[:1000]
        elif seen is not None and seen.phase is Phase.ABSENT and attempt.killed_at is not None:
            values["reason"] = (seen.reason or "The engine did not know it any more.")[:1000]
        self._write(row, values)

    def _write(self, row: AttemptRow, values: Mapping[str, object]) -> None:
        with self._database.session_scope() as session:
            self._guarded(session, row, values)

    def _guarded(self, session: Session, row: AttemptRow, values: Mapping[str, object]) -> None:
        """Write columns of an attempt if this worker still holds the lease."""
        still_mine = sa.exists().where(
            col(Cluster.id) == self._cluster_id, col(Cluster.fencing) == self._fencing
        )
        statement = (
            sa.update(_ATTEMPTS).where(_ATTEMPTS.c.id == row.id, still_mine).values(**values)
        )
        if session.connection().execute(statement).rowcount != 1:
            raise LeaseLost(self._cluster_id)


def _has_succeeded(session: Session, job_id: str) -> bool:
    is_no_profile = col(AttemptRow.kind) == AttemptKind.TRAIN.value
    well = (
        col(AttemptRow.job_id) == job_id,
        col(AttemptRow.outcome) == Outcome.SUCCEEDED.value,
        sa.or_(is_no_profile, col(AttemptRow.finished)),
    )
    return session.exec(select(AttemptRow.id).where(*well).limit(1)).first() is not None
