"""Plays points of sweeps, one per task, and ends the sweeps that are complete.

A point is played while some sweep needs it; its figures stay for all later sweeps. If a worker
dies, another one claims its point. Knows no broker.
"""

from __future__ import annotations

import time
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.measurements.uses import measured, uses_of
from backend.models import Operation, OperationState, Sweep, SweepMember, SweepPoint
from backend.operations.models import ENDED
from backend.sweeps.requests import base_of
from backend.sweeps.resources import error_of_point
from maat.laboratory.figures import Figures, figures_of
from maat.laboratory.sweep import point_at
from maat.simulation.engine import simulate
from maat.simulation.record import Cancelled, Position
from worker.claims import claim, overdue, stale
from worker.operations import PROGRESS_SECONDS, beating, finish
from worker.simulations import Stall, problem_of

LIVE = (OperationState.QUEUED.value, OperationState.RUNNING.value)
PLAYED = frozenset({OperationState.SUCCEEDED.value, OperationState.FAILED.value})


def waiting_points(database: Database) -> list[str]:
    """Return points without a worker and mark them as sent.

    Includes points that were dropped just before another sweep needed them.
    """
    now = utc_now()
    dropped = sa.and_(
        col(SweepPoint.state) == OperationState.CANCELLED, col(SweepPoint.key).in_(_wanted_keys())
    )
    waiting = sa.or_(overdue(SweepPoint, now), stale(SweepPoint, now), dropped)
    with database.session_scope(writes=False) as session:
        if session.exec(select(SweepPoint.key).where(waiting).limit(1)).first() is None:
            return []
    with database.session_scope() as session:
        update = (
            sa.update(SweepPoint)
            .where(waiting)
            .values(state=OperationState.QUEUED, heartbeat_at=now)
        )
        return sorted(session.connection().execute(update.returning(col(SweepPoint.key))).scalars())


def run_point(database: Database, key: str) -> OperationState | None:
    """Play a point and store its figures.

    Returns None if another worker has claimed it, it has ended, or no sweep needs it any more.
    """
    taken = _claim(database, key)
    if taken is None:
        return None
    sweep, member = taken
    with beating(lambda: _update(database, key, heartbeat_at=utc_now())):
        try:
            figures = _play(database, sweep, member)
        except Cancelled:
            values: dict[str, Any] = {"state": OperationState.CANCELLED}
        except Exception as error:
            values = {
                "state": OperationState.FAILED,
                "error": problem_of(error, sweep, of_others=sweep.request.replays_a_cluster),
            }
        else:
            values = {"state": OperationState.SUCCEEDED, "figures": dict(figures)}
    _update(database, key, finished_at=utc_now(), **values)
    settle(database)
    state: OperationState = values["state"]
    return state


def settle(database: Database) -> None:
    """Update every live sweep's operation from its points.

    It sets progress, end or cancellation.
    """
    with database.session_scope(writes=False) as session:
        live = session.exec(
            select(Sweep.id, Operation.id).join(Operation).where(col(Operation.state).in_(LIVE))
        ).all()
        moved = [ids for ids in live if _has_moved(session, *ids)]
    for sweep_id, operation_id in moved:
        with database.session_scope() as session:
            _settle(session, sweep_id, operation_id)
    if moved:
        _drop_unwanted(database)


def _claim(database: Database, key: str) -> tuple[Sweep, SweepMember] | None:
    """Claim a queued or abandoned point for the oldest sweep that needs it.

    All its sweeps are running from now on.
    """
    now = utc_now()
    with database.session_scope() as session:
        wanted: tuple[Sweep, SweepMember] | None = session.exec(
            _wanting(key).order_by(col(Sweep.id), col(SweepMember.position)).limit(1)
        ).first()
        state = OperationState.CANCELLED if wanted is None else OperationState.RUNNING
        if (
            not claim(session, SweepPoint, col(SweepPoint.key) == key, now=now, state=state)
            or wanted is None
        ):
            return None
        sweeps = select(Sweep.operation_id).join(SweepMember).where(SweepMember.point_key == key)
        queued = (col(Operation.id).in_(sweeps), col(Operation.state) == OperationState.QUEUED)
        running = (
            sa.update(Operation)
            .where(*queued)
            .values(state=OperationState.RUNNING, started_at=now, heartbeat_at=now, updated_at=now)
        )
        session.connection().execute(running)
        return wanted


