"""Which jobs keep a waiting job from its GPUs: who, on which GPUs, why each stays, until when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.clusters.models import Cluster, Node
from backend.clusters.repository import nodes_of
from backend.clusters.topology import capacity_by_type, node_of_gpu
from backend.forecasts.repository import forecasts_of
from backend.forecasts.resources import times_of
from backend.jobs.models import Job
from backend.sight import OTHER_JOB, Sight, sight_of
from maat.api.forecasts import JobTimesOut
from maat.api.job_answers import BlockerOut
from maat.scheduling.blocking import Blocking, Holder, Stay, blocking
from maat.scheduling.explain import ReasonCode
from maat.vocabulary import Adaptivity, JobState

BLOCKED = frozenset(
    {
        ReasonCode.WAITING_CAPACITY,
        ReasonCode.BEHIND_IN_ORDER,
        ReasonCode.LOWER_GOODPUT_GAIN,
    }
)
"""Reasons for which it is other jobs that hold the GPUs."""

_MOST_NAMED = 3  # in the sentence; the answer lists all
_MOST_NODES = 3
_STAYS: Mapping[str, Stay] = {
    JobState.STARTING: Stay.STARTING,
    JobState.RESTARTING: Stay.RESTARTING,
    JobState.PROFILING: Stay.PROFILED,
}
_WHY: Mapping[Stay, str] = {
    Stay.STARTING: "is starting",
    Stay.RESTARTING: "is restarting",
    Stay.PROFILED: "is being profiled",
    Stay.BOUND: "must stay for a time",
    Stay.NOT_PREEMPTIBLE: "may not be preempted",
    Stay.KEPT: "keeps them by the policy's choice",
}


@dataclass(frozen=True)
class Blockers:
    """Who blocks a job, as an answer says it: a sentence on all, and each by itself."""

    sentence: str
    each: Sequence[BlockerOut]


def blockers_of(session: Session, principal: Principal, job: Job) -> Blockers | None:
    """Return who blocks a job that waits for GPUs that others hold; None if nobody does.

    Where jobs may share GPUs, GPUs that are held may still be had.
    """
    cluster = session.get_one(Cluster, job.cluster_id)
    waits = job.finished_seconds is None and job.gpus is None
    if not waits or job.reason_code not in BLOCKED or cluster.jobs_per_gpu > 1:
        return None
    nodes = nodes_of(session, cluster.id)
    in_service = capacity_by_type(nodes, usable_only=True)
    holders = _holders(session, cluster.id)
    rows = forecasts_of(session, [holder.id for holder in holders])
    times = {holder.id: times_of(holder, rows.get(holder.id), cluster) for holder in holders}
    ends = {job_id: row.end_p50 for job_id, row in rows.items()}
    found = _least_lacking(job, holders, in_service, ends)
    if found is None:
        return None
    sight = sight_of(session, principal, [one.job_id for one in found.by])
    by_id = {holder.id: holder for holder in holders}
    each = [_shown(one, by_id[one.job_id], sight, nodes, times[one.job_id]) for one in found.by]
    return Blockers(_sentence(found, each), each)


def _holders(session: Session, cluster_id: str) -> Sequence[Job]:
    held = select(Job).where(
        Job.cluster_id == cluster_id,
        col(Job.gpu_type).is_not(None),
        col(Job.finished_seconds).is_(None),
    )
    return session.exec(held.order_by(col(Job.id))).all()


def _least_lacking(
    job: Job,
    holders: Sequence[Job],
    in_service: Mapping[str, int],
    ends: Mapping[str, float | None],
) -> Blocking | None:
    """Return who blocks it on the GPU type of which it lacks least; None if enough are free.

    A type that the round named comes before others.
    """
    needed = (job.gpu_count or 1) if job.adaptivity == Adaptivity.RIGID else job.min_gpus
    named = str(job.reason_evidence.get("gpu_type"))
    kinds = [named] if named in in_service else job.gpu_types or list(in_service)
    found = []
    for kind in kinds:
        mine = [_holder(one, ends.get(one.id)) for one in holders if one.gpu_type == kind]
        held = blocking(mine, gpu_type=kind, needed=needed, in_service=in_service.get(kind, 0))
        if held is not None:
            found.append(held)
        elif needed <= in_service.get(kind, 0):
            return None
    return min(found, key=lambda one: (one.fixed, one.needed - one.free), default=None)


def _stay_of_running(job: Job) -> Stay:
    if not job.preemptible:
        return Stay.NOT_PREEMPTIBLE
    return Stay.BOUND if "stays_for_seconds" in job.reason_evidence else Stay.KEPT


def _holder(job: Job, ends_at: float | None) -> Holder:
    stay = _STAYS.get(job.state, _stay_of_running(job))
    return Holder(job.id, len(job.gpus or []), stay, ends_at)


def _shown(
    holder: Holder, job: Job, sight: Sight, nodes: Sequence[Node], times: JobTimesOut | None
) -> BlockerOut:
    owner, gpus = node_of_gpu(nodes), job.gpus or []
    names = [nodes[i].name for i in sorted({owner[gpu] for gpu in gpus if 0 <= gpu < len(owner)})]
    sees = sight.may_see(job.id)
    end = None if times is None else times["end"]
    return BlockerOut(
        job=sight.job(job.id),
        name=job.name if sees else None,
        gpu_type=str(job.gpu_type),
        gpu_count=holder.gpu_count,
        gpus=gpus,
        nodes=names,
        stay=holder.stay.value,
        ends_p50_at=None if end is None else end["p50_at"],
        ends_p90_at=None if end is None else end["p90_at"],
        sentence=_one_sentence(holder, job, names, times, sees=sees),
    )


def _one_sentence(
    holder: Holder, job: Job, nodes: Sequence[str], times: JobTimesOut | None, *, sees: bool
) -> str:
    """`Job base holds 1 a100 (on node-4) and may not be preempted: it ends about ... .`"""
    who = f"job {job.name}" if sees else OTHER_JOB
    where = ", ".join(nodes) if len(nodes) <= _MOST_NODES else f"{len(nodes)} nodes"
    holds = f"{who} holds {holder.gpu_count} {job.gpu_type} (on {where})"
    return f"{holds} and {_WHY[holder.stay]}{_until(times)}"


def _until(times: JobTimesOut | None) -> str:
    if times is None:
        return ", and its end is not forecast yet"
    at = times["end"]["p50_at"]
    if at is None:
        return ", by its forecast for more than 14 days"
    return f", by its forecast until about {at[:16].replace('T', ' ')} UTC"


def _sentence(found: Blocking, each: Sequence[BlockerOut]) -> str:
    needs = f"It needs {found.needed} {found.gpu_type} of {found.in_service} in service"
    held = sum(one.gpu_count for one in found.by)
    if found.fixed:
        head = f"{needs}, and {held} of them cannot be taken now"
    else:
        free = "none is free" if not found.free else f"{found.free} are free"
        head = f"{needs}; {free if found.free != 1 else '1 is free'}"
    named = "; ".join(one["sentence"] for one in each[:_MOST_NAMED])
    rest = len(each) - _MOST_NAMED
    others = "" if rest <= 0 else f"; and {rest} other{'s' * (rest > 1)}"
    return f"{head}: {named}{others}."
