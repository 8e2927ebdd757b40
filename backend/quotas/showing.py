"""Quotas as the API shows them, each with what is in use of it now. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant
from backend.answers import answer_of
from backend.clusters.models import Cluster
from backend.clusters.repository import nodes_of
from backend.clusters.topology import capacity_by_type
from backend.occupancy.repository import held_by_tenant
from backend.quotas.models import GpuQuota
from backend.quotas.repository import guaranteed_by_type
from maat.api.quotas import QuotaOut, QuotaTypeOut


@dataclass(frozen=True)
class ClusterUse:
    """GPUs of a cluster by type: all, those in service, those held by tenant id and type."""

    gpus: Mapping[str, int]
    in_service: Mapping[str, int]
    held: Mapping[tuple[str, str], int]

    @cached_property
    def in_use(self) -> Mapping[str, int]:
        """GPUs that any tenant holds, by type."""
        found = dict.fromkeys(self.gpus, 0)
        for (_, gpu_type), count in self.held.items():
            found[gpu_type] = found.get(gpu_type, 0) + count
        return found

    def free(self, gpu_type: str) -> int:
        """Return the GPUs in service that nobody holds."""
        return max(self.in_service.get(gpu_type, 0) - self.in_use.get(gpu_type, 0), 0)


def use_of(session: Session, cluster: Cluster) -> ClusterUse:
    nodes = nodes_of(session, cluster.id)
    return ClusterUse(
        capacity_by_type(nodes, usable_only=False),
        capacity_by_type(nodes, usable_only=True),
        held_by_tenant(session, cluster.id),
    )


def show_quotas(session: Session, use: ClusterUse, rows: Sequence[GpuQuota]) -> list[QuotaOut]:
    """Show quotas of the cluster whose use is given."""
    ids = {row.tenant_id for row in rows}
    tenants = {one.id: one for one in session.exec(select(Tenant).where(col(Tenant.id).in_(ids)))}
    return [_show(row, tenants[row.tenant_id], use) for row in rows]


def show_types(
    session: Session, principal: Principal, cluster: Cluster, use: ClusterUse
) -> list[QuotaTypeOut]:
    """Show every GPU type of the cluster.

    What tenants are guaranteed together is for those who may see all of them.
    """
    whole = principal.sees_all_tenants
    guaranteed = guaranteed_by_type(session, cluster.id) if whole else {}
    return [
        QuotaTypeOut(
            gpu_type=name,
            gpus=count,
            in_service=use.in_service[name],
            in_use=use.in_use[name],
            guaranteed=guaranteed.get(name, 0) if whole else None,
        )
        for name, count in use.gpus.items()
    ]


def _show(row: GpuQuota, tenant: Tenant, use: ClusterUse) -> QuotaOut:
    in_use = use.held.get((row.tenant_id, row.gpu_type), 0)
    idle = max(row.guaranteed - in_use, 0)
    return answer_of(
        QuotaOut,
        row,
        tenant=tenant.name,
        weight=tenant.weight,
        in_use=in_use,
        borrowed=max(in_use - row.guaranteed, 0),
        lent=max(idle - use.free(row.gpu_type), 0),
    )