def _play(database: Database, sweep: Sweep, member: SweepMember) -> Figures:
    """Play a point.

    Raises Cancelled once no sweep needs the point, InputError if it cannot be simulated.
    """
    with database.session_scope(writes=False) as session:
        found = measured(session, uses_of(session, sweep.operation_id), sweep.request)
    point = point_at(base_of(sweep.request, found), member.settings, member.seed)
    if point.key != member.point_key:
        raise RuntimeError(
            f"{sweep.id} was requested from another version of Maat: "
            f"position {member.position} is now another simulation"
        )
    stall, next_look, unwanted = Stall(), 0.0, False

    def on_progress(position: Position) -> None:
        nonlocal next_look, unwanted
        stall.look(position)
        if time.monotonic() >= next_look:
            next_look = time.monotonic() + PROGRESS_SECONDS
            unwanted = not is_wanted(database, point.key)
        if unwanted:
            raise Cancelled

    result = simulate(point.scenario, on_progress=on_progress)
    if unwanted:
        raise Cancelled
    return figures_of(result)


def is_wanted(database: Database, key: str) -> bool:
    """Return whether a sweep that is not cancelled has this point."""
    with database.session_scope(writes=False) as session:
        wanting = _wanting(key).with_only_columns(col(Sweep.id))  # requests are large
        return session.exec(wanting.limit(1)).first() is not None


def _wanting(key: str) -> Any:
    """Select the uncancelled sweeps with this point, and its place in each."""
    joined = (
        select(Sweep, SweepMember)
        .join(SweepMember)
        .join(Operation, col(Operation.id) == col(Sweep.operation_id))
    )
    return joined.where(col(SweepMember.point_key) == key, *_not_to_stop())


def _wanted_keys() -> Any:
    joined = (
        select(SweepMember.point_key)
        .join(Sweep)
        .join(Operation, col(Operation.id) == col(Sweep.operation_id))
    )
    return joined.where(*_not_to_stop())


def _not_to_stop() -> tuple[Any, ...]:
    return col(Operation.state).in_(LIVE), col(Operation.cancel_requested).is_(False)


def _states(session: Session, sweep_id: str) -> list[str]:
    statement = select(SweepPoint.state).join(SweepMember).where(SweepMember.sweep_id == sweep_id)
    return list(session.exec(statement.order_by(col(SweepMember.position))))


def _has_moved(session: Session, sweep_id: str, operation_id: str) -> bool:
    operation = session.get_one(Operation, operation_id)
    ended = sum(state in PLAYED for state in _states(session, sweep_id))
    return operation.cancel_requested or ended != operation.done or ended == operation.total


def _settle(session: Session, sweep_id: str, operation_id: str) -> None:
    operation = session.get_one(Operation, operation_id, with_for_update=True)
    if operation.state in ENDED:
        return
    states = _states(session, sweep_id)
    ended = sum(state in PLAYED for state in states)
    counts = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
    operation.state, operation.done, operation.message = (
        OperationState.RUNNING,
        float(ended),
        f"Points: {counts}.",
    )
    session.add(operation)
    session.flush()
    if operation.cancel_requested:
        finish(session, operation_id, OperationState.CANCELLED, message=operation.message)
    elif ended == len(states):
        failed = OperationState.FAILED.value in states
        state = OperationState.FAILED if failed else OperationState.SUCCEEDED
        finish(
            session,
            operation_id,
            state,
            message=operation.message,
            error=_first_error(session, sweep_id, operation) if failed else None,
        )


def _first_error(session: Session, sweep_id: str, operation: Operation) -> Any:
    statement = (
        select(SweepPoint.error)
        .join(SweepMember)
        .where(SweepMember.sweep_id == sweep_id, col(SweepPoint.error).is_not(None))
    )
    first = session.exec(statement.order_by(col(SweepMember.position)).limit(1)).first()
    return None if first is None else error_of_point(first, operation)


def _drop_unwanted(database: Database) -> None:
    """Cancel the points that only ended sweeps wait for."""
    waiting = (
        col(SweepPoint.state) == OperationState.QUEUED,
        col(SweepPoint.key).not_in(_wanted_keys()),
    )
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(SweepPoint).where(*waiting).values(state=OperationState.CANCELLED)
        )


def _update(database: Database, key: str, **values: Any) -> None:
    running = (col(SweepPoint.key) == key, col(SweepPoint.state) == OperationState.RUNNING)
    with database.session_scope() as session:
        session.connection().execute(sa.update(SweepPoint).where(*running).values(**values))
