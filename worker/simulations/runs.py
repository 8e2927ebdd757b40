"""Plays the runs of a simulation and stores each as it ends. Knows no broker.

Several workers share the runs. If one is killed in a run, another worker repeats that run: a run
is either stored whole or run again. A cancelled run keeps what was played until then.
"""

from __future__ import annotations

import logging
import math
from functools import cached_property, lru_cache
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.database import Database
from backend.measurements.uses import Measured, measured, uses_of
from backend.models import Experiment, Operation, OperationState, Simulation, SimulationRun, Sweep
from backend.operations.models import ENDED
from backend.problems import Conflict, InternalError, Invalid, PolicyFault, Problem, invalid_input
from backend.simulations.conditions import check_measured_jobs, check_reserved_jobs
from backend.simulations.history import unnamed
from backend.simulations.service import runs_of
from backend.simulations.stored import why_unreadable
from backend.simulations.traces import workload_of
from maat.api.simulations import ClusterTrace, GeneratedTrace
from maat.scheduling.errors import ContractViolation, InputError, PolicyFailed
from maat.scheduling.own.failures import sentence_of
from maat.simulation.engine import simulate
from maat.simulation.record import Position
from maat.workloads.workloads import Workload
from worker.laboratory.turn import RunTooLong, Turn
from worker.laboratory.work import Work, work_of
from worker.operations import OPERATIONS, count_of, finish, is_cancel_requested, join
from worker.simulations.progress import Progress, Stall
from worker.simulations.result import result_to_json
from worker.simulations.scenarios import scenario_of
from worker.simulations.series import job_series
from worker.work_queue import Claim, WorkQueue

log = logging.getLogger(__name__)

SIMULATION = "simulation"
RUNS = WorkQueue(SimulationRun, key=col(SimulationRun.id))


def work(session: Session) -> list[Work]:
    """Return the simulations that have runs to play."""
    joined = sa.join(
        sa.join(Operation, Simulation, col(Simulation.operation_id) == col(Operation.id)),
        SimulationRun,
        col(SimulationRun.simulation_id) == col(Simulation.id),
    )
    return work_of(session, SIMULATION, RUNS, joined, ~col(Operation.cancel_requested))


def play(database: Database, operation_id: str, turn: Turn) -> None:
    """Play one run of a simulation, if one has no worker."""
    mine = select(Simulation.id).where(Simulation.operation_id == operation_id)
    with database.session_scope(writes=False) as session:
        simulation_id = session.exec(mine).one()
    run_simulation(database, simulation_id, turn, most=1)


def end_cancelled(database: Database) -> None:
    """End the simulations that were cancelled and whose runs have no worker."""
    cancelled = col(Operation.cancel_requested) & col(Operation.state).not_in(ENDED)
    with database.session_scope(writes=False) as session:
        found = session.exec(select(Simulation).join(Operation).where(cancelled)).all()
    for simulation in found:
        settle(database, simulation)


def run_simulation(
    database: Database,
    simulation_id: str,
    turn: Turn | None = None,
    *,
    most: float = math.inf,
) -> OperationState | None:
    """Play the unclaimed runs of a simulation, at most so many.

    Returns how it ended; None if it has not ended, or had ended before. One that cannot be read is
    left to a worker of the version that stored it: while versions change, both are there.
    """
    with database.session_scope(writes=False) as session:
        simulation = session.get(Simulation, simulation_id)
    if simulation is None or is_left_to_another_version(database, simulation):
        return None
    if not join(database, simulation.operation_id):
        return None
    turn = Turn() if turn is None else turn
    shared, played = _Shared(database, simulation), 0
    whole = Claim(simulation.operation_id)
    while played < most and (claimed := _claim(database, simulation)) is not None:
        claim, run = claimed
        show_life = RUNS.working_on(database, claim, also=lambda at: OPERATIONS.beat(at, whole))
        with show_life, turn.taken():
            _play(database, shared, claim, run, turn)
        played += 1
    return settle(database, simulation)


def is_left_to_another_version(database: Database, work: Simulation | Experiment) -> bool:
    """Return whether it cannot be read here; any version can end it once it is cancelled."""
    why = why_unreadable(work.request)
    if why is None or is_cancel_requested(database, work.operation_id):
        return False
    log.warning("%s waits for another worker: %s", work.id, why)
    return True


class _Shared:
    """What the runs of one simulation share.

    Each trace is read when a run first needs it.
    """

    def __init__(self, database: Database, simulation: Simulation) -> None:
        self._database, self.simulation = database, simulation
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
            return workload_of(session, self.simulation.request.traces[trace], self.measured.models)


def _claim(database: Database, simulation: Simulation) -> tuple[Claim, SimulationRun] | None:
    """Claim the first queued or abandoned run; return None after a cancel request."""
    if is_cancel_requested(database, simulation.operation_id):
        return None
    mine = col(SimulationRun.simulation_id) == simulation.id
    with database.session_scope() as session:
        claim = RUNS.claim_next(session, mine, order=col(SimulationRun.position), done=0.0)
        return None if claim is None else (claim, session.get_one(SimulationRun, claim.key))


