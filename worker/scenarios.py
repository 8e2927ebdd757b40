"""From a simulation's stored request to the scenarios that the engine plays. Reads jobs only where a cluster's history is replayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlmodel import Session, col, select

from backend.models import Job, SimulationRun
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, TraceError
from maat.simulation.engine import Scenario
from maat.simulation.fidelity import fidelity
from maat.simulation.generators import generate
from maat.simulation.models import Model
from maat.simulation.workloads import MAX_JOBS, TraceJob, Workload, read_workload


def workload_of(session: Session, trace: Mapping[str, Any], models: Mapping[str, Model]) -> Workload:
    """The jobs of a request: generated, read from CSV text, or those that a cluster had. Raises TraceError or ParameterError."""
    kind = trace.get("kind")
    if kind == "generated":
        return generate(trace["family"], jobs=trace.get("jobs"), hours=trace.get("hours"), seed=trace.get("seed", 0))
    if kind == "csv":
        return read_workload(trace["text"], known_models=tuple(models), name=trace.get("name", "csv"))
    if kind == "cluster":
        return replay(session, trace["cluster_id"])
    raise InputError("is no kind of trace", field="trace.kind", value=kind, remedy="Use generated, csv or cluster.")


def replay(session: Session, cluster_id: str) -> Workload:
    """The jobs that a cluster was given, as their owners declared them; the first is submitted at second 0."""
    statement = select(Job).where(Job.cluster_id == cluster_id).order_by(col(Job.submitted_seconds), col(Job.id)).limit(MAX_JOBS)
    rows = session.exec(statement).all()
    if not rows:
        raise TraceError(
            "has had no jobs yet", field="trace.cluster_id", value=cluster_id, remedy="Submit jobs to it, or choose another trace."
        )
    first = rows[0].submitted_seconds
    jobs = tuple(
        TraceJob(
            name=row.id,
            submit_seconds=row.submitted_seconds - first,
            model=row.model,
            gpu_count=row.min_gpus if row.gpu_count is None else row.gpu_count,
            batch_size=row.batch_size,
            work_scale=row.work_scale,
        )
        for row in rows
    )
    return Workload(f"cluster {cluster_id}", jobs, "cluster")


def scenario_of(request: Mapping[str, Any], run: SimulationRun, workload: Workload, models: Mapping[str, Model]) -> Scenario:
    """The scenario of one run. Raises InputError where policy, placer, cluster or fidelity cannot be used."""
    return Scenario(
        workload=workload,
        models=models,
        cluster=Cluster.parse(request["cluster"]),
        policy=run.policy,
        placer=run.placer,
        policy_parameters=run.policy_parameters,
        fidelity=fidelity(request.get("fidelity", "paper")),
        round_seconds=request.get("round_seconds"),
        seed=run.seed,
    )
