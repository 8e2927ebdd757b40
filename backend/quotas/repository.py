"""Reads quotas, as rows and as the engine takes them.

Commits nothing. The worker calls it too.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.accounts.models import Tenant
from backend.quotas.models import GpuQuota
from maat.scheduling.quotas import TenantQuota

DEFAULT_WEIGHT = 1.0

_CEILINGS = sa.select(col(GpuQuota.gpu_type), col(GpuQuota.ceiling)).where(
    col(GpuQuota.cluster_id) == sa.bindparam("cluster_id"),
    col(GpuQuota.tenant_id) == sa.bindparam("tenant_id"),
)


def engine_quotas(session: Session, cluster_id: str) -> tuple[TenantQuota, ...]:
    """Return the quotas of a cluster as a round takes them, in one statement.

    Of tenants that have a quota there or a weight other than 1. Tenants go by name, as in the
    engine's jobs.
    """
    here = sa.and_(
        col(GpuQuota.tenant_id) == col(Tenant.id), col(GpuQuota.cluster_id) == cluster_id
    )
    statement = (
        sa.select(
            col(Tenant.name),
            col(Tenant.weight),
            col(GpuQuota.gpu_type),
            col(GpuQuota.guaranteed),
            col(GpuQuota.ceiling),
        )
        .outerjoin(GpuQuota, here)
        .where(col(GpuQuota.gpu_type).is_not(None) | (col(Tenant.weight) != DEFAULT_WEIGHT))
        .order_by(col(Tenant.name), col(GpuQuota.gpu_type))
    )
    tenants: dict[str, float] = {}
    guaranteed: dict[str, dict[str, int]] = {}
    ceilings: dict[str, dict[str, int]] = {}
    for name, weight, gpu_type, least, most in session.execute(statement):
        tenants[name] = weight
        if gpu_type is not None and least:
            guaranteed.setdefault(name, {})[gpu_type] = least
        if gpu_type is not None and most is not None:
            ceilings.setdefault(name, {})[gpu_type] = most
    return tuple(
        TenantQuota(
            tenant=name,
            weight=weight,
            guaranteed=guaranteed.get(name, {}),
            ceiling=ceilings.get(name, {}),
        )
        for name, weight in tenants.items()
    )


def tenant_weights(session: Session) -> dict[str, float]:
    """Return the weights of tenants by id, but for those of weight 1."""
    other = select(Tenant.id, Tenant.weight).where(col(Tenant.weight) != DEFAULT_WEIGHT)
    return dict(session.exec(other).all())


def ceilings_of(session: Session, cluster_id: str, tenant_id: str) -> dict[str, int]:
    """Return the ceilings of one tenant by GPU type; a type without one is absent."""
    whose = {"cluster_id": cluster_id, "tenant_id": tenant_id}
    found = session.connection().execute(_CEILINGS, whose)
    return {name: most for name, most in found if most is not None}


def guarantees_of_others(session: Session, quota: GpuQuota) -> Sequence[tuple[str, int]]:
    """Return what other tenants are guaranteed of the same GPUs, by name, the most first."""
    statement = (
        select(Tenant.name, GpuQuota.guaranteed)
        .join(Tenant, col(Tenant.id) == col(GpuQuota.tenant_id))
        .where(
            GpuQuota.cluster_id == quota.cluster_id,
            GpuQuota.gpu_type == quota.gpu_type,
            GpuQuota.tenant_id != quota.tenant_id,
            col(GpuQuota.guaranteed) > 0,
        )
        .order_by(col(GpuQuota.guaranteed).desc(), col(Tenant.name))
    )
    return session.exec(statement).all()


def guaranteed_by_type(session: Session, cluster_id: str) -> dict[str, int]:
    """Return what all tenants together are guaranteed, by GPU type."""
    statement = (
        select(GpuQuota.gpu_type, sa.func.sum(GpuQuota.guaranteed))
        .where(GpuQuota.cluster_id == cluster_id)
        .group_by(col(GpuQuota.gpu_type))
    )
    return {name: int(total) for name, total in session.exec(statement)}