def _play(
    database: Database, shared: _Shared, claim: Claim, run: SimulationRun, turn: Turn
) -> None:
    """Play one run and store it, with its result or its error."""
    simulation, stall = shared.simulation, Stall()

    def write(finished: float, message: str) -> None:
        _write_progress(database, simulation, claim, finished=finished, message=message)

    def must_stop() -> bool:
        return is_cancel_requested(database, simulation.operation_id)

    progress = Progress(must_stop, write=write)

    def on_progress(position: Position) -> None:
        turn.look()
        stall.look(position)
        progress.report(
            position.finished,
            f"{run.policy}: round {position.round_number}, "
            f"{position.finished} of {position.jobs} jobs finished",
        )

    try:
        workload = shared.workload(run.trace)
        scenario = scenario_of(simulation.request, run, workload, shared.measured)
        if isinstance(simulation.request.traces[run.trace], GeneratedTrace):
            check_reserved_jobs(scenario)
            check_measured_jobs(scenario)
        result = simulate(scenario, on_progress=on_progress)
        shown = result_to_json(result)  # computes isolated runs, which may lack measurements
    except Exception as error:
        of_others = isinstance(simulation.request.traces[run.trace], ClusterTrace)
        error_shown = problem_of(error, simulation, of_others=of_others)
        _keep(database, claim, OperationState.FAILED, error=error_shown)
    else:
        cancelled = must_stop() and not result.complete
        state = OperationState.CANCELLED if cancelled else OperationState.SUCCEEDED
        jobs = len(scenario.workload)
        kept = {
            "summary": shown["summary"],
            "result": shown,
            "series": job_series(result.series),
            "done": jobs,
        }
        _keep(database, claim, state, **kept)
        write(jobs, f"{run.policy}: done")


def _write_progress(
    database: Database, simulation: Simulation, claim: Claim, *, finished: float, message: str
) -> None:
    """Write the progress of a run; the operation's `done` is the sum over all its runs."""
    every = select(sa.func.sum(SimulationRun.done)).where(
        SimulationRun.simulation_id == simulation.id
    )
    with database.session_scope() as session:
        RUNS.beat(session, claim, done=finished)
        OPERATIONS.beat(
            session,
            Claim(simulation.operation_id),
            done=every.scalar_subquery(),
            message=message,
        )


def _keep(database: Database, claim: Claim, state: OperationState, **values: object) -> None:
    with database.session_scope() as session:
        RUNS.settle(session, claim, state, **values)


def settle(database: Database, simulation: Simulation) -> OperationState | None:
    """End the operation once all runs have ended, and return its state.

    Returns None before that. It has failed if a run failed, and is cancelled if it was stopped
    before its end.
    """
    with database.session_scope() as session:
        whole = session.get_one(Operation, simulation.operation_id)
        if whole.cancel_requested:
            RUNS.drop(session, col(SimulationRun.simulation_id) == simulation.id)
        runs = runs_of(session, [simulation.id])[simulation.id]
        if any(run.state not in ENDED for run in runs):
            return None
        states = [run.state for run in runs]
        state = next(
            (s for s in (OperationState.FAILED, OperationState.CANCELLED) if s in states),
            OperationState.SUCCEEDED,
        )
        if state is OperationState.SUCCEEDED:  # some jobs of a trace that is drawn here may not run
            whole.total = sum(run.done for run in runs)
        first_error = next((run.error for run in runs if run.error is not None), None)
        finish(
            session,
            simulation.operation_id,
            state,
            message=count_of("Runs", states),
            error=first_error,
        )
    return state


def problem_of(
    error: Exception, work: Simulation | Sweep | Experiment, *, of_others: bool = False
) -> dict[str, Any]:
    """Return the error as the API answers it.

    Bad input has field, row and remedy; for anything else the log has the traceback. `of_others`:
    jobs of other tenants may have taken part, which must not be named to readers; the log names
    the job.
    """
    if of_others and isinstance(error, InputError | Invalid):
        log.warning("%s could not be played: %s", work.id, error)
        problem: Problem = unnamed(error, of_another=False)
    elif isinstance(error, Problem):
        problem = error
    elif isinstance(error, InputError):
        problem = invalid_input(error, f"/{error.field.replace('.', '/')}")
    elif isinstance(error, RunTooLong):
        problem = Conflict(str(error))
    elif isinstance(error, PolicyFailed | ContractViolation):
        log.warning("%s failed by its policy", work.id, exc_info=error)
        problem = PolicyFault(sentence_of(error))
    else:
        log.error("%s failed", work.id, exc_info=error)
        problem = InternalError(
            "The simulation failed because of a fault of Maat; the worker's log has the details."
        )
    return problem.as_json(instance=f"/api/v1/operations/{work.operation_id}", request_id="")
