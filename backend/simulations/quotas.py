"""Quotas of a simulation: those of its request, or of the cluster whose history it plays again."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

from sqlmodel import Session

from backend.quotas.repository import engine_quotas
from backend.simulations.conditions import cluster_of
from maat.api.quotas import TenantQuotaBody
from maat.api.simulations import ConditionsBody
from maat.scheduling.cluster import Cluster
from maat.scheduling.quotas import TenantQuota
from maat.vocabulary import LEAST_WEIGHT

Conditions = TypeVar("Conditions", bound=ConditionsBody)


def with_quotas_of(session: Session, request: Conditions, cluster_id: str) -> Conditions:
    """Return a request of a cluster's history with the quotas of now, if it gives none itself."""
    if request.quotas is not None:
        return request
    found = _as_far_as_there(engine_quotas(session, cluster_id), cluster_of(request))
    return request.model_copy(update={"quotas": found}) if found else request


def _as_far_as_there(quotas: tuple[TenantQuota, ...], cluster: Cluster) -> list[TenantQuotaBody]:
    """Return the quotas on types of the simulated cluster.

    A type of which more is guaranteed than it has keeps its ceilings alone.
    """
    there = {
        name: cluster.jobs_per_gpu * sum(node.gpu_count for node in cluster.nodes_of(name))
        for name in cluster.type_names
    }
    together: Counter[str] = Counter()
    for quota in quotas:
        together.update(quota.guaranteed)
    return [
        TenantQuotaBody(
            tenant=quota.tenant,
            weight=max(quota.weight, LEAST_WEIGHT),  # rows may be older than this bound
            guaranteed={
                name: count
                for name, count in quota.guaranteed.items()
                if together[name] <= there.get(name, 0)
            },
            ceiling={name: count for name, count in quota.ceiling.items() if name in there},
        )
        for quota in quotas
    ]
