"""Runs the simulations of an operation one after the other, each kept as it ends. Knows no broker.

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
from backend.models import Operation, OperationState, Simulation, SimulationRun
from backend.operations.models import ENDED
from backend.problems import FieldError, InternalError, Invalid, Problem, input_field_error
from maat.scheduling.errors import InputError
from maat.simulation.engine import Cancelled, Position, SimulationResult, simulate
from maat.simulation.models import Model
from maat.simulation.workloads import Workload
from worker.live import live_models
from worker.operations import Progress, StopRequested, alive, claim, finish, is_cancel_requested
from worker.scenarios import scenario_of, workload_of
from worker.simulation_result import result_to_json

log = logging.getLogger(__name__)

SIMULATION = "simulation"


def run_operation(database: Database, operation_id: str) -> OperationState | None:
    """Do what is left of a simulation's operation. None where another worker is at it, or it has ended."""
    if not claim(database, operation_id):
        return None
    with alive(database, operation_id):
        return _run(database, operation_id)


def _run(database: Database, operation_id: str) -> OperationState:
    try:
        job = _prepare(database, operation_id)
    except InputError as error:
        return _end(database, operation_id, error=problem_json(error, operation_id))
    except Exception as error:
        log.exception("operation %s could not be prepared", operation_id)
        return _end(database, operation_id, error=problem_json(error, operation_id))
    for run_id in job.run_ids:
        if is_cancel_requested(database, operation_id):
            break
        _play(database, job, run_id)
    return _end(database, operation_id)


@dataclass(frozen=True)
class _Work:
    """What the runs of one operation share. `run_ids`: those that have not ended; `ended`: how many have."""

    operation_id: str
    request: Mapping[str, Any]
    workload: Workload
    models: Mapping[str, Model]
    run_ids: tuple[str, ...]
    ended: int


def _prepare(database: Database, operation_id: str) -> _Work:
    with database.session_scope(writes=False) as session:
        simulation = session.exec(select(Simulation).where(Simulation.operation_id == operation_id)).one()
        runs = _runs(session, simulation.id)
        models = live_models()
        workload = workload_of(session, simulation.request["trace"], models)
        left = tuple(run.id for run in runs if run.state not in ENDED)
        work = _Work(operation_id, simulation.request, workload, models, left, len(runs) - len(left))
    with database.session_scope() as session:
        operation = session.get_one(Operation, operation_id)
        operation.total, operation.unit = float(len(runs) * len(workload)), "jobs"
        session.add(operation)
    return work


def _play(database: Database, work: _Work, run_id: str) -> None:
    """Play one run and keep it, with its result or with what was wrong."""
    run = _begin(database, run_id)
    progress = Progress(database, work.operation_id)
    before = float((work.ended + work.run_ids.index(run_id)) * len(work.workload))

    def on_progress(position: Position) -> None:
        told = f"{run.policy}: round {position.round_number}, {position.finished} of {position.jobs} jobs finished"
        try:
            progress.report(before + position.finished, told)
        except StopRequested:
            raise Cancelled from None

    try:
        result = simulate(scenario_of(work.request, run, work.workload, work.models), on_progress=on_progress)
    except InputError as error:
        _keep_error(database, run_id, problem_json(error, work.operation_id))
    except Exception as error:
        log.exception("run %s of operation %s failed", run_id, work.operation_id)
        _keep_error(database, run_id, problem_json(error, work.operation_id))
    else:
        _keep_result(database, run_id, result, cancelled=is_cancel_requested(database, work.operation_id))
    progress.write(before + len(work.workload), f"{run.policy}: done")


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


def _keep_error(database: Database, run_id: str, problem: dict[str, Any]) -> None:
    _keep(database, run_id, state=OperationState.FAILED, error=problem)


def _keep(database: Database, run_id: str, **values: Any) -> None:
    statement = sa.update(SimulationRun).where(col(SimulationRun.id) == run_id, col(SimulationRun.state) == OperationState.RUNNING)
    with database.session_scope() as session:
        session.connection().execute(statement.values(finished_at=utc_now(), **values))


def _end(database: Database, operation_id: str, *, error: dict[str, Any] | None = None) -> OperationState:
    """End the operation by how its runs ended: failed where one did, cancelled where it was asked to stop before its end."""
    with database.session_scope() as session:
        simulation = session.exec(select(Simulation).where(Simulation.operation_id == operation_id)).one()
        runs = _runs(session, simulation.id)
        for run in runs:
            if run.state not in ENDED:
                run.state = (OperationState.CANCELLED if error is None else OperationState.FAILED).value
                run.error, run.finished_at = error, utc_now()
                session.add(run)
        session.flush()
        states = [run.state for run in runs]
        first_error = error or next((run.error for run in runs if run.error is not None), None)
        state = next((s for s in (OperationState.FAILED, OperationState.CANCELLED) if s in states), OperationState.SUCCEEDED)
        told = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
        finish(session, operation_id, state, message=f"Runs: {told}.", error=first_error)
    return state


def _runs(session: Session, simulation_id: str) -> list[SimulationRun]:
    statement = select(SimulationRun).where(SimulationRun.simulation_id == simulation_id).order_by(col(SimulationRun.position))
    return list(session.exec(statement))


def problem_json(error: Exception, operation_id: str) -> dict[str, Any]:
    """What went wrong, as the API would answer it: the field, the row and the remedy of bad input; no traceback of anything else."""
    instance = f"/api/v1/operations/{operation_id}"
    if isinstance(error, Problem):
        return error.as_json(instance=instance, request_id="")
    if isinstance(error, InputError):
        field: FieldError = input_field_error(error, f"/{error.field.replace('.', '/')}")
        return Invalid(str(error), errors=[field]).as_json(instance=instance, request_id="")
    return InternalError("The simulation ended with a fault of Maat; the worker's log has the rest.").as_json(
        instance=instance, request_id=""
    )
