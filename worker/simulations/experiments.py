"""Plays the runs of an experiment one after the other and stores each as it ends.

One worker has an experiment; if it dies, another plays the runs that are missing. A cancelled one
keeps the runs that have ended. Knows no broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlmodel import col, select

from backend.database import Database
from backend.experiments.requests import AnyExperiment, experiment_of
from backend.experiments.service import EXPERIMENT
from backend.measurements.uses import measured, uses_of
from backend.models import Experiment, Operation, OperationState
from maat.simulation.record import Cancelled
from worker.operations import OPERATIONS, is_cancel_requested, waiting_operations
from worker.simulations.experiment_runs import run_to_json
from worker.simulations.progress import Progress
from worker.simulations.runs import is_left_to_another_version, play_abandoned, problem_of
from worker.work_queue import Claim


def waiting_experiments(database: Database) -> list[str]:
    """Return experiments without a worker; their messages count as sent from now on."""
    operations = waiting_operations(database, kind=EXPERIMENT)
    statement = select(Experiment.id).where(col(Experiment.operation_id).in_(operations))
    with database.session_scope(writes=False) as session:
        return sorted(session.exec(statement))


def run_experiment(database: Database, experiment_id: str) -> OperationState | None:
    """Play what is left of an experiment.

    Returns how it ended; None if another worker has it, it had ended before, or it cannot be read.
    """
    with database.session_scope(writes=False) as session:
        experiment = session.get(Experiment, experiment_id)
    if experiment is None or is_left_to_another_version(database, experiment):
        return None
    play_abandoned(database, before=experiment.created_at)
    with database.session_scope() as session:
        claim = OPERATIONS.claim_next(session, col(Operation.id) == experiment.operation_id)
    if claim is None:
        return None
    with OPERATIONS.working_on(database, claim):
        state, values = _outcome(database, experiment, claim)
    with database.session_scope() as session:
        is_ours = OPERATIONS.settle(session, claim, state, **values)
    return state if is_ours else None


def _outcome(
    database: Database, experiment: Experiment, claim: Claim
) -> tuple[OperationState, Mapping[str, object]]:
    """Play all runs; return how the operation ends, and what it then says."""
    try:
        played = _play(database, experiment, claim)
    except Cancelled:
        return OperationState.CANCELLED, {"message": "Cancelled; the runs that had ended stay."}
    except Exception as error:
        return OperationState.FAILED, {
            "message": "A run failed.",
            "error": problem_of(error, experiment),
        }
    return OperationState.SUCCEEDED, {"message": f"All {played} runs have ended.", "done": played}


def _play(database: Database, experiment: Experiment, claim: Claim) -> int:
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
        kept.append(_played(database, claim, plan, run))
        _keep(database, experiment, claim, kept)
    return len(plan.runs)


def _played(database: Database, claim: Claim, plan: AnyExperiment, run: str) -> dict[str, Any]:
    """Play one run, and show how far it is. Raises Cancelled."""
    done = plan.runs.index(run)

    def write(share: float, message: str) -> None:
        with database.session_scope() as session:
            OPERATIONS.beat(session, claim, done=done + share, message=message)

    progress = Progress(lambda: _must_stop(database, claim), write=write)
    title = plan.title_of(run)

    def on_share(share: float) -> None:
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
