"""Computes rho of jobs that have ended from what was believed of them. Writes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.fairness.formula import RULE, VERSION
from backend.models import Cluster as ClusterRow
from backend.models import Job, JobAllocation, JobEvent, JobFairness, Node, WaitReason
from maat.scheduling.belief import MemoisingFitter
from maat.scheduling.believed_life import BelievedLife, believed_isolated_seconds
from maat.scheduling.cluster import Cluster
from maat.scheduling.cluster import Node as EngineNode
from maat.scheduling.events import EventKind
from maat.scheduling.metrics import finish_time_fairness
from maat.vocabulary import JobState, WithoutRho, WorkloadKind
from worker.fairness.active import Away, contention_of, finished, pauses_of
from worker.fairness.beliefs import Without, simulated_life, trained_life
from worker.fairness.lives import At, Holding, gpus_held, life_spent

Shape = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Ended:
    """A job that has ended, with all that its rho follows from.

    `jct_seconds`: from its submission to its end, less its pauses.
    `life`: what was believed of it, or why it has no rho. `shape`: as in JobFairness.
    """

    job_id: str
    jct_seconds: float
    contention: float
    shape: Shape
    life: BelievedLife | Without
    why: Mapping[str, Any]


def ended_jobs(session: Session, rows: Sequence[JobFairness]) -> list[Ended]:
    """Read these jobs; with the jobs of each cluster, its active jobs are read once."""
    fitter = MemoisingFitter()
    found = []
    by_cluster = sorted(rows, key=lambda row: row.cluster_id)
    for cluster_id, some in groupby(by_cluster, key=lambda row: row.cluster_id):
        mine = list(some)
        cluster = session.get_one(ClusterRow, cluster_id)
        shape_now = shape_of(
            session.exec(
                select(Node).where(Node.cluster_id == cluster_id).order_by(col(Node.position))
            )
        )
        jobs = [session.get_one(Job, row.job_id) for row in mine]
        away = pauses_of(session, jobs)
        for row, job, contention in zip(
            mine, jobs, contention_of(session, cluster_id, jobs, away), strict=True
        ):
            shape = shape_now if row.shape is None else row.shape
            found.append(
                Ended(
                    job.id,
                    _jct_seconds(job, away[job.id]),
                    contention,
                    shape,
                    _life(session, cluster, job, shape, fitter),
                    _why(session, job, row.why),
                )
            )
    return found


def rho_of(ended: Ended, *, look: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """Return the columns of JobFairness that hold rho, or why there is none.

    `look` is called often; what it raises ends the computation, besides Without.
    """
    values: dict[str, Any] = {
        "rule": RULE.value,
        "formula_version": VERSION,
        "jct_seconds": ended.jct_seconds,
        "contention": ended.contention,
        "shape": [list(group) for group in ended.shape],
        "why": dict(ended.why),
        "rho": None,
        "isolated_seconds": None,
        "reason": None,
        "detail": None,
    }
    try:
        if isinstance(ended.life, Without):
            raise ended.life
        cluster = cluster_of(ended.shape)
        isolated = believed_isolated_seconds(
            ended.life, cluster, contention=ended.contention, rule=RULE, look=look
        )
        gpus = {
            name: int(count)
            for name, count in zip(cluster.type_names, cluster.usable_gpus, strict=True)
        }
        rho = finish_time_fairness(ended.jct_seconds, isolated, gpus, rule=RULE)
        if not math.isfinite(rho):
            raise Without(WithoutRho.NO_TYPE)
    except Without as without:
        return values | {"reason": without.reason.value, "detail": without.detail}
    return values | {"rho": rho, "isolated_seconds": dict(isolated)}


def shape_of(nodes: Iterable[Node]) -> list[list[Any]]:
    """Return a cluster as [GPU type, usable GPUs of a node, such nodes], in order.

    Without a usable GPU, all count: they may come back.
    """
    rows = list(nodes)
    usable = [(n.gpu_type, 0 if n.fault else n.gpu_count - len(n.drained_gpus)) for n in rows]
    if not any(count for _, count in usable):
        usable = [(n.gpu_type, n.gpu_count) for n in rows]
    counts: dict[tuple[str, int], int] = {}
    for kind, count in usable:
        if count:
            counts[kind, count] = counts.get((kind, count), 0) + 1
    return [[kind, count, nodes_] for (kind, count), nodes_ in counts.items()]


def cluster_of(shape: Shape) -> Cluster:
    """Return the engine's cluster of a shape."""
    return Cluster.of(
        [
            EngineNode(f"{group}-{number}", str(kind), int(gpus))
            for group, (kind, gpus, many) in enumerate(shape)
            for number in range(int(many))
        ]
    )


def _life(
    session: Session, cluster: ClusterRow, job: Job, shape: Shape, fitter: MemoisingFitter
) -> BelievedLife | Without:
    if job.state != JobState.SUCCEEDED:
        return Without(WithoutRho.NOT_SUCCEEDED)
    if job.workload_kind == WorkloadKind.LATENCY_INFERENCE:
        return Without(WithoutRho.LATENCY_BOUND)
    try:
        if cluster.runs_commands:
            return trained_life(session, job, cluster_of(shape))
        return simulated_life(session, job, fitter)
    except Without as without:
        return without


def _why(session: Session, job: Job, known: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return how the job's life was spent. `known`: what was stored of it earlier, and is kept."""
    spent = _spent(session, job) if known is None else known
    return spent if "held_hours" in spent else {**spent, **_gpus_held_by(session, job)}


def _gpus_held_by(session: Session, job: Job) -> Mapping[str, Any]:
    names = ("gpu_type", "gpu_count", "from_seconds", "to_seconds")
    rows = session.execute(
        sa.select(*(col(getattr(JobAllocation, name)) for name in names)).where(
            col(JobAllocation.job_id) == job.id, ~col(JobAllocation.for_profile)
        )
    ).all()
    if not rows:
        return {}
    end = finished(job)
    return gpus_held(
        Holding(gpu_type, gpus, since, end if until is None else until)
        for gpu_type, gpus, since, until in rows
    )


def _spent(session: Session, job: Job) -> Mapping[str, Any]:
    changes = session.execute(
        select(JobEvent.cluster_seconds, JobEvent.state)
        .where(JobEvent.job_id == job.id, JobEvent.kind == EventKind.STATE.value)
        .order_by(col(JobEvent.id))
    )
    reasons = session.execute(
        select(WaitReason.at_seconds, WaitReason.code)
        .where(WaitReason.job_id == job.id)
        .order_by(col(WaitReason.id))
    )
    return life_spent(
        [At(at, state) for at, state in changes if state is not None],
        [At(*row) for row in reasons],
        submitted=job.submitted_seconds,
        finished=finished(job),
    )


def _jct_seconds(job: Job, away: Away) -> float:
    whole = finished(job) - job.submitted_seconds
    return max(whole - sum(end - begin for begin, end in away), 0.0)
