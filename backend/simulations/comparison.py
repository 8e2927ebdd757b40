"""Compares the runs of a simulation from their results, as `maat compare` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlmodel import Session, col, select

from backend.operations.models import OperationState
from backend.problems import Conflict, FieldError, Invalid
from backend.simulations.measured_jobs import measured_jobs
from backend.simulations.models import Simulation, SimulationRun
from maat.api.simulations import RunBody
from maat.laboratory.comparison import Contestant, Outcome, Settings, report
from maat.laboratory.figures import by_rule, chosen
from maat.laboratory.requested import TunedJobs
from maat.vocabulary import FairnessRule


def compared(
    session: Session, simulation: Simulation, *, baseline: int | None, rule: FairnessRule
) -> dict[str, Any]:
    """Return the contestants' means over finished runs, and their comparison.

    Contestants follow the order of the request; each is compared with the baseline job by job.
    `rule`: how rho is computed. `baseline`: number of a contestant, None: the first. Raises
    Conflict while no run has finished, Invalid for an unknown number.
    """
    outcomes = [
        _outcome(run, simulation.request.run_at(run.position), rule)
        for run in _finished(session, simulation)
    ]
    if not outcomes:
        raise Conflict("No run has finished yet.", headers={"Retry-After": "1"})
    contestants = list(dict.fromkeys(o.contestant for o in outcomes))
    return {
        "fairness_rule": rule,
        **report(outcomes, contestants[_checked(baseline, len(contestants))]),
    }


def _checked(number: int | None, count: int) -> int:
    if number is None:
        return 0
    if not 0 <= number < count:
        message, remedy = (
            "The simulation has no contestant of this number.",
            f"Use 0 to {count - 1}.",
        )
        raise Invalid(
            message, errors=[FieldError("/baseline", "unknown_contestant", message, remedy, number)]
        )
    return number


def _finished(session: Session, simulation: Simulation) -> Sequence[SimulationRun]:
    done = (
        SimulationRun.simulation_id == simulation.id,
        SimulationRun.state == OperationState.SUCCEEDED.value,
    )
    return session.exec(
        select(SimulationRun).where(*done).order_by(col(SimulationRun.position))
    ).all()


def _outcome(run: SimulationRun, requested: RunBody, rule: FairnessRule) -> Outcome:
    summary, fair = run.summary or {}, run.result.get("fairness") or {}
    jobs = measured_jobs(run.result["jobs"])
    jct = {job["name"]: job["jct"] / 3600 for job in jobs if job["jct"] is not None}
    known = chosen({**by_rule(fair, rule), **summary}, finished=bool(jct))
    return Outcome(contestant_of(run, requested), str(run.trace), run.seed, known, jct)


def contestant_of(run: SimulationRun, requested: RunBody) -> Contestant:
    return Contestant(
        run.policy,
        run.placer,
        _settings(requested.policy_parameters),
        _settings(requested.placer_parameters),
        requested.round_seconds,
        tuned=None if requested.tuned is None else TunedJobs(requested.tuned),
    )


def _settings(given: Mapping[str, Any]) -> Settings:
    return tuple(sorted(given.items()))
