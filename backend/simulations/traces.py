"""The workload that a simulation's request asks for: generated, read from CSV, or what a cluster has had. The worker calls it too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlmodel import Session, col, select

from backend.accounts.names import names_of
from backend.jobs.models import Job
from backend.simulations.schemas import MAX_SIMULATED_JOBS
from maat.scheduling.errors import TraceError
from maat.scheduling.job import Adaptivity, WorkloadKind
from maat.simulation.generators import generate
from maat.simulation.iteration_models import shipped_models
from maat.simulation.workloads import TraceJob, Workload, read_workload


def traces_of(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The traces of a stored request, also of one from before a simulation could have several."""
    given: list[dict[str, Any]] = request["traces"] if "traces" in request else [request["trace"]]
    return given


def placer_parameters_of(request: Mapping[str, Any], position: int) -> dict[str, Any]:
    """Of the run at this position, from the stored request: every entry of `runs` is played on each trace in turn."""
    given: dict[str, Any] = request["runs"][position // len(traces_of(request))].get("placer_parameters", {})
    return given


def workload_of(session: Session, trace: Mapping[str, Any]) -> Workload:
    """`trace`: as the request gave it, checked by its schema. Raises TraceError or ParameterError naming row, field, value and remedy."""
    match trace["kind"]:
        case "generated":
            return _generated(trace)
        case "csv":
            return csv_workload(trace["text"])
        case "cluster":
            return _of_cluster(session, trace["cluster_id"])
    raise TraceError("is no kind of trace", field="kind", value=trace["kind"], remedy="Use generated, csv or cluster.")


def _generated(trace: Mapping[str, Any]) -> Workload:
    drawn = generate(trace["family"], jobs=trace["jobs"], hours=trace["hours"], seed=trace["seed"])
    if len(drawn) > MAX_SIMULATED_JOBS:
        raise TraceError("would be too many", field="jobs", value=len(drawn), remedy=f"Ask for at most {MAX_SIMULATED_JOBS} jobs.")
    return drawn


def csv_workload(text: str) -> Workload:
    if "\n" not in text.strip():
        raise TraceError(
            "is no CSV text of a header and rows", field="text", value=text[:80], remedy="Give a header line and a line per job."
        )
    return read_workload(text, known_models=shipped_models(), max_jobs=MAX_SIMULATED_JOBS, name="csv")


def _of_cluster(session: Session, cluster_id: str) -> Workload:
    """Every job that the cluster has had, from its first submission on, as it was asked for."""
    statement = select(Job).where(Job.cluster_id == cluster_id).order_by(col(Job.submitted_seconds), col(Job.id))
    jobs = session.exec(statement.limit(MAX_SIMULATED_JOBS)).all()
    _, tenants = names_of(session, jobs)
    if not jobs:
        raise TraceError("has had no jobs", field="cluster_id", value=cluster_id, remedy="Submit jobs first, or generate a workload.")
    first = jobs[0].submitted_seconds
    return Workload("cluster", tuple(_trace_job(job, first, tenants[job.tenant_id]) for job in jobs), "cluster")


def _trace_job(job: Job, first: float, tenant: str) -> TraceJob:
    """An adaptive job stays open to a study that binds a share of the jobs."""
    return TraceJob(
        name=job.id,
        submit_seconds=job.submitted_seconds - first,
        model=job.model,
        gpu_count=job.min_gpus if job.gpu_count is None else job.gpu_count,
        batch_size=job.batch_size,
        work_scale=job.work_scale,
        adaptivity=None if job.adaptivity == Adaptivity.ADAPTIVE else Adaptivity(job.adaptivity),
        workload_kind=WorkloadKind(job.workload_kind),
        promised_seconds=job.promised_seconds,
        preemptible=job.preemptible,
        tenant=tenant,
    )
