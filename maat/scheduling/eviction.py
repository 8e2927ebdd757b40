"""Which jobs a round evicted, and which of them only the placer moved."""

from __future__ import annotations

from collections import Counter

from maat.scheduling.job import Allocation, Job, JobId
from maat.scheduling.round_result import RoundResult


def evicted_jobs(result: RoundResult) -> tuple[JobId, ...]:
    """Return the jobs that lost GPUs to fragmentation alone (Sia 3.1, rule c).

    Such a job held GPUs that are all still in service and was granted GPUs. Either the grant equals
    what it held and the placer put it on other GPUs, or the placer found no place for it. A placer
    that places every job from scratch each round evicts each job that it moves.
    """
    return tuple(
        job.id
        for job in result.round_input.jobs
        if job.allocation is not None and _is_evicted(result, job, job.allocation)
    )


def moved_by_placer(result: RoundResult) -> tuple[JobId, ...]:
    """Return the evicted jobs that only the placer moved, not the policy."""
    evicted = (result.round_input.job_by_id[job_id] for job_id in evicted_jobs(result))
    return tuple(
        job.id
        for job in evicted
        if job.id in result.placement.placement.by_job and not _policy_asked_to_move(result, job)
    )


def _is_evicted(result: RoundResult, job: Job, held: Allocation) -> bool:
    grant = result.decision.grants.get(job.id)
    placed = result.placement.placement.by_job.get(job.id)
    if grant is None or placed == held.gpus:
        return False
    same_grant = (grant.gpu_type, grant.gpu_count) == (held.gpu_type, held.gpu_count)
    return (placed is None or same_grant) and bool(
        result.round_input.cluster.gpu_available[list(held.gpus)].all()
    )


def _policy_asked_to_move(result: RoundResult, job: Job) -> bool:
    """Return whether the grant names partners, or GPUs or nodes not held."""
    grant, cluster = result.decision.grants[job.id], result.round_input.cluster
    held = () if job.allocation is None else job.allocation.gpus
    by_node = Counter(cluster.nodes[node].id for node in cluster.gpu_node[list(held)].tolist())
    other_nodes = grant.gpus_by_node is not None and by_node != grant.gpus_by_node
    return other_nodes or grant.gpus not in (None, held) or bool(grant.share_with)
