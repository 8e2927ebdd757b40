"""What is believed of a cluster's GPUs, of pairs and of jobs: shown and reset. Commits nothing."""

from __future__ import annotations

from collections import defaultdict

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.accounts.identity import Principal
from backend.attempts.comparisons import MeasuredScore, by_attempt, measured_scores
from backend.attempts.models import (
    GpuScore,
    GradientSample,
    JobFit,
    JobMemory,
    SharingSample,
    StepSample,
)
from backend.audit.changes import Change, asker, record
from backend.clocktime import shown_at
from backend.clusters.models import Cluster, Node
from backend.clusters.repository import get_cluster, get_node, nodes_of
from backend.evidence.reporters import reporters
from backend.jobs.repository import get_job
from backend.reservations.repository import tenant_names
from maat.api.evidence import GpuScoreOut
from maat.scheduling.evidence import compared, relative_scores


def gpu_scores(session: Session, principal: Principal, cluster_id: str) -> list[GpuScoreOut]:
    """Return what is believed of every GPU that jobs compared with others, in order of GPUs."""
    cluster = get_cluster(session, cluster_id)
    first, types = dict[str, int](), list[str]()
    for node in nodes_of(session, cluster.id):
        first[node.name] = len(types)
        types += [node.gpu_type] * node.gpu_count
    measured = measured_scores(session, cluster)
    of_gpu: dict[int, list[MeasuredScore]] = defaultdict(list)
    for each in measured:
        of_gpu[first[each.node] + each.index].append(each)
    pooled = compared(by_attempt(measured, first))
    scores = relative_scores(pooled, types)
    names = tenant_names(session, [each.tenant for each in measured])
    return [
        GpuScoreOut(
            node=rows[0].node,
            gpu_index=rows[0].index,
            gpu_type=types[gpu],
            score=scores[gpu],
            weight=pooled[gpu].weight,
            attempts=len(rows),
            reported_by=reporters(principal, [each.tenant for each in rows], names),
            updated_at=shown_at(cluster, max(each.updated_seconds for each in rows)),
        )
        for gpu, rows in sorted(of_gpu.items())
    ]


def reset_gpu_scores(session: Session, cluster_id: str, node_id: str | None) -> None:
    """Forget what jobs said of the GPUs of a cluster, or of one node. Raises NotFound."""
    cluster = get_cluster(session, cluster_id)
    node = None if node_id is None else get_node(session, cluster.id, node_id)
    of_nodes = sa.select(col(Node.id)).where(
        col(Node.cluster_id) == cluster.id if node is None else col(Node.id) == node.id
    )
    gone = _delete(session, sa.delete(GpuScore).where(col(GpuScore.node_id).in_(of_nodes)))
    _record(session, cluster, "reset GPU scores", target=(node or cluster).id, gone=gone)


def reset_slowdowns(session: Session, cluster_id: str) -> None:
    """Forget what jobs on one GPU of a cluster were measured to cost each other."""
    cluster = get_cluster(session, cluster_id)
    of_cluster = col(SharingSample.cluster_id) == cluster.id
    gone = _delete(session, sa.delete(SharingSample).where(of_cluster))
    _record(session, cluster, "reset slowdowns", target=cluster.id, gone=gone)


def reset_belief(session: Session, principal: Principal, job_id: str) -> None:
    """Forget what was measured of a job: steps, models fitted to them, gradients and memory."""
    job = get_job(session, principal, job_id)
    gone = sum(
        _delete(session, sa.delete(table).where(col(table.job_id) == job.id))
        for table in (StepSample, JobFit, GradientSample, JobMemory)
    )
    change = Change(asker(), "reset belief", job.id, {"rows": gone}, {"rows": 0}, job.tenant_id)
    record(session, change)


def _record(session: Session, cluster: Cluster, action: str, *, target: str, gone: int) -> None:
    before = {"cluster": cluster.name, "rows": gone}
    record(session, Change(asker(), action, target, before, {**before, "rows": 0}))


def _delete(session: Session, statement: sa.Delete) -> int:
    """Return how many rows went."""
    return int(session.connection().execute(statement).rowcount)
