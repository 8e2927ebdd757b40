"""Quotas: what each tenant may hold of a cluster, by GPU type.

A quota says nothing of jobs. rounds.py turns quotas into limits of one round.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError, ClusterTooSmall, ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantQuota:
    """What one tenant may hold of a cluster. Counts are places: one job on one GPU.

    Attributes:
        weight: Above zero; its share of what several tenants want.
        guaranteed: By GPU type. Idle ones are lent to others, and come back within one round.
        ceiling: By GPU type. A type that is not named has no ceiling.

    Raises ParameterError, which names the field, on numbers that make no sense.
    """

    tenant: str
    weight: float = 1.0
    guaranteed: Mapping[str, int] = field(default_factory=dict)
    ceiling: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.weight < math.inf:
            raise ParameterError(
                "is not a finite number above zero",
                field="weight",
                value=self.weight,
                remedy="Give a number above 0, such as 1.",
            )
        for name in ("guaranteed", "ceiling"):
            for gpu_type, places in getattr(self, name).items():
                if places < 0:
                    raise ParameterError(
                        "must be at least 0",
                        field=f"{name}.{gpu_type}",
                        value=places,
                        remedy="Give a whole number from 0 up.",
                    )
        for gpu_type, places in self.guaranteed.items():
            if places > self.ceiling.get(gpu_type, places):
                raise ParameterError(
                    f"is above the ceiling of {self.ceiling[gpu_type]}",
                    field=f"guaranteed.{gpu_type}",
                    value=places,
                    remedy="Guarantee no more than the ceiling, or raise the ceiling.",
                )


def check_quotas(quotas: Sequence[TenantQuota], cluster: Cluster) -> None:
    """Check quotas against a cluster.

    Raises:
        ClusterError: One is for a GPU type that the cluster lacks.
        ParameterError: A tenant has two, or more of a type is guaranteed than there is.
    """
    tenants = [quota.tenant for quota in quotas]
    for tenant, times in Counter(tenants).items():
        if times > 1:
            raise ParameterError(
                "has more than one quota",
                field="quotas",
                value=tenant,
                remedy="Name all GPU types of a tenant in one quota.",
            )
    for quota in quotas:
        for name in {*quota.guaranteed, *quota.ceiling} - {*cluster.type_index}:
            raise ClusterError(
                "is no GPU type of this cluster",
                field="quotas.gpu_type",
                value=name,
                remedy=f"Use one of: {', '.join(cluster.type_names)}.",
            )
    for name in cluster.type_names:
        most = sum(node.gpu_count for node in cluster.nodes_of(name)) * cluster.jobs_per_gpu
        together = sum(quota.guaranteed.get(name, 0) for quota in quotas)
        if together > most:
            raise ClusterTooSmall(
                f"of {name} are guaranteed together, of which there are {most}",
                field="quotas.guaranteed",
                value=together,
                remedy=f"Guarantee at most {most}.",
            )
