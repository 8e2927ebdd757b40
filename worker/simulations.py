"""Plays the runs of a simulation and stores each as it ends. Knows no broker.

Several workers share the runs. A worker takes one run after the other until all are claimed. If it
is killed in a run, another worker repeats that run: a run is either stored whole or run again. A
cancelled run keeps what was played until then.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.measurements.uses import Measured, measured, uses_of
from backend.models import Operation, OperationState, Simulation, SimulationRun, Sweep
from backend.operations.models import ENDED
from backend.problems import InternalError, Invalid, Problem, invalid_input
from backend.simulations.history import unnamed
from backend.simulations.service import runs_of
from backend.simulations.traces import workload_of
from maat.api.simulations import ClusterTrace
from maat.scheduling.errors import InputError
from maat.simulation.engine import simulate
from maat.simulation.iteration_models import shipped_models
from maat.simulation.record import Cancelled, Position, SimulationResult
from maat.simulation.world_models import Model
from maat.workloads.workloads import Workload
from worker.claims import claim, claimable, overdue, stale
from worker.operations import (
    PROGRESS_SECONDS,
    beating,
    finish,
    is_cancel_requested,
    join,
    waiting_operations,
)
from worker.scenarios import scenario_of
from worker.simulation_result import result_to_json

log = logging.getLogger(__name__)

SIMULATION = "simulation"
STALLED_ROUNDS = 50_000  # a month of one-minute rounds


def waiting_simulations(database: Database) -> list[tuple[str, int]]:
    """Return simulations with runs without a worker, and how many messages they need.

    The messages count as sent from now on.
    """
    operations = waiting_operations(database, kind=SIMULATION)
    with database.session_scope(writes=False) as session:
        left = sa.func.count().filter(col(SimulationRun.state).not_in(ENDED))
        statement = (
            select(Simulation.id, left)
            .join(SimulationRun)
            .where(col(Simulation.operation_id).in_(operations))
        )
        waiting = {
            found: max(count, 1)
            for found, count in session.exec(statement.group_by(col(Simulation.id)))
        }
    return sorted((_abandoned_runs(database) | waiting).items())


def _abandoned_runs(database: Database) -> Counter[str]:
    """Count, per simulation, the runs abandoned by dead workers and requeue them.

    Includes requeued runs whose message is overdue. Another worker at the same simulation keeps its
    operation alive, but may be busy with its own run for long; these runs must not wait for it.
    """
    now = utc_now()
    abandoned = sa.or_(
        stale(SimulationRun, now),
        sa.and_(col(SimulationRun.heartbeat_at).is_not(None), overdue(SimulationRun, now)),
    )
    live = select(Simulation.id).join(Operation).where(col(Operation.state).not_in(ENDED))
    wanted = (col(SimulationRun.simulation_id).in_(live), abandoned)
    with database.session_scope(writes=False) as session:
        if session.exec(select(SimulationRun.id).where(*wanted).limit(1)).first() is None:
            return Counter()
    again = (
        sa.update(SimulationRun)
        .where(*wanted)
        .values(state=OperationState.QUEUED, heartbeat_at=now)
    )
    with database.session_scope() as session:
        return Counter(
            session.connection()
            .execute(again.returning(col(SimulationRun.simulation_id)))
            .scalars()
        )


def run_simulation(database: Database, simulation_id: str) -> OperationState | None:
    """Play the unclaimed runs of a simulation.

    Returns how it ended; None if it has not ended, or had ended before.
    """
    with database.session_scope(writes=False) as session:
        simulation = session.get(Simulation, simulation_id)
    if simulation is None or not join(database, simulation.operation_id):
        return None
    work = _Work(database, simulation)
    while (run := _claim(database, simulation)) is not None:
        with beating(lambda run=run: _beat(database, simulation, run.id)):  # type: ignore[misc]
            _play(database, work, run)
    return settle(database, simulation)


class _Work:
    """What the runs of one simulation share.

    Each trace is read when a run first needs it.
    """

    def __init__(self, database: Database, simulation: Simulation) -> None:
        self._database, self.simulation = database, simulation
        self.models: Mapping[str, Model] = shipped_models()
        self.workload = lru_cache(maxsize=2)(self._read)

    @cached_property
    def measured(self) -> Measured:
        """The measurements as requested, even if they were deleted since."""
        with self._database.session_scope(writes=False) as session:
            return measured(
                session, uses_of(session, self.simulation.operation_id), self.simulation.request
            )

    def _read(self, trace: int) -> Workload:
        with self._database.session_scope(writes=False) as session:
            return workload_of(session, self.simulation.request.traces[trace])


def _claim(database: Database, simulation: Simulation) -> SimulationRun | None:
    """Claim the first queued or abandoned run; return None after a cancel request."""
    now = utc_now()
    mine = SimulationRun.simulation_id == simulation.id
    while not is_cancel_requested(database, simulation.operation_id):
        with database.session_scope() as session:
            first = (
                select(SimulationRun.id)
                .where(mine, claimable(SimulationRun, now))
                .order_by(col(SimulationRun.position))
            )
            run_id = session.exec(first.limit(1)).first()
            if run_id is None:
                return None
            if claim(session, SimulationRun, col(SimulationRun.id) == run_id, now=now, done=0.0):
                return session.get_one(SimulationRun, run_id)
    return None


def _beat(database: Database, simulation: Simulation, run_id: str) -> None:
    now = utc_now()
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(SimulationRun).where(col(SimulationRun.id) == run_id).values(heartbeat_at=now)
        )
        running = (
            col(Operation.id) == simulation.operation_id,
            col(Operation.state) == OperationState.RUNNING,
        )
        session.connection().execute(
            sa.update(Operation).where(*running).values(heartbeat_at=now, updated_at=now)
        )


def _play(database: Database, work: _Work, run: SimulationRun) -> None:
    """Play one run and store it, with its result or its error."""
    simulation, stall = work.simulation, Stall()
    progress = Progress(database, simulation, run.id)

    def on_progress(position: Position) -> None:
        stall.look(position)
        progress.report(
            position,
            f"{run.policy}: round {position.round_number}, "
            f"{position.finished} of {position.jobs} jobs finished",
        )

    try:
        workload = work.workload(run.trace)
        result = simulate(
            scenario_of(simulation.request, run, workload, work.models, work.measured),
            on_progress=on_progress,
        )
    except Exception as error:
        of_others = isinstance(simulation.request.traces[run.trace], ClusterTrace)
        _keep(
            database,
            run.id,
            state=OperationState.FAILED,
            error=problem_of(error, simulation, of_others=of_others),
        )
    else:
        _keep_result(
            database,
            run.id,
            result,
            cancelled=is_cancel_requested(database, simulation.operation_id),
        )
        progress.write(len(workload), f"{run.policy}: done")


class Progress:
    """Reports the progress of a run and its simulation, at most twice a second.

    Raises Cancelled if the run must stop.
    """

    def __init__(self, database: Database, simulation: Simulation, run_id: str) -> None:
        self._database, self._simulation, self._run_id = database, simulation, run_id
        self._next_at = 0.0

    def report(self, position: Position, message: str) -> None:
        if time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + PROGRESS_SECONDS
        self.write(position.finished, message)
        if is_cancel_requested(self._database, self._simulation.operation_id):
            raise Cancelled

    def write(self, finished: int, message: str) -> None:
        """Write the progress; the operation's `done` is the sum over all workers' runs."""
        now = utc_now()
        every = select(sa.func.sum(SimulationRun.done)).where(
            SimulationRun.simulation_id == self._simulation.id
        )
        with self._database.session_scope() as session:
            connection = session.connection()
            connection.execute(
                sa.update(SimulationRun)
                .where(col(SimulationRun.id) == self._run_id)
                .values(done=finished, heartbeat_at=now)
            )
            running = (
                col(Operation.id) == self._simulation.operation_id,
                col(Operation.state) == OperationState.RUNNING,
            )
            values = {
                "done": every.scalar_subquery(),
                "message": message,
                "heartbeat_at": now,
                "updated_at": now,
            }
            connection.execute(sa.update(Operation).where(*running).values(**values))


class Stall:
    """Ends a run in which no job has finished for long.

    Its remaining jobs wait for GPUs that the cluster does not have.
    """

    def __init__(self) -> None:
        self._finished, self._since = 0, 0

    def look(self, position: Position) -> None:
        if position.finished != self._finished:
            self._finished, self._since = position.finished, position.round_number
        if position.round_number - self._since > STALLED_ROUNDS:
            raise Cancelled


def _keep_result(
    database: Database, run_id: str, result: SimulationResult, *, cancelled: bool
) -> None:
    state = (
        OperationState.CANCELLED if cancelled and not result.complete else OperationState.SUCCEEDED
    )
    shown = result_to_json(result)
    _keep(database, run_id, state=state, summary=shown["summary"], result=shown)


def _keep(database: Database, run_id: str, **values: Any) -> None:
    statement = sa.update(SimulationRun).where(
        col(SimulationRun.id) == run_id, col(SimulationRun.state) == OperationState.RUNNING
    )
    with database.session_scope() as session:
        session.connection().execute(statement.values(finished_at=utc_now(), **values))


def settle(database: Database, simulation: Simulation) -> OperationState | None:
    """End the operation once all runs have ended, and return its state.

    Returns None before that. It has failed if a run failed, and is cancelled if it was stopped
    before its end.
    """
    with database.session_scope() as session:
        if session.get_one(Operation, simulation.operation_id).cancel_requested:
            _drop_unplayed(session, simulation)
        runs = runs_of(session, [simulation.id])[simulation.id]
        if any(run.state not in ENDED for run in runs):
            return None
        states = [run.state for run in runs]
        state = next(
            (s for s in (OperationState.FAILED, OperationState.CANCELLED) if s in states),
            OperationState.SUCCEEDED,
        )
        counts = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
        first_error = next((run.error for run in runs if run.error is not None), None)
        finish(
            session,
            simulation.operation_id,
            state,
            message=f"Runs: {counts}.",
            error=first_error,
        )
    return state


def _drop_unplayed(session: Session, simulation: Simulation) -> None:
    """Cancel the runs that no worker has claimed."""
    now = utc_now()
    drop = sa.update(SimulationRun).where(
        col(SimulationRun.simulation_id) == simulation.id, claimable(SimulationRun, now)
    )
    session.connection().execute(drop.values(state=OperationState.CANCELLED, finished_at=now))


def problem_of(
    error: Exception, work: Simulation | Sweep, *, of_others: bool = False
) -> dict[str, Any]:
    """Return the error as the API answers it.

    Bad input has field, row and remedy; for anything else the log has the traceback. `of_others`:
    jobs of other tenants took part, which must not be named to readers; the log names them.
    """
    if of_others and isinstance(error, InputError | Invalid):
        log.warning("%s could not be played: %s", work.id, error)
        problem: Problem = unnamed(error)
    elif isinstance(error, Problem):
        problem = error
    elif isinstance(error, InputError):
        problem = invalid_input(error, f"/{error.field.replace('.', '/')}")
    else:
        log.error("%s failed", work.id, exc_info=error)
        problem = InternalError(
            "The simulation failed because of a fault of Maat; the worker's log has the details."
        )
    return problem.as_json(instance=f"/api/v1/operations/{work.operation_id}", request_id="")
