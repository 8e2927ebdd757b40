"""The places that a round's limits leave, and the reasons of jobs that lack them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import Job
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.rounds import RoundInput


def free_places(round_input: RoundInput) -> IntArray:
    """Return the places that each limit has left beside pinned grants, shape (R,).

    They are never negative.
    """
    free = np.array([limit.places for limit in round_input.limits], dtype=np.int64)
    for job_id, pin in round_input.pinned.items():
        spec = round_input.job_by_id[job_id].spec
        for r in round_input.limit_index.of(spec, pin.gpu_type, pin.gpu_count):
            free[r] -= round_input.limits[r].places_of(pin.gpu_count)
    return np.maximum(free, 0)


def waiting_for(limit: Limit | None) -> ReasonCode:
    """Return the reason of a job that this limit holds back."""
    match None if limit is None else limit.kind:
        case LimitKind.QUOTA:
            return ReasonCode.WAITING_QUOTA
        case LimitKind.RESERVATION:
            return ReasonCode.WAITING_RESERVATION
        case LimitKind.TOGETHER:
            return ReasonCode.FRAGMENTED
    return ReasonCode.WAITING_CAPACITY


def exceeds(limits: Sequence[Limit]) -> Reasons:
    """Return why a job never runs that needs more places than these limits have.

    It would not run on an idle cluster either. A reservation is different: it ends.
    """
    in_the_way = next(
        (limit for limit in limits if limit.kind is LimitKind.TOGETHER and limit.besides_jobs), None
    )
    if in_the_way is not None:
        return Reasons(
            ReasonCode.FRAGMENTED, {"binding_limit": in_the_way.name, "places": in_the_way.places}
        )
    if all(limit.kind is LimitKind.RESERVATION for limit in limits):
        return Reasons(
            ReasonCode.WAITING_RESERVATION,
            {"binding_limit": limits[0].name, "places": limits[0].places},
        )
    quota = next((limit for limit in limits if limit.kind is LimitKind.QUOTA), None)
    shape = next(
        (limit for limit in limits if limit.kind in (LimitKind.SHAPE, LimitKind.TOGETHER)), None
    )
    if quota is not None:
        return Reasons(
            ReasonCode.EXCEEDS_QUOTA_LIMIT, {"binding_limit": quota.name, "places": quota.places}
        )
    if shape is not None:
        return Reasons(
            ReasonCode.NO_CONFIGURATION, {"binding_limit": shape.name, "places": shape.places}
        )
    return Reasons(
        ReasonCode.EXCEEDS_CLUSTER, {"binding_limit": limits[0].name, "places": limits[0].places}
    )


def _without_type(job: Job, names: Sequence[str]) -> Reasons:
    """Return why no type of the cluster is for a job: it is bound to others, or cannot run."""
    evidence = {"cluster_gpu_types": ", ".join(names)}
    asked = job.spec.gpu_types
    if asked and not set(asked) & set(names):
        evidence["asked_gpu_types"] = ", ".join(asked)
    return Reasons(ReasonCode.NO_COMPATIBLE_GPU_TYPE, evidence)


def never_fits(job: Job, round_input: RoundInput, *, needed: int) -> Reasons:
    """Return why a job that needs so many GPUs of one type has no configuration."""
    cluster = round_input.cluster
    usable = [name for name in cluster.type_names if job.spec.may_use(name)]
    if not usable:
        return _without_type(job, cluster.type_names)
    if job.spec.promised_seconds is not None:
        return Reasons(
            ReasonCode.NO_COMPATIBLE_GPU_TYPE,
            {"promised_seconds": job.spec.promised_seconds, "needed_gpus": needed},
        )
    most = max(int(cluster.usable_gpus[cluster.type_index[name]]) for name in usable)
    if needed > most:
        return Reasons(
            ReasonCode.EXCEEDS_CLUSTER, {"needed_gpus": needed, "largest_type_gpus": most}
        )
    least = min(job.spec.memory[name].smallest_per_gpu for name in usable)
    evidence = {
        "needed_gpus": needed,
        "largest_type_gpus": most,
        "batch_size": job.spec.batch_size,
        "smallest_per_gpu_batch_size": least,
    }
    return Reasons(ReasonCode.NO_CONFIGURATION, evidence)
