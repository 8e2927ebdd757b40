"""What a round leaves free by GPU type, and of that what it cannot use. Pure.

The figures stand in the round's row, so that what fragmentation and reservations cost can be summed
without its record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import Job
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import ClusterState


def unused_by_type(
    result: RoundResult, observed: ClusterState, free: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """Return the free GPUs of each type that the round could not give away.

    `free`: by type. `fragmented`: GPUs that lie free while jobs that could use them wait for lack
    of a fitting shape, at most as many as these jobs ask for. `reserved`: GPUs that lie free and
    are reserved for a holder who does not use them. What is zero is left out.
    """
    fragmented, reserved = _fragmented(result, free), _reserved(result, observed)
    found: dict[str, dict[str, int]] = {}
    for name, count in free.items():
        both = {"fragmented": min(fragmented[name], count), "reserved": min(reserved[name], count)}
        found[name] = {kind: gpus for kind, gpus in both.items() if gpus > 0}
    return found


def _fragmented(result: RoundResult, free: Mapping[str, int]) -> Counter[str]:
    asked: Counter[str] = Counter()
    jobs = result.round_input.job_by_id
    for job_id, why in result.reasons.items():
        if why.primary is ReasonCode.FRAGMENTED and job_id in jobs:
            for name, count in _asked(jobs[job_id], why, result.round_input.limits, free):
                asked[name] += count
    return asked


def _asked(
    job: Job, why: Reasons, limits: tuple[Limit, ...], free: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """Yield the type that the job waits for and how many GPUs: the round's grant, else its own."""
    count = why.evidence.get("gpu_count") or job.spec.gpu_count or job.spec.min_gpus
    name = why.evidence.get("gpu_type") or next(
        (one.gpu_type for one in limits if one.name == why.evidence.get("binding_limit")), None
    )
    if name is None:
        name = next((kind for kind, left in free.items() if left and job.spec.may_use(kind)), None)
    if name is not None:
        yield str(name), int(count)


def _reserved(result: RoundResult, observed: ClusterState) -> Counter[str]:
    """Return how many GPUs holders have reserved and do not use, by type."""
    cluster, unused = result.round_input.cluster, Counter[str]()
    rows = [
        limit
        for limit in result.round_input.limits
        if limit.kind is LimitKind.RESERVATION
        and len(limit.besides_tenants) + len(limit.besides_jobs) == 1
    ]
    if not rows:
        return unused
    capacity = dict(zip(cluster.type_names, cluster.capacity.tolist(), strict=True))
    used = _used_by_holder(result, observed)
    for limit in rows:
        if limit.gpu_type is None:
            continue
        gpus = (capacity[limit.gpu_type] - limit.places) // cluster.jobs_per_gpu
        holder = (limit.besides_tenants + limit.besides_jobs)[0]
        unused[limit.gpu_type] += max(gpus - used[limit.gpu_type, holder], 0)
    return unused


def _used_by_holder(result: RoundResult, observed: ClusterState) -> Counter[tuple[str, str]]:
    """Count the GPUs of each type that each tenant and each job holds after the round."""
    cluster, jobs = observed.cluster, result.round_input.job_by_id
    used: Counter[tuple[str, str]] = Counter()
    for job_id, gpus in result.placement.placement.by_job.items():
        kinds = np.bincount(cluster.gpu_type_of[list(gpus)], minlength=len(cluster.gpu_types))
        for name, count in zip(cluster.type_names, kinds.tolist(), strict=True):
            used[name, job_id] += count
            if job_id in jobs:
                used[name, jobs[job_id].spec.tenant] += count
    return used
