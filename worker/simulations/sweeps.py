"""Plays points of sweeps, one per task, and ends the sweeps that are complete.

A point is played while some sweep needs it; its figures stay for all later sweeps. If a worker
dies, another one claims its point. Knows no broker.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.measurements.uses import measured, uses_of
from backend.models import Operation, OperationState, Sweep, SweepMember, SweepPoint
from backend.operations.models import ENDED
from backend.simulations.stored import why_unreadable
from backend.sweeps.requests import base_of
from backend.sweeps.resources import error_of_point
from backend.sweeps.service import SWEEP
from maat.laboratory.figures import Figures, figures_of
from maat.laboratory.sweep import point_at
from maat.simulation.engine import simulate
from maat.simulation.record import Cancelled, Position
from worker.laboratory.turn import Turn
from worker.laboratory.work import LIVE, Work, work_of
from worker.operations import count_of, finish
from worker.simulations.progress import PROGRESS_SECONDS, Progress, Stall
from worker.simulations.runs import problem_of
from worker.work_queue import Claim, WorkQueue

POINTS = WorkQueue(SweepPoint, key=col(SweepPoint.key))
PLAYED = frozenset({OperationState.SUCCEEDED.value, OperationState.FAILED.value})


def work(session: Session) -> list[Work]:
    """Return the sweeps that have points to play."""
    joined = sa.join(
        sa.join(
            sa.join(Operation, Sweep, col(Sweep.operation_id) == col(Operation.id)),
            SweepMember,
            col(SweepMember.sweep_id) == col(Sweep.id),
        ),
        SweepPoint,
        col(SweepPoint.key) == col(SweepMember.point_key),
    )
    return work_of(session, SWEEP, POINTS, joined, ~col(Operation.cancel_requested))


def play(database: Database, operation_id: str, turn: Turn) -> None:
    """Play the first point of a sweep that has no worker."""
    waits, _, _ = POINTS.standings(utc_now())
    first = (
        select(SweepMember.point_key)
        .join(Sweep)
        .join(SweepPoint, col(SweepPoint.key) == col(SweepMember.point_key))
        .where(Sweep.operation_id == operation_id, waits)
        .order_by(col(SweepMember.position))
        .limit(1)
    )
    with database.session_scope(writes=False) as session:
        key = session.exec(first).first()
    if key is not None:
        run_point(database, key, turn)


def queue_wanted_again(database: Database) -> None:
    """Queue points that were dropped just before another sweep needed them."""
    dropped = (
        col(SweepPoint.state) == OperationState.CANCELLED,
        col(SweepPoint.key).in_(_wanted_keys()),
    )
    with database.session_scope(writes=False) as session:
        if session.exec(select(SweepPoint.key).where(*dropped).limit(1)).first() is None:
            return
    again = sa.update(SweepPoint).where(*dropped)
    with database.session_scope() as session:
        session.connection().execute(
            again.values(state=OperationState.QUEUED, heartbeat_at=None, finished_at=None)
        )


def run_point(database: Database, key: str, turn: Turn | None = None) -> OperationState | None:
    """Play a point and store its figures.

    Returns None if another worker has claimed it, it has ended, or no sweep needs it any more.
    """
    taken = _claim(database, key)
    if taken is None:
        return None
    claim, sweep, member = taken
    turn = Turn() if turn is None else turn
    with POINTS.working_on(database, claim), turn.taken():
        try:
            figures = _play(database, sweep, member, turn)
        except Cancelled:
            state, values = OperationState.CANCELLED, dict[str, object]()
        except Exception as error:
            state = OperationState.FAILED
            values = {
                "error": problem_of(error, sweep, of_others=sweep.request.replays_a_cluster),
            }
        else:
            state, values = OperationState.SUCCEEDED, {"figures": dict(figures)}
    with database.session_scope() as session:
        is_ours = POINTS.settle(session, claim, state, **values)
    settle(database)
    return state if is_ours else None


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


def _claim(database: Database, key: str) -> tuple[Claim, Sweep, SweepMember] | None:
    """Claim a queued or abandoned point for the oldest sweep that needs it and can be read.

    All its sweeps are running from now on. A point that only sweeps of another version need is left
    to a worker of that version.
    """
    with database.session_scope() as session:
        columns = col(Sweep.id), col(SweepMember.position)
        places = session.exec(_wanting(key).with_only_columns(*columns).order_by(*columns)).all()
        if not places:
            POINTS.drop(session, col(SweepPoint.key) == key)
            return None
        members = (session.get_one(SweepMember, place) for place in places)
        each = ((session.get_one(Sweep, member.sweep_id), member) for member in members)
        wanted = next((one for one in each if why_unreadable(one[0].request) is None), None)
        if wanted is None:
            return None
        claim = POINTS.claim_next(session, col(SweepPoint.key) == key)
        if claim is None:
            return None
        sweeps = select(Sweep.operation_id).join(SweepMember).where(SweepMember.point_key == key)
        queued = (col(Operation.id).in_(sweeps), col(Operation.state) == OperationState.QUEUED)
        begun = {"started_at": claim.since, "heartbeat_at": claim.since}
        running = sa.update(Operation).where(*queued)
        session.connection().execute(running.values(state=OperationState.RUNNING, **begun))
        return claim, *wanted


def _play(database: Database, sweep: Sweep, member: SweepMember, turn: Turn) -> Figures:
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
    stall = Stall()
    progress = Progress(lambda: not is_wanted(database, point.key), seconds=PROGRESS_SECONDS)

    def on_progress(position: Position) -> None:
        turn.look()
        stall.look(position)
        progress.report(position.finished)

    result = simulate(point.scenario, on_progress=on_progress)
    if progress.stopped:
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
    operation.state, operation.done, operation.message = (
        OperationState.RUNNING,
        float(ended),
        count_of("Points", states),
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
    waiting = col(SweepPoint.state) == OperationState.QUEUED
    with database.session_scope() as session:
        POINTS.drop(session, waiting, col(SweepPoint.key).not_in(_wanted_keys()))
