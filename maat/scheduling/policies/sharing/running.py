"""The jobs that keep their GPUs this round, and what they leave to newcomers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from maat.scheduling.job import Allocation, JobId
from maat.scheduling.policies.sharing.batches import Batches
from maat.scheduling.policies.sharing.gpu_counts import GpuCounts, Holder
from maat.scheduling.policies.sharing.gpu_holders import GpuHolders
from maat.scheduling.policies.sharing.limit_places import LimitPlaces
from maat.scheduling.rounds import Grant, RoundInput

Staying = Mapping[JobId, Allocation]


def staying_jobs(
    round_input: RoundInput,
    batches: Batches,
    places: LimitPlaces,
    *,
    leaving: Collection[JobId] = (),
) -> Staying:
    """Return the allocations of jobs that keep their GPUs; take their places.

    The places of pinned jobs are taken already.

    A job keeps its GPUs if all are in service and it is pinned, or if they are what it requests,
    the limits leave places, and it is not among those `leaving`.
    """
    staying: dict[JobId, Allocation] = {}
    for row, job in enumerate(round_input.jobs):
        held = job.allocation
        if held is None or not round_input.cluster.gpu_available[list(held.gpus)].all():
            continue
        if job.id in round_input.pinned:
            staying[job.id] = held
            continue
        t = round_input.cluster.type_index[held.gpu_type]
        requested = held.gpu_count == job.spec.requested_gpus and t in batches.types(row)
        requested = requested and job.id not in leaving
        if requested and places.fit(row, t):
            places.take(row, t)
            staying[job.id] = held
    return staying


def counts_beside(round_input: RoundInput, staying: Staying) -> GpuCounts:
    """Return the idle GPUs by type, and those that the staying jobs hold alone.

    The GPUs of pinned jobs that have to move are not idle either.
    """
    cluster = round_input.cluster
    jobs_on = Counter(gpu for held in staying.values() for gpu in held.gpus)
    idle = [int(count) for count in cluster.usable_gpus]
    for gpu in jobs_on:
        idle[int(cluster.gpu_type_of[gpu])] -= 1
    for job_id, pin in round_input.pinned.items():
        if job_id not in staying:
            idle[cluster.type_index[pin.gpu_type]] -= pin.gpu_count
    counts = GpuCounts(idle, shareable=cluster.jobs_per_gpu > 1)
    for job_id, held in sorted(staying.items(), key=lambda item: item[1].gpus[0]):
        alone = sum(jobs_on[gpu] == 1 for gpu in held.gpus)
        t = cluster.type_index[held.gpu_type]
        counts.keep(Holder(job_id, t, held.gpu_count, alone))
    return counts


def holders_beside(
    round_input: RoundInput, staying: Staying
) -> tuple[GpuHolders, dict[JobId, Grant]]:
    """Return the holders of GPUs, and grants for pinned jobs that must move."""
    holders = GpuHolders(
        round_input.cluster, {job_id: held.gpus for job_id, held in staying.items()}
    )
    moved = {}
    for job_id, pin in round_input.pinned.items():
        gpus = None if job_id in staying else holders.packed(pin.gpu_type, pin.gpu_count)
        if gpus is not None:
            holders.take(job_id, gpus)
            moved[job_id] = replace(pin, gpus=gpus)
    return holders, moved
