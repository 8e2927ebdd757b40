"""Plays the runs of a simulation one after the other, each kept as it ends. Knows no broker.

Killed in the middle, it goes on with the first run that has not ended: a run is either kept whole or run again. A cancelled run
keeps what was played until then.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Operation, OperationState, Simulation, SimulationRun, Sweep
from backend.operations.models import ENDED
from backend.problems import InternalError, Problem, invalid_input
from backend.simulations.service import runs_of
from backend.simulations.traces import workload_of
from maat.scheduling.errors import InputError
from maat.simulation.engine import Cancelled, Position, SimulationResult, simulate
from maat.simulation.iteration_models import shipped_models
from maat.simulation.models import Model
from maat.simulation.workloads import Workload
from worker.operations import Progress, StopRequested, alive, claim, finish, is_cancel_requested, waiting_operations
from worker.scenarios import scenario_of
from worker.simulation_result import result_to_json

log = logging.getLogger(__name__)

SIMULATION = "simulation"
STALLED_ROUNDS = 50_000  # a month of rounds of a minute


def waiting_simulations(database: Database) -> list[str]:
    """Simulations that no worker is at; they count as sent from now on."""
    operations = waiting_operations(database, kind=SIMULATION)
    with database.session_scope(writes=False) as session:
        return list(session.exec(select(Simulation.id).where(col(Simulation.operation_id).in_(operations))))


def run_simulation(database: Database, simulation_id: str) -> OperationState | None:
    """Do what is left of a simulation. None where another worker is at it, or it has ended."""
    with database.session_scope(writes=False) as session:
        simulation = session.get(Simulation, simulation_id)
    if simulation is None or not claim(database, simulation.operation_id):
        return None
    with alive(database, simulation.operation_id):
        return _run(database, simulation)


def _run(database: Database, simulation: Simulation) -> OperationState:
    try:
        work = _prepare(database, simulation)
    except Exception as error:
        return _end(database, simulation, error=problem_of(error, simulation))
    for run_id in work.run_ids:
        if is_cancel_requested(database, simulation.operation_id):
            break
        _play(database, work, run_id)
    return _end(database, simulation)


@dataclass(frozen=True)
class _Work:
    """What the runs of one simulation share. `run_ids`: those that have not ended; `ended`: how many have."""

    simulation: Simulation
    workload: Workload
    models: Mapping[str, Model]
    run_ids: tuple[str, ...]
    ended: int


def _prepare(database: Database, simulation: Simulation) -> _Work:
    with database.session_scope(writes=False) as session:
        workload = workload_of(session, simulation.request["trace"])
        runs = _runs(session, simulation.id)
    with database.session_scope() as session:
        operation = session.get_one(Operation, simulation.operation_id)
        operation.total, operation.unit = float(len(runs) * len(workload)), "jobs"
        session.add(operation)
    left = tuple(run.id for run in runs if run.state not in ENDED)
    return _Work(simulation, workload, shipped_models(), left, len(runs) - len(left))


def _play(database: Database, work: _Work, run_id: str) -> None:
    """Play one run and keep it, with its result or with what was wrong."""
    run = _begin(database, run_id)
    progress = Progress(database, work.simulation.operation_id)
    before = float((work.ended + work.run_ids.index(run_id)) * len(work.workload))

    stall = Stall()

    def on_progress(position: Position) -> None:
        stall.look(position)
        told = f"{run.policy}: round {position.round_number}, {position.finished} of {position.jobs} jobs finished"
        try:
            progress.report(before + position.finished, told)
        except StopRequested:
            raise Cancelled from None

    try:
        result = simulate(scenario_of(work.simulation.request, run, work.workload, work.models), on_progress=on_progress)
    except Exception as error:
        _keep(database, run_id, state=OperationState.FAILED, error=problem_of(error, work.simulation))
    else:
        _keep_result(database, run_id, result, cancelled=is_cancel_requested(database, work.simulation.operation_id))
    progress.write(before + len(work.workload), f"{run.policy}: done")


class Stall:
    """Ends a run in which no job has finished for long: what is left of it waits for GPUs that its cluster does not have."""

    def __init__(self) -> None:
        self._finished, self._since = 0, 0

    def look(self, position: Position) -> None:
        if position.finished != self._finished:
            self._finished, self._since = position.finished, position.round_number
        if position.round_number - self._since > STALLED_ROUNDS:
            raise Cancelled


def _begin(database: Database, run_id: str) -> SimulationRun:
    with database.session_scope() as session:
        run = session.get_one(SimulationRun, run_id)
        run.state, run.started_at = OperationState.RUNNING.value, utc_now()
        session.add(run)
    return run


def _keep_result(database: Database, run_id: str, result: SimulationResult, *, cancelled: bool) -> None:
    state = OperationState.CANCELLED if cancelled and not result.complete else OperationState.SUCCEEDED
    shown = result_to_json(result)
    _keep(database, run_id, state=state, summary=shown["summary"], result=shown)


def _keep(database: Database, run_id: str, **values: Any) -> None:
    statement = sa.update(SimulationRun).where(col(SimulationRun.id) == run_id, col(SimulationRun.state) == OperationState.RUNNING)
    with database.session_scope() as session:
        session.connection().execute(statement.values(finished_at=utc_now(), **values))


def _end(database: Database, simulation: Simulation, *, error: dict[str, Any] | None = None) -> OperationState:
    """End the operation by how its runs ended: failed where one did, cancelled where it was asked to stop before its end."""
    with database.session_scope() as session:
        runs = _runs(session, simulation.id)
        for run in runs:
            if run.state not in ENDED:
                run.state = (OperationState.CANCELLED if error is None else OperationState.FAILED).value
                run.error, run.finished_at = error, utc_now()
                session.add(run)
        session.flush()
        states = [run.state for run in runs]
        state = next((s for s in (OperationState.FAILED, OperationState.CANCELLED) if s in states), OperationState.SUCCEEDED)
        told = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
        first_error = next((run.error for run in runs if run.error is not None), None)
        finish(session, simulation.operation_id, state, message=f"Runs: {told}.", error=first_error)
    return state


def _runs(session: Session, simulation_id: str) -> list[SimulationRun]:
    return runs_of(session, [simulation_id])[simulation_id]


def problem_of(error: Exception, work: Simulation | Sweep) -> dict[str, Any]:
    """What went wrong, as the API would answer it: field, row and remedy of bad input; of anything else the log has the traceback."""
    if isinstance(error, InputError):
        problem: Problem = invalid_input(error, f"/{error.field.replace('.', '/')}")
    else:
        log.error("%s failed", work.id, exc_info=error)
        problem = InternalError("The simulation ended with a fault of Maat; the worker's log has the rest.")
    return problem.as_json(instance=f"/api/v1/operations/{work.operation_id}", request_id="")
