"""What the charts of a simulation draw: distributions, sums and short series.

It replaces the full list of jobs of every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.operations.models import OperationState
from backend.problems import FieldError, Invalid
from backend.simulations.fairness_rule import result_by
from backend.simulations.measured_jobs import measured_jobs
from backend.simulations.models import Simulation, SimulationRun
from backend.simulations.seen import of_trace, result_seen, results_sight
from backend.simulations.series import reduced, shares
from maat.api.simulation_answers import Distribution, DrawnRun, FiguresOut, JobRho, ModelHours
from maat.vocabulary import FairnessRule

MAX_DRAWN = 12  # runs in one answer
MAX_NAMED = 20  # unfinished jobs listed by name
WORST_OFF = 5
POINTS = 400  # per line: more than half a page has pixel columns


def figures_of(
    session: Session,
    principal: Principal,
    simulation: Simulation,
    run_ids: Sequence[str],
    rule: FairnessRule,
) -> FiguresOut:
    """Return the figures of these runs; by default of the first finished ones.

    Raises Invalid for a run without a result.
    """
    stored = _results(session, simulation, run_ids)
    sight = results_sight(session, principal, simulation, [result for _, result in stored.values()])
    results = {
        run_id: result_seen(result_by(result, rule), of_trace(simulation, trace, sight))
        for run_id, (trace, result) in stored.items()
    }
    definitions: dict[str, str] = next(
        (result["definitions"] for result in results.values() if result.get("definitions")), {}
    )
    return FiguresOut(
        runs=[drawn(run_id, result) for run_id, result in results.items()], definitions=definitions
    )


def drawn(run_id: str, result: Mapping[str, Any]) -> DrawnRun:
    """Return what charts draw of a result by one rule of fairness."""
    jobs, fair = measured_jobs(result["jobs"]), result["fairness"]
    rho = {job["name"]: job["rho"] for job in jobs if job["rho"] is not None}
    left = [job["name"] for job in jobs if job["finish"] is None]
    took = [
        (job["finish"] - job["submit"]) / 3600
        for job in jobs
        if job["finish"] is not None and job["finish"] > job["submit"]
    ]
    return DrawnRun(
        id=run_id,
        jct_hours=Distribution(
            points=shares(took, len(took) + len(left), POINTS),
            known=len(took),
            jobs=len(took) + len(left),
        ),
        fairness_rule=FairnessRule(fair["rule"]),
        rho=Distribution(
            points=shares(list(rho.values()), len(rho) + len(left), POINTS),
            known=len(rho),
            jobs=len(rho) + len(left),
        ),
        worst_rho=fair["worst_rho"],
        unfair_fraction=fair["unfair_fraction"],
        worst_off=[
            JobRho(name=name, rho=rho[name])
            for name in sorted(rho, key=lambda name: -rho[name])[:WORST_OFF]
        ],
        unfinished=left[:MAX_NAMED],
        unfinished_count=len(left),
        gpu_hours_by_type=_summed(job["gpu_hours_by_type"] for job in jobs),
        gpu_hours_by_model={
            model: ModelHours(jobs=sum(job["model"] == model for job in jobs), by_type=hours)
            for model, hours in result["gpu_hours_by_model_type"].items()
        },
        contention=reduced(result["contention"], POINTS),
        gpus_by_type={
            name: reduced(points, POINTS) for name, points in result.get("gpus_by_type", {}).items()
        },
        efficiency=reduced(result.get("efficiency", []), POINTS),
        nodes=reduced(result.get("nodes", []), POINTS),
        waited_hours=_waited(jobs),
        placement_slowdown=slowed_jobs(jobs),
        policy_seconds=result.get("policy_seconds"),
    )


def _waited(jobs: Sequence[Mapping[str, Any]]) -> Distribution:
    """Return all waiting of finished jobs; an earlier version did not keep it."""
    hours = [job["waited"] / 3600 for job in jobs if job.get("waited") is not None]
    return Distribution(
        points=shares(hours, len(jobs), POINTS) if hours else [], known=len(hours), jobs=len(jobs)
    )


def slowed_jobs(jobs: Sequence[Mapping[str, Any]]) -> Distribution:
    """Return the slowdown by placement of the jobs that trained, of which it may be seen."""
    times = [job["placement_slowdown"] for job in jobs if job.get("placement_slowdown") is not None]
    return Distribution(
        points=shares(times, len(times), POINTS) if times else [], known=len(times), jobs=len(times)
    )


def _summed(parts: Any) -> dict[str, float]:
    total: dict[str, float] = {}
    for hours in parts:
        for gpu_type, value in hours.items():
            total[gpu_type] = total.get(gpu_type, 0.0) + value
    return total


def _results(
    session: Session, simulation: Simulation, run_ids: Sequence[str]
) -> dict[str, tuple[int, Any]]:
    """Return, by run, the number of its trace and its result."""
    done = (
        SimulationRun.simulation_id == simulation.id,
        SimulationRun.state == OperationState.SUCCEEDED.value,
    )
    statement = (
        select(SimulationRun.id, SimulationRun.trace, SimulationRun.result)
        .where(*done)
        .order_by(col(SimulationRun.position))
    )
    if not run_ids:
        return _by_run(session.exec(statement.limit(MAX_DRAWN)).all())
    found = _by_run(session.exec(statement.where(col(SimulationRun.id).in_(run_ids))).all())
    for run_id in run_ids:
        if run_id not in found:
            message = "The simulation has no finished run with this id."
            raise Invalid(
                message,
                errors=[
                    FieldError(
                        "/runs",
                        "unknown_run",
                        message,
                        "Use ids of the simulation's `runs`.",
                        run_id,
                    )
                ],
            )
    return {run_id: found[run_id] for run_id in run_ids}


def _by_run(rows: Sequence[tuple[str, int, Any]]) -> dict[str, tuple[int, Any]]:
    return {run_id: (trace, result) for run_id, trace, result in rows}
