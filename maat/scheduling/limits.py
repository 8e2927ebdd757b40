"""Limits: linear rows over GPU counts that every decision keeps.

Capacity, quotas and reservations are all rows, with one price each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from maat.scheduling.arrays import BoolArray, IntArray
from maat.scheduling.cluster import Cluster
from maat.scheduling.configuration import virtual_node_sizes
from maat.scheduling.job import Job, JobId, JobSpec

CEILING = "ceiling"
"""How the name of a tenant's row begins that no further GPU of the cluster would widen."""


class LimitKind(StrEnum):
    """What sets a limit. QUOTA: what a tenant may hold, or jobs of a lower priority class."""

    CAPACITY = "capacity"
    SHAPE = "shape"
    TOGETHER = "together"
    QUOTA = "quota"
    RESERVATION = "reservation"


@dataclass(frozen=True, slots=True)
class Limit:
    """The grants that match may hold at most `places` together.

    A grant matches by GPU type, tenant, a priority below `below_priority` and at least
    `smallest_count` GPUs; None matches everything. Grants to the jobs and tenants in `besides_...`
    do not count. A place is one job on one GPU.

    `places_by_count`: the places that a grant of n GPUs takes, at index n, if it is not n; a
    larger n takes the last entry.
    """

    name: str
    kind: LimitKind
    places: int
    gpu_type: str | None = None
    tenant: str | None = None
    smallest_count: int = 1
    besides_tenants: tuple[str, ...] = ()
    besides_jobs: tuple[JobId, ...] = ()
    places_by_count: tuple[int, ...] = ()
    below_priority: int | None = None

    def counts(self, spec: JobSpec, gpu_type: str, gpu_count: int) -> bool:
        """Return whether a grant to this job falls under the limit."""
        return (
            (self.gpu_type is None or self.gpu_type == gpu_type)
            and (self.tenant is None or self.tenant == spec.tenant)
            and gpu_count >= self.smallest_count
            and (self.below_priority is None or spec.priority < self.below_priority)
            and spec.tenant not in self.besides_tenants
            and spec.id not in self.besides_jobs
        )

    @property
    def counts_every_grant(self) -> bool:
        """Return whether it counts all grants of its tenant and GPU type."""
        return (
            self.below_priority is None
            and self.smallest_count <= 1
            and not self.besides_tenants
            and not self.besides_jobs
        )

    def places_of(self, gpu_count: int) -> int:
        """Return the places that a grant of so many GPUs takes under the limit."""
        return (
            self.places_by_count[min(gpu_count, len(self.places_by_count) - 1)]
            if self.places_by_count
            else gpu_count
        )


class LimitIndex:
    """Finds the limits of a grant without asking each: they are sorted by tenant and GPU type."""

    def __init__(self, limits: Sequence[Limit]) -> None:
        self._rows: dict[tuple[str | None, str | None], list[tuple[int, Limit | None]]] = {}
        for r, limit in enumerate(limits):
            entry = (r, None if limit.counts_every_grant else limit)
            self._rows.setdefault((limit.tenant, limit.gpu_type), []).append(entry)

    def of(self, spec: JobSpec, gpu_type: str, gpu_count: int) -> list[int]:
        """Return the numbers of the limits that count this grant, ascending."""
        found, rows = [], self._rows
        for key in ((None, None), (None, gpu_type), (spec.tenant, None), (spec.tenant, gpu_type)):
            for r, limit in rows.get(key, ()):
                if limit is None or limit.counts(spec, gpu_type, gpu_count):
                    found.append(r)
        found.sort()
        return found


def capacity_limits(cluster: Cluster) -> tuple[Limit, ...]:
    """Return one row of capacity per GPU type."""
    return tuple(
        Limit(f"capacity:{name}", LimitKind.CAPACITY, int(places), gpu_type=name)
        for name, places in zip(cluster.type_names, cluster.capacity, strict=True)
    )


def shape_limits(cluster: Cluster) -> tuple[Limit, ...]:
    """Return rows that make every choice of Sia's configurations placeable.

    They matter if nodes are uneven. Sizes are powers of two, so allocations of at least s GPUs fit
    if and only if they need no more than all virtual nodes of at least s offer. A row that says no
    more than capacity is left out: intact nodes have none.
    """
    limits = []
    for name, capacity in zip(cluster.type_names, cluster.capacity, strict=True):
        sizes = virtual_node_sizes(cluster, name)
        for size in sorted(sizes):
            places = sum(s * n for s, n in sizes.items() if s >= size) * cluster.jobs_per_gpu
            if size > 1 and places < capacity:
                limits.append(
                    Limit(
                        f"shape:{name}>={size}",
                        LimitKind.SHAPE,
                        places,
                        gpu_type=name,
                        smallest_count=_first_count_above(sizes, size),
                    )
                )
    return tuple(limits)


def _first_count_above(sizes: dict[int, int], size: int) -> int:
    """Return the smallest allocation that no virtual node below `size` can hold."""
    smaller = [s for s in sizes if s < size]
    return max(smaller) + 1 if smaller else 1


def membership(
    limits: Sequence[Limit],
    jobs: Sequence[Job],
    type_names: Sequence[str],
    *,
    job: IntArray,
    gpu_type: IntArray,
    count: IntArray,
) -> BoolArray:
    """Return which limits each of P pairs falls under, shape (P, R)."""
    tenants = np.array([j.spec.tenant for j in jobs], dtype=object)
    priority = np.array([j.spec.priority for j in jobs], dtype=np.int64)
    order = {name: i for i, name in enumerate(type_names)}
    rows = np.ones((len(job), len(limits)), dtype=bool)
    for r, limit in enumerate(limits):
        if limit.gpu_type is not None:
            rows[:, r] &= gpu_type == order.get(limit.gpu_type, -1)
        if limit.tenant is not None:
            rows[:, r] &= tenants[job] == limit.tenant
        if limit.besides_tenants or limit.besides_jobs:
            rows[:, r] &= np.array(
                [
                    j.spec.tenant not in limit.besides_tenants and j.id not in limit.besides_jobs
                    for j in jobs
                ],
                dtype=bool,
            )[job]
        if limit.below_priority is not None:
            rows[:, r] &= priority[job] < limit.below_priority
        if limit.smallest_count > 1:
            rows[:, r] &= count >= limit.smallest_count
    return rows


def places_taken(limits: Sequence[Limit], rows: BoolArray, count: IntArray) -> IntArray:
    """Return the places that each of P pairs takes under every limit, shape (P, R).

    `rows`, (P, R), is the `membership` of the pairs; `count`, (P,), their GPUs.
    """
    taken: IntArray = rows * count[:, None]
    for r, limit in enumerate(limits):
        if limit.places_by_count:
            places = np.array(limit.places_by_count, dtype=np.int64)
            taken[:, r] = rows[:, r] * places[np.minimum(count, len(places) - 1)]
    return taken
