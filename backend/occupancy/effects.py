"""What taking GPUs out of service means for the jobs that hold them. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.attempts.job_restarts import restart_of
from backend.clusters.models import Cluster, Node
from backend.clusters.repository import get_cluster, get_node, nodes_of
from backend.clusters.topology import first_gpus
from backend.jobs.models import Job
from backend.occupancy.repository import jobs_on
from backend.occupancy.service import check_removable, wanted_node
from backend.sight import OTHER_JOB, Sight, sight_of
from maat.api.clusters import MovedJobOut, NodeChanges, NodeEffectOut


def effect_of_change(
    session: Session, principal: Principal, cluster_id: str, node_id: str, changes: NodeChanges
) -> NodeEffectOut:
    """Check a change of a node as the change does, and say what it means for jobs."""
    cluster, node = _found(session, cluster_id, node_id)
    wanted = wanted_node(session, cluster, node, changes)
    out = {*wanted.drained, *range(wanted.gpu_count, node.gpu_count)}
    return _effect(session, principal, cluster, node, out)


def effect_of_drain(
    session: Session, principal: Principal, cluster_id: str, node_id: str
) -> NodeEffectOut:
    cluster, node = _found(session, cluster_id, node_id)
    return _effect(session, principal, cluster, node, range(node.gpu_count))


def effect_of_removal(
    session: Session, principal: Principal, cluster_id: str, node_id: str
) -> NodeEffectOut:
    """Say which jobs must leave a node before it can be removed.

    Raises Conflict for a node that cannot be removed at all.
    """
    cluster, node = _found(session, cluster_id, node_id)
    check_removable(session, cluster, node)
    return _effect(session, principal, cluster, node, range(node.gpu_count))


def _found(session: Session, cluster_id: str, node_id: str) -> tuple[Cluster, Node]:
    cluster = get_cluster(session, cluster_id)
    return cluster, get_node(session, cluster.id, node_id)


def _effect(
    session: Session, principal: Principal, cluster: Cluster, node: Node, out: Collection[int]
) -> NodeEffectOut:
    nodes = nodes_of(session, cluster.id)
    first = dict(zip((one.id for one in nodes), first_gpus(nodes), strict=True))[node.id]
    numbers = {first + index for index in out}
    held = jobs_on(session, cluster.id, numbers)
    sight = sight_of(session, principal, [job.id for job, _ in held])
    jobs = [
        _moved(job, tenant, sight, numbers, seconds=restart_of(session, cluster, job)[0])
        for job, tenant in held
    ]
    return NodeEffectOut(
        dry_run=True,
        cluster_id=cluster.id,
        node=node.name,
        gpus=sorted(out),
        jobs=jobs,
        held_up_by=sum(not job["may_move"] for job in jobs),
        restart_gpu_seconds=sum(
            job["restart_seconds"] * job["gpu_count"] for job in jobs if job["may_move"]
        ),
        sentence=_sentence(node, jobs),
    )


def _moved(
    job: Job, tenant: str, sight: Sight, numbers: Collection[int], *, seconds: float
) -> MovedJobOut:
    seen, gpus = sight.may_see(job.id), job.gpus or []
    return MovedJobOut(
        job_id=sight.job(job.id),
        job_name=job.name if seen else OTHER_JOB,
        tenant=tenant if seen else None,
        state=job.state,
        gpu_type=job.gpu_type or "",
        gpu_count=len(gpus),
        gpus_here=len(set(gpus) & set(numbers)),
        may_move=job.preemptible,
        restart_seconds=seconds,
    )


def _sentence(node: Node, jobs: Sequence[MovedJobOut]) -> str:
    moved = [job for job in jobs if job["may_move"]]
    stay = len(jobs) - len(moved)
    if not jobs:
        return f"No job holds these GPUs of {node.name}: nothing moves."
    parts = []
    if moved:
        gpus = sum(job["gpus_here"] for job in moved)
        parts.append(
            f"The next round takes {_count(gpus, 'GPU')} of {node.name} from "
            f"{_count(len(moved), 'job')}: each is moved and restarted, or waits."
        )
    if stay:
        holds = "may not be preempted and keeps its GPUs until it ends"
        hold = "may not be preempted and keep their GPUs until they end"
        parts.append(f"{_count(stay, 'job')} {holds if stay == 1 else hold}.")
    return " ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
