"""The workload of a request: generated, from CSV, or a cluster's history.

The worker calls it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlmodel import Session, col, func, select

from backend.accounts.names import names_of
from backend.jobs.models import Job
from backend.simulations.stored import HistoryTrace, StoredTrace
from backend.simulations.trace_jobs import trace_job
from backend.simulations.window import window_of
from maat.api.simulations import (
    MAX_SIMULATED_JOBS,
    ClusterTrace,
    CsvTrace,
    DrawnTrace,
    GeneratedTrace,
    HistoryWindow,
)
from maat.laboratory.requested import Model
from maat.scheduling.errors import TraceError
from maat.workloads.generators import FAMILY_NAMES, generate, job_count
from maat.workloads.reading import read_workload
from maat.workloads.workloads import Workload

MOST_DRAWN_JOBS = 1000
"""A request with a larger trace is checked by some of its jobs: a thousand take 0.1 s of CPU."""
SAMPLED_JOBS = 500
HISTORY = "cluster"  # name and format of a cluster's history


def workload_of(session: Session, trace: StoredTrace, models: Mapping[str, Model]) -> Workload:
    """Return the workload of a request's trace, of jobs of these models.

    Raises TraceError or ParameterError naming row, field, value and remedy.
    """
    match trace:
        case GeneratedTrace():
            return _generated(trace)
        case CsvTrace():
            return csv_workload(trace.text, models)
        case HistoryTrace():
            return replace(csv_workload(trace.text, models), name=HISTORY, format=HISTORY)
        case ClusterTrace():
            return history_of(session, trace).workload


@dataclass(frozen=True)
class History:
    """What a cluster has had. `left_out`: how many later jobs a replay has no room for."""

    workload: Workload
    window: HistoryWindow | None = None
    left_out: int = 0


def history_of(session: Session, trace: ClusterTrace) -> History:
    """Return the jobs that a cluster has had, or those of a window, and what is said of it.

    Raises TraceError.
    """
    if trace.since_seconds_ago is None:
        return _of_cluster(session, trace.cluster_id)
    found, shown = window_of(session, trace)
    return History(Workload(HISTORY, tuple(found.jobs), HISTORY), shown)


def _generated(trace: GeneratedTrace) -> Workload:
    if (count := drawn_jobs(trace)) > MAX_SIMULATED_JOBS:
        raise TraceError(
            "would be too many",
            field="jobs",
            value=count,
            remedy=f"Ask for at most {MAX_SIMULATED_JOBS} jobs.",
        )
    return generate(
        trace.family,
        jobs=trace.jobs,
        hours=trace.hours,
        seed=trace.seed,
        xxl_share=trace.xxl_share,
    )


def is_drawn_later(trace: DrawnTrace) -> bool:
    """Whether a trace that may be simulated is so large that the worker alone draws it."""
    is_known = trace.family in FAMILY_NAMES
    return is_known and MOST_DRAWN_JOBS < drawn_jobs(trace) <= MAX_SIMULATED_JOBS


def drawn_jobs(trace: DrawnTrace) -> int:
    """Return how many jobs a trace has that is still to be drawn. Raises UnknownNameError."""
    return job_count(trace.family, jobs=trace.jobs, hours=trace.hours)


def csv_workload(text: str, models: Mapping[str, Model]) -> Workload:
    if "\n" not in text.strip():
        raise TraceError(
            "is not CSV text with a header and rows",
            field="text",
            value=text[:80],
            remedy="Give a header line and a line per job.",
        )
    return read_workload(text, known_models=models, max_jobs=MAX_SIMULATED_JOBS, name="csv")


def _of_cluster(session: Session, cluster_id: str) -> History:
    """Return the jobs that the cluster has had, as they were requested: the first 20,000.

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
    played = tuple(trace_job(job, first, tenants[job.tenant_id]) for job in jobs)
    left_out = 0
    if len(jobs) == MAX_SIMULATED_JOBS:
        counted = select(func.count()).select_from(Job).where(Job.cluster_id == cluster_id)
        left_out = session.exec(counted).one() - len(jobs)
    return History(Workload(HISTORY, played, HISTORY), left_out=left_out)
