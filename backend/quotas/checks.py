"""What a quota must keep to: what the cluster has, and what is in use. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlmodel import Session

from backend.accounts.refusals import invalid
from backend.clusters.repository import nodes_of
from backend.clusters.topology import capacity_by_type
from backend.occupancy.repository import HoldingJob, jobs_of_tenant
from backend.problems import Conflict, FieldError
from backend.quotas.models import GpuQuota
from backend.quotas.repository import guarantees_of_others

_MOST_NAMED = 10


def check_quota(session: Session, quota: GpuQuota, *, accept_preemption: bool) -> None:
    """Refuse a quota that cannot be kept.

    Raises Invalid naming the field, Conflict if jobs would lose GPUs and that is not accepted.
    """
    capacity = capacity_by_type(nodes_of(session, quota.cluster_id), usable_only=False)
    _check_type(quota, capacity)
    _check_bounds(quota)
    _check_sum(session, quota, capacity[quota.gpu_type])
    if not accept_preemption and quota.ceiling is not None:
        _check_use(session, quota, quota.ceiling)


def _check_type(quota: GpuQuota, capacity: Mapping[str, int]) -> None:
    if quota.gpu_type not in capacity:
        there = ", ".join(f"{name} ({count} GPUs)" for name, count in capacity.items())
        raise invalid(
            "/gpu_type",
            "no_such_gpu_type",
            "The cluster has no GPUs of this type.",
            f"Use one of: {there or 'none yet'}.",
            quota.gpu_type,
        )


def _check_bounds(quota: GpuQuota) -> None:
    if quota.ceiling is not None and quota.ceiling < quota.guaranteed:
        raise invalid(
            "/ceiling",
            "below_guaranteed",
            f"The ceiling is below the {quota.guaranteed} guaranteed GPUs.",
            f"Give at least {quota.guaranteed}, or guarantee fewer.",
            quota.ceiling,
        )


def _check_sum(session: Session, quota: GpuQuota, there: int) -> None:
    """Refuse to guarantee more than the cluster has. `there`: with drained GPUs."""
    others = guarantees_of_others(session, quota)
    taken = sum(count for _, count in others)
    left = max(there - taken, 0)
    if quota.guaranteed <= left:
        return
    message, remedy = f"The cluster has {there} {quota.gpu_type}", f"Guarantee at most {left}"
    if others:
        told = _listed([f"{name} {count}" for name, count in others])
        message += f", of which {taken} are guaranteed to others: {told}"
        remedy += ", or lower what others are guaranteed"
    raise invalid("/guaranteed", "exceeds_cluster", f"{message}.", f"{remedy}.", quota.guaranteed)


def _check_use(session: Session, quota: GpuQuota, ceiling: int) -> None:
    """Refuse a ceiling below what running jobs hold: they would lose GPUs."""
    held = jobs_of_tenant(
        session, quota.cluster_id, tenant_id=quota.tenant_id, gpu_type=quota.gpu_type
    )
    in_use = sum(job.gpu_count for job in held)
    if in_use <= ceiling:
        return
    told = _listed([_named(job) for job in held], between="; ")
    message = f"The tenant's jobs hold {in_use} {quota.gpu_type} now: {told}."
    remedy = (
        f"Give at least {in_use}, wait until they end, or accept preemption (accept_preemption "
        "true, --accept-preemption): the next round then takes GPUs from those that may be "
        "preempted."
    )
    error = FieldError("/ceiling", "below_use", message, remedy, ceiling)
    raise Conflict(f"{message} {remedy}", errors=[error])


def _named(job: HoldingJob) -> str:
    kept = "" if job.preemptible else ", not preemptible"
    return f"{job.name} ({job.job_id}) {job.gpu_count}{kept}"


def _listed(parts: Sequence[str], *, between: str = ", ") -> str:
    more = len(parts) - _MOST_NAMED
    return between.join(parts[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
