"""Plays the runs of an experiment one after the other and stores each as it ends.

One worker has an experiment; if it dies, another plays the runs that are missing. A cancelled one
keeps the runs that have ended. Knows no broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.database import Database
from backend.experiments.requests import AnyExperiment, experiment_of
from backend.experiments.service import EXPERIMENT
from backend.measurements.uses import measured, uses_of
from backend.models import Experiment, Operation, OperationState
from maat.simulation.record import Cancelled
from worker.laboratory.turn import Turn
from worker.laboratory.work import Work, work_of
from worker.operations import OPERATIONS, is_cancel_requested
from worker.simulations.experiment_runs import run_to_json
from worker.simulations.progress import Progress
from worker.simulations.runs import is_left_to_another_version, problem_of
from worker.work_queue import Claim


def work(session: Session) -> list[Work]:
    """Return the experiments that have runs to play, and cancelled ones: a worker ends them."""
    return work_of(
        session,
        EXPERIMENT,
        OPERATIONS,
        sa.inspect(Operation).local_table,
        col(Operation.kind) == EXPERIMENT,
    )


def play(database: Database, operation_id: str, turn: Turn) -> None:
    """Play what is left of an experiment."""
    mine = select(Experiment.id).where(Experiment.operation_id == operation_id)
    with database.session_scope(writes=False) as session:
        experiment_id = session.exec(mine).one()
    run_experiment(database, experiment_id, turn)


def run_experiment(
    database: Database, experiment_id: str, turn: Turn | None = None
) -> OperationState | None:
    """Play what is left of an experiment.

    Returns how it ended; None if another worker has it, it had ended before, or it cannot be read.
    """
    with database.session_scope(writes=False) as session:
        experiment = session.get(Experiment, experiment_id)
    if experiment is None or is_left_to_another_version(database, experiment):
        return None
    with database.session_scope() as session:
        claim = OPERATIONS.claim_next(session, col(Operation.id) == experiment.operation_id)
    if claim is None:
        return None
    turn = Turn() if turn is None else turn
    with OPERATIONS.working_on(database, claim), turn.taken():
        state, values = _outcome(database, experiment, claim, turn)
    with database.session_scope() as session:
        is_ours = OPERATIONS.settle(session, claim, state, **values)
    return state if is_ours else None


def _outcome(
    database: Database, experiment: Experiment, claim: Claim, turn: Turn
) -> tuple[OperationState, Mapping[str, object]]:
    """Play all runs; return how the operation ends, and what it then says."""
    try:
        played = _play(database, experiment, claim, turn)
    except Cancelled:
        return OperationState.CANCELLED, {"message": "Cancelled; the runs that had ended stay."}
    except Exception as error:
        return OperationState.FAILED, {
            "message": "A run failed.",
            "error": problem_of(error, experiment),
        }
    return OperationState.SUCCEEDED, {"message": f"All {played} runs have ended.", "done": played}


def _play(database: Database, experiment: Experiment, claim: Claim, turn: Turn) -> int:
    """Play the runs that are missing; return how many there are in all.

    Raises Cancelled once the operation must stop, InputError if a run cannot be played.
    """
    body = experiment.request.body
    with database.session_scope(writes=False) as session:
        found = measured(session, uses_of(session, experiment.operation_id), body)
        plan = experiment_of(session, body, found)
        kept = list(session.get_one(Experiment, experiment.id).runs)
    for number, run in enumerate(plan.runs):
        if number < len(kept):
            continue
        kept.append(_played(database, claim, plan, run, turn))
        _keep(database, experiment, claim, kept)
    return len(plan.runs)


def _played(
    database: Database, claim: Claim, plan: AnyExperiment, run: str, turn: Turn
) -> dict[str, Any]:
    """Play one run, and show how far it is. Raises Cancelled."""
    done = plan.runs.index(run)

    def write(share: float, message: str) -> None:
        with database.session_scope() as session:
            OPERATIONS.beat(session, claim, done=done + share, message=message)

    progress = Progress(lambda: _must_stop(database, claim), write=write)
    title = plan.title_of(run)

    def on_share(share: float) -> None:
        turn.look()
        progress.report(share, f"{title}: {share:.0%}")

    return run_to_json(plan, run, on_share=on_share)


def _must_stop(database: Database, claim: Claim) -> bool:
    """Return whether a cancel was requested, or another worker has taken over."""
    ours = sa.and_(col(Operation.id) == claim.key, col(Operation.started_at) == claim.since)
    with database.session_scope(writes=False) as session:
        is_ours = session.exec(select(Operation.id).where(ours)).first() is not None
    return not is_ours or is_cancel_requested(database, claim.key)


def _keep(
    database: Database, experiment: Experiment, claim: Claim, runs: list[dict[str, Any]]
) -> None:
    """Store the runs that have ended, unless another worker has taken over."""
    with database.session_scope() as session:
        if OPERATIONS.beat(session, claim, done=float(len(runs))):
            row = session.get_one(Experiment, experiment.id)
            row.runs = list(runs)
            session.add(row)
