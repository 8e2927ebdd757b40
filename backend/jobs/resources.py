"""Job rows as the API shows them.

Cluster time becomes dates, GPU seconds hours, ids names. Reads what several rows share once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.accounts.names import names_of
from backend.answers import answer_of
from backend.clocktime import cluster_seconds, shown_at
from backend.clusters.models import Cluster
from backend.clusters.repository import nodes_of
from backend.clusters.topology import count_nodes, node_of_gpu
from backend.forecasts.interest import record_interest
from backend.forecasts.repository import forecasts_of
from backend.forecasts.resources import times_of
from backend.jobs.deadlines import outlook_of
from backend.jobs.flags import flags_by_job, show_flag
from backend.jobs.kept_reasons import evidence_of
from backend.jobs.models import Job, JobEvent, JobFlag
from backend.jobs.remaining import remaining_seconds
from backend.jobs.shared_now import SharedNow
from backend.jobs.warnings import warnings_of
from backend.moments import moment_of
from backend.sight import Sight, jobs_named_in, sight_of
from maat.api.forecasts import JobTimesOut
from maat.api.job_answers import (
    AllocationOut,
    BatchPlanOut,
    JobEventOut,
    JobOut,
    ReasonOut,
)
from maat.scheduling.explain import ReasonCode, sentence_of
from maat.vocabulary import JobState, priority_class

_ENDINGS: Mapping[str, str] = {
    JobState.SUCCEEDED: "The job has ended: its work is done.",
    JobState.CANCELLED: "The job has ended: it was cancelled.",
}
_FAILED = "The job has ended: it failed."
_ENDING = "The job is being cancelled. A process that does not end in time is ended by force."
_PAUSING = {
    True: "It is being paused: the next round takes its GPUs away.",
    False: "It is being paused: rounds leave it out from the next one on.",
}
_RESUMING = "It is resumed: the next round considers it again."
_HANDED_OVER = "The last round gave it GPUs: it starts as soon as they are handed over."
_WITHOUT_GPUS = frozenset({JobState.SUBMITTED, JobState.PENDING, JobState.PREEMPTED})
_HELD = frozenset({ReasonCode.GRANTED, ReasonCode.PINNED})


@dataclass(frozen=True)
class _ClusterFacts:
    """What the jobs of a cluster share. Its nodes are read if one of them holds GPUs."""

    session: Session
    cluster: Cluster
    now: float

    @cached_property
    def sharing(self) -> SharedNow:
        return SharedNow(self.session, self.cluster)

    @cached_property
    def node_of_gpu(self) -> Sequence[int]:
        return node_of_gpu(nodes_of(self.session, self.cluster.id))


def show_jobs(
    session: Session, principal: Principal, jobs: Sequence[Job], *, are_new: bool = False
) -> list[JobOut]:
    """Show jobs. Who is shown one that has not ended reads its forecast.

    `are_new`: this transaction has made them, so that nothing is forecast of them yet.
    """
    record_interest(session, {job.cluster_id for job in jobs if job.finished_seconds is None})
    owners, tenants = names_of(session, jobs, asking=principal)
    facts = _facts(session, dict.fromkeys(job.cluster_id for job in jobs))
    active = [] if are_new else [job.id for job in jobs if job.finished_seconds is None]
    forecasts = forecasts_of(session, active)
    beside = (each for job in jobs for each in facts[job.cluster_id].sharing.ids_beside(job))
    flags = {} if are_new else flags_by_job(session, [job.id for job in jobs])
    named = jobs_named_in([job.reason_evidence for job in jobs])
    sight = sight_of(session, principal, [*named, *beside])
    return [
        _show(
            job,
            facts[job.cluster_id],
            sight,
            owner=owners[job.owner_id],
            tenant=tenants[job.tenant_id],
            forecast=times_of(job, forecasts.get(job.id), facts[job.cluster_id].cluster),
            flags=flags.get(job.id, ()),
        )
        for job in jobs
    ]


def show_job(session: Session, principal: Principal, job: Job, *, is_new: bool = False) -> JobOut:
    return show_jobs(session, principal, [job], are_new=is_new)[0]


def reason_sight(session: Session, principal: Principal, job: Job) -> Sight:
    """Return what a principal sees of the jobs in a job's reason.

    These are the jobs it shares GPUs with, and those that GPUs are reserved for.
    """
    return sight_of(session, principal, jobs_named_in(job.reason_evidence))


def show_reason(job: Job, sight: Sight) -> ReasonOut:
    """Show the reason from the last round, or how the job ended.

    The last allocation of an ended job no longer applies. A failed job that had none keeps its
    cause.
    """
    held = job.state == JobState.FAILED and job.reason_code in _HELD
    how = _FAILED if held else _ENDINGS.get(job.state)
    if how is not None:
        return ReasonOut(code="ENDED", sentence=how, evidence={}, as_of_round=job.as_of_round)
    if job.cancel_requested and job.finished_seconds is None:
        return ReasonOut(code="ENDING", sentence=_ENDING, evidence={}, as_of_round=job.as_of_round)
    if job.pause_requested and job.state != JobState.PAUSED:
        words = _PAUSING[job.gpus is not None]
        return ReasonOut(code="PAUSING", sentence=words, evidence={}, as_of_round=job.as_of_round)
    if job.reason_code == ReasonCode.HELD_BY_USER and not job.pause_requested:
        return ReasonOut(
            code="RESUMING", sentence=_RESUMING, evidence={}, as_of_round=job.as_of_round
        )
    reason = reason_out(
        job.reason_code, evidence_of(job.reason_evidence), sight, as_of_round=job.as_of_round
    )
    if job.reason_code in _HELD and job.state in _WITHOUT_GPUS:
        return ReasonOut({**reason, "sentence": _HANDED_OVER})
    return reason


def reason_out(
    code: str, evidence: Mapping[str, Any], sight: Sight, *, as_of_round: int | None
) -> ReasonOut:
    """Show a stored reason, with its sentence."""
    seen = sight.evidence(evidence)
    return ReasonOut(
        code=code, sentence=sentence_of(code, seen), evidence=seen, as_of_round=as_of_round
    )


def show_event(event: JobEvent, cluster: Cluster) -> JobEventOut:
    return answer_of(JobEventOut, event, at=shown_at(cluster, event.cluster_seconds))


def _facts(session: Session, cluster_ids: Collection[str]) -> dict[str, _ClusterFacts]:
    """Return the facts of clusters by their ids, all at one moment."""
    if not cluster_ids:
        return {}
    now = moment_of(session)
    clusters = [session.get_one(Cluster, cluster_id) for cluster_id in cluster_ids]
    return {
        cluster.id: _ClusterFacts(session, cluster, cluster_seconds(cluster, now))
        for cluster in clusters
    }


def _show(
    job: Job,
    facts: _ClusterFacts,
    sight: Sight,
    *,
    owner: str,
    tenant: str,
    forecast: JobTimesOut | None,
    flags: Sequence[JobFlag],
) -> JobOut:
    cluster = facts.cluster
    remaining = remaining_seconds(job, cluster)
    outlook = outlook_of(job, now=facts.now, remaining_seconds=remaining)
    reason = show_reason(job, sight)
    return answer_of(
        JobOut,
        job,
        owner=owner,
        tenant=tenant,
        submitted_at=shown_at(cluster, job.submitted_seconds),
        started_at=None if job.started_seconds is None else shown_at(cluster, job.started_seconds),
        finished_at=None
        if job.finished_seconds is None
        else shown_at(cluster, job.finished_seconds),
        paused_at=None
        if job.paused_since_seconds is None
        else shown_at(cluster, job.paused_since_seconds),
        runs_command=cluster.runs_commands,
        remaining_seconds=remaining,
        deadline=None if job.deadline_seconds is None else shown_at(cluster, job.deadline_seconds),
        deadline_outlook=outlook.word,
        deadline_seconds_late=outlook.seconds_late,
        wait_seconds=_wait_seconds(job, facts.now),
        forecast=forecast,
        priority_class=priority_class(job.priority),
        gpu_hours=job.gpu_seconds / 3600,
        allocation=_allocation(job, facts, sight),
        reason=reason,
        warnings=warnings_of(job, reason),
        flags=[show_flag(flag, cluster) for flag in flags],
    )


def _wait_seconds(job: Job, now: float) -> float:
    """Return the wait until the job got GPUs, or ended without, or now; without its pauses."""
    ends = (job.started_seconds, job.finished_seconds, job.paused_since_seconds, now)
    end = next(end for end in ends if end is not None)
    return max(end - job.submitted_seconds - job.unwaited_seconds, 0.0)


def _allocation(job: Job, facts: _ClusterFacts, sight: Sight) -> AllocationOut | None:
    if not job.gpus or job.gpu_type is None:
        return None
    batch = None if job.batch is None else cast(BatchPlanOut, job.batch)
    nodes = count_nodes(facts.node_of_gpu, job.gpus)
    return AllocationOut(
        gpu_type=job.gpu_type,
        gpu_count=len(job.gpus),
        node_count=nodes,
        gpus=job.gpus,
        batch=batch,
        shared_with=facts.sharing.beside(job, sight),
    )
