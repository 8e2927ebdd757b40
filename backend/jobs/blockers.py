"""Which jobs keep a waiting job from its GPUs: who, on which GPUs, why each stays, until when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.clusters.models import Cluster, Node
from backend.clusters.repository import nodes_of
from backend.clusters.topology import capacity_by_type, node_of_gpu
from backend.forecasts.models import JobForecastRow
from backend.forecasts.repository import forecasts_of
from backend.forecasts.resources import times_of
from backend.jobs.models import Job
from backend.jobs.needs import needed_gpus
from backend.sight import OTHER_JOB, Sight, sight_of
from maat.api.forecasts import JobTimesOut
from maat.api.job_answers import BlockerOut, ReasonOut
from maat.scheduling.blocking import Blocking, Holder, Stay, blocking
from maat.scheduling.explain import BLOCKED, ReasonCode
from maat.vocabulary import JobState

_SHARES_NOT = frozenset({ReasonCode.SHARING_UNKNOWN, ReasonCode.SHARING_NO_GAIN})
"""Reasons for which free places beside others cannot be had."""

MOST_NAMED = 3  # in the sentence; the answer lists all
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
    """Who blocks a job, as an answer says it: a sentence on all, and each by itself.

    `adds`: the sentence stands after that of the reason, and not in its place.
    """

    sentence: str
    each: Sequence[BlockerOut]
    adds: bool = False

    def said_with(self, reason: ReasonOut) -> ReasonOut:
        """Return the reason with who blocks the job in its sentence."""
        before = f"{reason['sentence']} " if self.adds else ""
        return ReasonOut({**reason, "sentence": before + self.sentence})


def blockers_of(session: Session, principal: Principal, job: Job) -> Blockers | None:
    """Return who blocks a job that waits for GPUs that others hold; None if nobody does.

    Where jobs may share GPUs, those with a free place can be had, unless the policy has found that
    sharing them does not pay. Of a quota, jobs of the team hold what it allows.
    """
    waits = job.finished_seconds is None and job.gpus is None
    if not waits or job.reason_code not in BLOCKED:
        return None
    there = _There.of(session, job)
    of_quota = job.reason_code == ReasonCode.WAITING_QUOTA
    found = _of_team(job, there) if of_quota else _least_lacking(job, there)
    if found is None:
        return _of_job_ahead(session, principal, job)
    sight = sight_of(session, principal, [one.job_id for one in found.by])
    each = [_shown(one, there, sight) for one in found.by]
    if of_quota:
        return Blockers(f"Of it {_named(each)}.", each, adds=True)
    adds = job.reason_code in _SHARES_NOT
    return Blockers(_sentence(found, each), each, adds)


def _of_job_ahead(session: Session, principal: Principal, job: Job) -> Blockers | None:
    """Return who blocks the job that this one does not overtake; None if it overtakes all."""
    ahead = session.get(Job, job.reason_evidence.get("ahead", ""))
    if ahead is None or ahead.finished_seconds is not None or ahead.gpus is not None:
        return None
    is_first = "ahead" not in ahead.reason_evidence
    its = blockers_of(session, principal, ahead) if is_first else None
    sees = sight_of(session, principal, [ahead.id]).may_see(ahead.id)
    who = f"job {ahead.name}" if sees else OTHER_JOB
    head = (
        f"GPUs are free for it, but it does not overtake {who}, ahead of it in the policy's order"
    )
    if its is None:
        return Blockers(f"{head}, which waits too.", [])
    return Blockers(f"{head}, which waits: {its.sentence[:1].lower()}{its.sentence[1:]}", its.each)


@dataclass(frozen=True)
class _There:
    """The cluster of a job: its nodes, who holds its GPUs, and until when by their forecasts."""

    cluster: Cluster
    nodes: Sequence[Node]
    holders: Mapping[str, Job]
    forecasts: Mapping[str, JobForecastRow]

    @classmethod
    def of(cls, session: Session, job: Job) -> _There:
        cluster = session.get_one(Cluster, job.cluster_id)
        holders = {one.id: one for one in _holders(session, cluster.id)}
        forecasts = forecasts_of(session, list(holders))
        return cls(cluster, nodes_of(session, cluster.id), holders, forecasts)

    def times(self, job: Job) -> JobTimesOut | None:
        return times_of(job, self.forecasts.get(job.id), self.cluster)

    def of_type(self, gpu_type: str) -> list[Holder]:
        return [
            _holder(one, None if row is None else row.end_p50)
            for one in self.holders.values()
            if one.gpu_type == gpu_type
            for row in (self.forecasts.get(one.id),)
        ]


def _holders(session: Session, cluster_id: str) -> Sequence[Job]:
    held = select(Job).where(
        Job.cluster_id == cluster_id,
        col(Job.gpu_type).is_not(None),
        col(Job.finished_seconds).is_(None),
    )
    return session.exec(held.order_by(col(Job.id))).all()


def _least_lacking(job: Job, there: _There) -> Blocking | None:
    in_service = capacity_by_type(there.nodes, usable_only=True)
    places = 1 if job.reason_code in _SHARES_NOT else there.cluster.jobs_per_gpu
    evidence, commands = job.reason_evidence, there.cluster.runs_commands
    needs = needed_gpus(job, evidence, in_service, runs_commands=commands)
    return least_lacking(needs, evidence, there.of_type, in_service, places=places)


def least_lacking(
    needs: Mapping[str, int],
    evidence: Mapping[str, Any],
    of_type: Callable[[str], Sequence[Holder]],
    in_service: Mapping[str, int],
    *,
    places: int = 1,
) -> Blocking | None:
    """Return who blocks a job on the GPU type of which it lacks least; None if enough are free.

    `needs`: GPUs that it needs, by types that it can run on. `evidence`: of its reason; a type that
    it names comes before others. `of_type`: who holds GPUs of a type. `in_service`: GPUs by type.
    """
    named = str(evidence.get("gpu_type"))
    found = []
    for kind in [named] if named in needs else needs:
        known = in_service.get(kind, 0)
        blocked = blocking(
            of_type(kind), gpu_type=kind, needed=needs[kind], in_service=known, places=places
        )
        if blocked is not None:
            found.append(blocked)
        elif needs[kind] <= known:
            return None
    return min(found, key=lambda one: (one.fixed, one.needed - one.free), default=None)


def _of_team(job: Job, there: _There) -> Blocking | None:
    """Return the jobs of its own team that hold the GPUs of a quota; None if none does."""
    kind, gpus = job.reason_evidence.get("quota_gpu_type"), job.reason_evidence.get("quota_gpus")
    mine = [
        one
        for one in there.of_type(str(kind))
        if there.holders[one.job_id].tenant_id == job.tenant_id
    ]
    if not mine or not isinstance(gpus, int):
        return None
    largest_first = sorted(mine, key=lambda one: (-one.gpu_count, one.job_id))
    return Blocking(str(kind), job.gpu_count or job.min_gpus, gpus, 0, False, tuple(largest_first))


def _stay_of_running(job: Job) -> Stay:
    if not job.preemptible:
        return Stay.NOT_PREEMPTIBLE
    return Stay.BOUND if "stays_for_seconds" in job.reason_evidence else Stay.KEPT


def _holder(job: Job, ends_at: float | None) -> Holder:
    stay = _STAYS.get(job.state, _stay_of_running(job))
    return Holder(job.id, frozenset(job.gpus or ()), stay, ends_at)


def _shown(holder: Holder, there: _There, sight: Sight) -> BlockerOut:
    job, nodes = there.holders[holder.job_id], there.nodes
    owner, gpus, times = node_of_gpu(nodes), job.gpus or [], there.times(job)
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
    if found.fixed:
        head = f"{needs}, and {found.kept_gpus} of them cannot be taken now"
    elif found.places > 1:
        head = f"{needs}; {many(found.free, 'has', 'have')} a free place"
    else:
        head = f"{needs}; {many(found.free, 'is', 'are')} free"
    return f"{head}: {_named(each)}."


def many(count: int, one: str, more: str) -> str:
    return f"none {one}" if not count else f"{count} {one if count == 1 else more}"


def _named(each: Sequence[BlockerOut]) -> str:
    named = "; ".join(one["sentence"] for one in each[:MOST_NAMED])
    rest = len(each) - MOST_NAMED
    return named + ("" if rest <= 0 else f"; and {rest} other{'s' * (rest > 1)}")
