"""Experiments as the API answers them."""

from __future__ import annotations

from sqlmodel import Session

from backend.answers import answer_of
from backend.experiments.models import Experiment
from backend.measurements.uses import shown_uses
from backend.operations.models import Operation
from backend.simulations.stored import why_unreadable
from maat.api.experiments import AutoscalingOut, ExperimentDetail, ExperimentOut, TuningOut
from maat.laboratory.tuning import SCORES


def show_experiment(experiment: Experiment, operation: Operation) -> ExperimentOut:
    """Show an experiment in a list."""
    unreadable = why_unreadable(experiment.request)
    return answer_of(ExperimentOut, experiment, state=operation.state, unreadable=unreadable)


def show_whole_experiment(
    session: Session, experiment: Experiment, operation: Operation
) -> ExperimentDetail:
    """Show an experiment with the runs that have ended, in the order of the request."""
    shown = {
        "state": operation.state,
        "request": experiment.request.as_answered(),
        "measurements": shown_uses(session, [operation.id])[operation.id],
        "runs": list(experiment.runs),
    }
    if experiment.kind == "tuning":
        return answer_of(TuningOut, experiment, scores=SCORES, **shown)
    return answer_of(AutoscalingOut, experiment, **shown)
