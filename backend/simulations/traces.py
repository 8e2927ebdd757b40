"""The workload of a request: generated, from CSV, or a cluster's history.

The worker calls it too.
"""

from __future__ import annotations

from dataclasses import replace

from sqlmodel import Session, col, select

from backend.accounts.names import names_of
from backend.jobs.declarations import declaration_of
from backend.jobs.models import Job
from backend.simulations.stored import HistoryTrace, StoredTrace
from maat.api.simulations import MAX_SIMULATED_JOBS, ClusterTrace, CsvTrace, GeneratedTrace
from maat.laboratory.requested import shipped_models
from maat.scheduling.errors import TraceError
from maat.scheduling.job import declared
from maat.vocabulary import MAX_GPUS, Adaptivity
from maat.workloads.generators import generate
from maat.workloads.reading import read_workload
from maat.workloads.workloads import TraceJob, Workload

HISTORY = "cluster"  # name and format of a cluster's history


def workload_of(session: Session, trace: StoredTrace) -> Workload:
    """Return the workload of a request's trace.

    Raises TraceError or ParameterError naming row, field, value and remedy.
    """
    match trace:
        case GeneratedTrace():
            return _generated(trace)
        case CsvTrace():
            return csv_workload(trace.text)
        case HistoryTrace():
            return replace(csv_workload(trace.text), name=HISTORY, format=HISTORY)
        case ClusterTrace():
            return _of_cluster(session, trace.cluster_id)


def _generated(trace: GeneratedTrace) -> Workload:
    drawn = generate(trace.family, jobs=trace.jobs, hours=trace.hours, seed=trace.seed)
    if len(drawn) > MAX_SIMULATED_JOBS:
        raise TraceError(
            "would be too many",
            field="jobs",
            value=len(drawn),
            remedy=f"Ask for at most {MAX_SIMULATED_JOBS} jobs.",
        )
    return drawn


def csv_workload(text: str) -> Workload:
    if "\n" not in text.strip():
        raise TraceError(
            "is not CSV text with a header and rows",
            field="text",
            value=text[:80],
            remedy="Give a header line and a line per job.",
        )
    return read_workload(
        text, known_models=shipped_models(), max_jobs=MAX_SIMULATED_JOBS, name="csv"
    )


def _of_cluster(session: Session, cluster_id: str) -> Workload:
    """Return every job that the cluster has had, as it was requested.

    Time starts at the first submission.
    """
    statement = (
        select(Job)
        .where(Job.cluster_id == cluster_id)
        .order_by(col(Job.submitted_seconds), col(Job.id))
    )
    jobs = session.exec(statement.limit(MAX_SIMULATED_JOBS)).all()
    _, tenants = names_of(session, jobs)
    if not jobs:
        raise TraceError(
            "has had no jobs",
            field="cluster_id",
            value=cluster_id,
            remedy="Submit jobs first, or generate a workload.",
        )
    first = jobs[0].submitted_seconds
    return Workload(
        HISTORY, tuple(trace_job(job, first, tenants[job.tenant_id]) for job in jobs), HISTORY
    )


def trace_job(job: Job, first: float, tenant: str) -> TraceJob:
    """Return a live job as a trace job named by its id.

    `first`: cluster seconds at which the trace begins; `tenant`: by name. An adaptive job keeps no
    adaptivity of its own, so that a study can make a share of the jobs rigid. A job without
    `max_gpus` may have up to MAX_GPUS, instead of the limit that a fidelity gives the jobs of
    published traces. A job that was held, or followed others, comes when it could first start.
    """
    asked = declared(declaration_of(job)) | {
        "name": job.id,
        "adaptivity": None if job.adaptivity == Adaptivity.ADAPTIVE else Adaptivity(job.adaptivity),
        "gpu_count": job.min_gpus if job.gpu_count is None else job.gpu_count,
        "max_gpus": MAX_GPUS if job.max_gpus is None else job.max_gpus,
    }
    comes = job.submitted_seconds + job.unwaited_seconds - first
    return TraceJob(**asked, submit_seconds=comes, tenant=tenant)
