"""Checks what an executor answers, before a round or the journal sees it.

An answer may be wrong: an executor has faults, and what it runs on is not in its hands. Wrong parts
are left out and logged, so that the rounds of the cluster go on.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from maat.scheduling.cluster import Cluster
from maat.scheduling.events import TERMINAL, Event
from maat.scheduling.job import Allocation, Job, JobId
from maat.scheduling.rounds import ClusterState
from worker.executors.protocol import Applied, JobStatus, Observation

log = logging.getLogger(__name__)

IsRecorded = Callable[[JobId, Allocation], bool]
"""Whether these are the GPUs that the journal has for the job."""


def checked_observation(
    seen: Observation,
    known: Collection[JobId],
    cluster: Cluster,
    *,
    now: float,
    is_recorded: IsRecorded,
) -> Observation:
    """Return the observation without what cannot be.

    Unknown jobs, second answers about a job, numbers that are none, and GPUs that do not exist or
    that another job holds. The scheduler sees every GPU that a job holds as held.
    """
    statuses = _checked_statuses(seen.statuses, known, cluster, {}, is_recorded)
    held = {status.job_id: status.allocation for status in statuses if status.ended is None}
    state = seen.state
    has_its_gpus = state.cluster.gpu_count == cluster.gpu_count
    return Observation(
        ClusterState(
            now=now,
            cluster=state.cluster if has_its_gpus else cluster,
            jobs=_checked_jobs(state.jobs, held, cluster),
            events=_checked_events(state.events),
            jobs_to_come=state.jobs_to_come,
        ),
        statuses,
    )


def checked_applied(
    applied: Applied,
    known: Collection[JobId],
    cluster: Cluster,
    *,
    others: Callable[[Collection[JobId]], Iterable[int]],
    is_recorded: IsRecorded,
) -> Applied:
    """Return the answer without what cannot be.

    `others`: the GPUs that all jobs but these hold, once for each of them.
    """
    touched = {status.job_id for status in applied.statuses}
    taken = Counter(others(touched))
    statuses = _checked_statuses(applied.statuses, known, cluster, taken, is_recorded)
    return Applied(_checked_events(applied.events), statuses)


def _checked_events(events: Sequence[Event]) -> tuple[Event, ...]:
    return tuple(event for event in events if math.isfinite(event.time))


def _checked_statuses(
    statuses: Sequence[JobStatus],
    known: Collection[JobId],
    cluster: Cluster,
    taken: Mapping[int, int],
    is_recorded: IsRecorded,
) -> list[JobStatus]:
    kept = [status for status in statuses if status.job_id in known and _is_possible(status)]
    if len({status.job_id for status in kept}) != len(kept):
        kept = list({status.job_id: status for status in reversed(kept)}.values())
    if len(kept) != len(statuses):
        log.warning("%d statuses of the executor cannot be", len(statuses) - len(kept))
    claims = [(one.job_id, one.allocation) for one in kept if one.allocation is not None]
    refused = _refused(claims, cluster, taken, is_recorded)
    if not refused:
        return kept
    log.warning("jobs %s claim GPUs that they cannot hold", sorted(refused)[:5])
    return [
        one._replace(allocation=None, goodput=None, plan=None, starting=True)
        if one.job_id in refused
        else one
        for one in kept
    ]


def _is_possible(status: JobStatus) -> bool:
    numbers = (
        status.progress,
        status.remaining_work,
        status.gpu_seconds,
        status.goodput or 0.0,
        status.started_at or 0.0,
        status.processed_samples,
        status.gained_samples,
        status.lost_gpu_seconds,
        status.noise_scale or 0.0,
    )
    has_a_way_to_end = status.ended is None or status.ended in TERMINAL
    return has_a_way_to_end and all(map(math.isfinite, numbers))


def _checked_jobs(
    jobs: Sequence[Job], held: Mapping[JobId, Allocation | None], cluster: Cluster
) -> tuple[Job, ...]:
    """Return the jobs that have a status, each once, on GPUs that nobody else holds."""
    by_job = {job.spec.id: job for job in jobs if job.spec.id in held}
    for job_id, job in by_job.items():
        if job.allocation is None and held[job_id] is not None:
            by_job[job_id] = replace(job, allocation=held[job_id])
    claims = [(i, job.allocation) for i, job in by_job.items() if job.allocation is not None]
    refused = _refused(claims, cluster, {}, lambda job_id, gpus: held[job_id] == gpus)
    refused |= {i for i, gpus in claims if not by_job[i].spec.may_use(gpus.gpu_type)}
    for job_id in refused:
        by_job[job_id] = replace(by_job[job_id], allocation=None, restarting=False)
    return tuple(by_job.values())


def _refused(
    claims: Sequence[tuple[JobId, Allocation]],
    cluster: Cluster,
    taken: Mapping[int, int],
    comes_first: IsRecorded,
) -> set[JobId]:
    """Return the jobs whose GPUs do not exist, or are all taken by jobs that come first."""
    holders, type_of = dict(taken), cluster.gpu_type_of.tolist()
    refused = set()
    for job_id, held in sorted(claims, key=lambda claim: not comes_first(*claim)):
        kind = cluster.type_index.get(held.gpu_type)
        there = bool(held.gpus) and len(set(held.gpus)) == len(held.gpus)
        if there and all(
            0 <= gpu < len(type_of)
            and type_of[gpu] == kind
            and holders.get(gpu, 0) < cluster.jobs_per_gpu
            for gpu in held.gpus
        ):
            for gpu in held.gpus:
                holders[gpu] = holders.get(gpu, 0) + 1
        else:
            refused.add(job_id)
    return refused
