"""How many places a round has on each GPU: several only if its policy shares GPUs.

A policy that never shares would fill the second places as if they were GPUs. Jobs that share when
such a policy begins and may not be moved stay where they are (`place_beside_pairs`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Job, JobId
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.placeable import held_as_granted
from maat.scheduling.protocols import GpuSharing, Placer, Policy
from maat.scheduling.rounds import Decision, Placement, PlacementResult, RoundInput


def shares_gpus(policy: Policy) -> bool:
    """Return whether a policy may put several jobs on a GPU."""
    return getattr(policy, "gpu_sharing", GpuSharing.PLACES_AS_GPUS) is GpuSharing.CHOSEN


def cluster_for(policy: Policy, cluster: Cluster) -> Cluster:
    """Return the cluster with as many places on each GPU as the policy uses."""
    if cluster.jobs_per_gpu == 1 or shares_gpus(policy):
        return cluster
    return replace(cluster, jobs_per_gpu=1)


def with_pairs_that_stay(
    limits: Sequence[Limit], cluster: Cluster, jobs: Iterable[Job], pinned: Collection[JobId]
) -> tuple[Limit, ...]:
    """Return the limits with room in each capacity for GPUs that several pinned jobs hold.

    Without it their second places would count as GPUs that nobody else can have.
    """
    if cluster.jobs_per_gpu > 1:
        return tuple(limits)
    doubled = np.maximum(_pinned_holders(cluster, jobs, pinned) - 1, 0)
    if not doubled.any():
        return tuple(limits)
    more = np.bincount(cluster.gpu_type_of, weights=doubled, minlength=len(cluster.gpu_types))
    return tuple(
        replace(limit, places=limit.places + int(more[cluster.type_index[limit.gpu_type]]))
        if limit.kind is LimitKind.CAPACITY and limit.gpu_type is not None
        else limit
        for limit in limits
    )


def places_by_gpu(round_input: RoundInput) -> IntArray:
    """Return how many jobs may hold each GPU, shape (G,); pinned jobs stay together."""
    holders = _pinned_holders(round_input.cluster, round_input.jobs, round_input.pinned)
    places: IntArray = np.maximum(holders, round_input.cluster.jobs_per_gpu)
    return places


def place_beside_pairs(
    placer: Placer, decision: Decision, round_input: RoundInput
) -> PlacementResult:
    """Place a decision where jobs may share GPUs that have one place each.

    That is so in the first rounds of a policy that never shares. Pinned jobs keep what they share:
    for the placer those GPUs are out of service. Of others the first granted stays, as far as the
    placer knows, and the rest hold nothing.
    """
    held = _held_as_granted(decision, round_input)
    holders = Counter(gpu for gpus in held.values() for gpu in gpus)
    if round_input.cluster.jobs_per_gpu > 1 or max(holders.values(), default=0) < 2:
        return placer.place(decision, round_input)
    pairs = _pairs_that_stay(held, round_input.pinned)
    taken = {gpu for gpus in pairs.values() for gpu in gpus}
    homeless = _homeless(held, pairs, taken)
    beside = replace(
        round_input,
        cluster=_without(round_input.cluster, taken),
        jobs=tuple(
            replace(job, allocation=None) if job.id in homeless else job for job in round_input.jobs
        ),
        pinned={i: pin for i, pin in round_input.pinned.items() if i not in pairs},
    )
    others = {i: grant for i, grant in decision.grants.items() if i not in pairs}
    placed = placer.place(replace(decision, grants=others), beside)
    by_job = {**placed.placement.by_job, **pairs}
    order = [job_id for job_id in decision.grants if job_id in by_job]
    return replace(placed, placement=Placement.of({i: by_job[i] for i in order}))


def _held_as_granted(
    decision: Decision, round_input: RoundInput
) -> Mapping[JobId, tuple[int, ...]]:
    """Return the GPUs of jobs that hold what they were granted, pinned ones first."""
    first = [job_id for job_id in round_input.pinned if job_id in decision.grants]
    order = dict.fromkeys([*first, *decision.grants])
    found = {i: held_as_granted(round_input, i, decision.grants[i]) for i in order}
    return {job_id: gpus for job_id, gpus in found.items() if gpus is not None}


def _pairs_that_stay(
    held: Mapping[JobId, tuple[int, ...]], pinned: Collection[JobId]
) -> Mapping[JobId, tuple[int, ...]]:
    """Return the GPUs of pinned jobs that share one with another pinned job."""
    holders = Counter(gpu for job_id, gpus in held.items() if job_id in pinned for gpu in gpus)
    return {
        job_id: gpus
        for job_id, gpus in held.items()
        if job_id in pinned and any(holders[gpu] > 1 for gpu in gpus)
    }


def _homeless(
    held: Mapping[JobId, tuple[int, ...]], staying: Collection[JobId], taken: Collection[int]
) -> set[JobId]:
    """Return the jobs that hold a GPU of one before them, or one that is taken."""
    gone, gpus_taken = set(), set(taken)
    for job_id, gpus in held.items():
        if job_id not in staying:
            if gpus_taken & set(gpus):
                gone.add(job_id)
            else:
                gpus_taken |= set(gpus)
    return gone


def _pinned_holders(cluster: Cluster, jobs: Iterable[Job], pinned: Collection[JobId]) -> IntArray:
    """Return how many pinned jobs hold each GPU, shape (G,)."""
    held = [
        gpu
        for job in jobs
        if job.id in pinned and job.allocation is not None
        for gpu in job.allocation.gpus
    ]
    return np.bincount(np.array(held, dtype=np.int64), minlength=cluster.gpu_count)


def _without(cluster: Cluster, gpus: Collection[int]) -> Cluster:
    """Return the cluster with these GPUs out of service."""
    offsets = cluster.node_offsets.tolist()
    nodes = tuple(
        replace(
            node,
            drained=node.drained
            | {gpu - first for gpu in gpus if first <= gpu < first + node.gpu_count},
        )
        for node, first in zip(cluster.nodes, offsets, strict=False)
    )
    return replace(cluster, nodes=nodes)
