"""A window of a cluster's history as a trace: what each job still had to do when it began.

A replay begins with free GPUs, whatever the policy. Jobs that ran when the window began come at its
beginning with the work that was left of them; jobs that waited come at its beginning with all of
it. A job that was cancelled or failed has the work that it had done until then, since nobody knows
how much more it would have done. Pauses and failures of nodes are not played again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sqlmodel import Session, col, or_, select

from backend.accounts.names import names_of
from backend.clocktime import cluster_seconds, shown_at
from backend.clusters.models import Cluster
from backend.clusters.repository import get_cluster
from backend.jobs.models import AllocationReading, Job, JobAllocation
from backend.moments import moment_of
from backend.simulations.trace_jobs import as_recorded, trace_job
from maat.api.simulations import MAX_SIMULATED_JOBS, ClusterTrace, HistoryWindow
from maat.models.catalog import load_catalog
from maat.scheduling.errors import TraceError
from maat.vocabulary import JobState
from maat.workloads.workloads import TraceJob

_CUT_SHORT = (JobState.CANCELLED.value, JobState.FAILED.value)
_LEAST_SHARE = 1e-6  # of a job's work: less is none
_IDS = 500  # in one query
_COUNTED = tuple(name for name in HistoryWindow.model_fields if name not in ("start", "end"))
Counters = Sequence[tuple[float, float]]
"""Of one job: (cluster seconds, samples gained until then), in order."""


@dataclass
class WindowedHistory:
    """The jobs of a window, in order, and what became of those that were there."""

    start: float
    end: float
    jobs: list[TraceJob] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))

    def shown(self, cluster: Cluster) -> HistoryWindow:
        return HistoryWindow(
            start=shown_at(cluster, self.start), end=shown_at(cluster, self.end), **self.counts
        )


def window_of(session: Session, trace: ClusterTrace) -> tuple[WindowedHistory, HistoryWindow]:
    """Return the jobs that wanted GPUs in the window of a request. Raises TraceError."""
    cluster = get_cluster(session, trace.cluster_id)
    now = cluster_seconds(cluster, moment_of(session))
    found = WindowedHistory(
        max(now - (trace.since_seconds_ago or now), 0.0), max(now - trace.until_seconds_ago, 0.0)
    )
    rows = _present(session, cluster.id, found)
    _, tenants = names_of(session, rows)
    ran = [job for job in rows if job.started_seconds is not None]
    spans = _spans(session, [job.id for job in ran])
    readings = _readings(session, cluster.id, ran, before=found.start)
    for job in rows:
        of_job = spans.get(job.id, ())
        _add(found, job, tenants[job.tenant_id], of_job, readings.get(job.id, ()), now)
    if not found.jobs:
        raise TraceError(
            "has no job that wanted GPUs",
            field="since_seconds_ago",
            value=trace.since_seconds_ago,
            remedy="Take a longer window, or submit jobs first.",
        )
    found.jobs.sort(key=lambda job: job.submit_seconds)  # stable: the order of submission
    return found, found.shown(cluster)


def _present(session: Session, cluster_id: str, window: WindowedHistory) -> Sequence[Job]:
    """Return the jobs that were there in the window, in the order of submission."""
    statement = (
        select(Job)
        .where(
            Job.cluster_id == cluster_id,
            col(Job.submitted_seconds) + col(Job.unwaited_seconds) < window.end,
            or_(
                col(Job.finished_seconds).is_(None),
                col(Job.finished_seconds) > window.start,
            ),
        )
        .order_by(col(Job.submitted_seconds), col(Job.id))
    )
    rows = session.exec(statement.limit(MAX_SIMULATED_JOBS + 1)).all()
    if len(rows) > MAX_SIMULATED_JOBS:
        raise TraceError(
            f"has more than {MAX_SIMULATED_JOBS} jobs",
            field="since_seconds_ago",
            value=window.end - window.start,
            remedy="Take a shorter window.",
        )
    return rows


def _add(
    window: WindowedHistory,
    job: Job,
    tenant: str,
    spans: Sequence[JobAllocation],
    readings: Counters,
    now: float,
) -> None:
    """Add what the job still had to do in the window, and count what it is."""
    came = job.submitted_seconds + job.unwaited_seconds
    done_before = _done_at(window.start, job, spans, readings, now)
    if job.model not in load_catalog():
        made = as_recorded(job, spans, since=window.start, now=now, tenant=tenant)
    else:
        ends_at = job.progress if job.state in _CUT_SHORT else 1.0
        left = ends_at - done_before
        made = (
            None
            if left < _LEAST_SHARE
            else replace(trace_job(job, window.start, tenant), work_scale=job.work_scale * left)
        )
    if made is None:
        window.counts["without_work"] += 1
        return
    window.jobs.append(replace(made, submit_seconds=max(came - window.start, 0.0)))
    began = job.started_seconds is not None and job.started_seconds <= window.start
    kind = "submitted" if came >= window.start else "begun_before" if began else "waiting_before"
    window.counts[kind] += 1
    window.counts["cut_short"] += job.state in _CUT_SHORT
    window.counts["as_recorded"] += job.model not in load_catalog()


def _done_at(
    time: float, job: Job, spans: Sequence[JobAllocation], readings: Counters, now: float
) -> float:
    """Return the share of its whole work that a job had done at a time, from 0 to 1.

    Its present progress is spread over the samples that it gained. Where nobody read them, or the
    spans have been deleted, it is spread over the time since it started.
    """
    if job.started_seconds is None or job.started_seconds >= time:
        return 0.0
    progress = min(max(job.progress, 0.0), 1.0)
    last = now if job.finished_seconds is None else job.finished_seconds
    whole = spans and spans[0].from_seconds <= job.started_seconds
    points = sorted({*_points(job, spans, last), *readings}) if whole else []
    if len(points) > 1 and points[-1][1] > 0:
        at, gained = np.array(points).T
        return progress * float(np.interp(time, at, np.maximum.accumulate(gained)) / gained.max())
    passed = max(last - job.started_seconds, 1e-9)
    return progress * min((time - job.started_seconds) / passed, 1.0)


def _points(job: Job, spans: Sequence[JobAllocation], last: float) -> Iterator[tuple[float, float]]:
    """Yield the counters at both ends of each span; a span begins to gain once the job runs."""
    for span in spans:
        if span.gained_before is not None:
            yield span.from_seconds, span.gained_before
            if span.running_seconds is not None:
                yield span.running_seconds, span.gained_before
        if span.to_seconds is None:
            yield last, job.gained_samples
        elif span.gained_after is not None:
            yield span.to_seconds, span.gained_after


def _spans(session: Session, ids: Sequence[str]) -> Mapping[str, Sequence[JobAllocation]]:
    found: dict[str, list[JobAllocation]] = defaultdict(list)
    for some in _parts(ids):
        asked = select(JobAllocation).where(col(JobAllocation.job_id).in_(some))
        for row in session.exec(asked.order_by(col(JobAllocation.id))):
            if not row.for_profile:
                found[row.job_id].append(row)
    return found


def _readings(
    session: Session, cluster_id: str, jobs: Sequence[Job], *, before: float
) -> Mapping[str, Counters]:
    """Return what was read of the jobs that had started before a time."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    ids = [job.id for job in jobs if (job.started_seconds or 0.0) < before]
    for some in _parts(ids):
        asked = select(AllocationReading).where(
            AllocationReading.cluster_id == cluster_id, col(AllocationReading.job_id).in_(some)
        )
        for row in session.exec(asked):
            found[row.job_id].append((row.at_seconds, row.gained_samples))
    return found


def _parts(ids: Sequence[str]) -> Iterator[Any]:
    edges = [*range(0, len(ids), _IDS), len(ids)]
    return (ids[a:b] for a, b in pairwise(edges) if a < b)
