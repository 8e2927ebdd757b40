"""Reservations: GPUs of a type kept free for a tenant or job for a period.

They become limits on all other jobs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError, ClusterTooSmall, ParameterError
from maat.scheduling.job import JobId
from maat.scheduling.limits import Limit, LimitKind

MOST_HOLDERS = 6  # of one GPU type at one time: they need 2^6 - 1 rows


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a reservation: all jobs of a tenant, or one job."""

    tenant: str | None = None
    job_id: JobId | None = None

    @property
    def label(self) -> str:
        return f"tenant {self.tenant}" if self.job_id is None else f"job {self.job_id}"


@dataclass(frozen=True, slots=True)
class Reservation:
    """GPUs that all jobs but the holder's leave free from `start` until `end`.

    Cluster time. Only pinned jobs may stay on them.
    """

    gpu_type: str
    gpu_count: int
    tenant: str | None = None
    job_id: JobId | None = None
    start: float = 0.0
    end: float = float("inf")

    def __post_init__(self) -> None:
        if (self.tenant is None) == (self.job_id is None):
            raise ParameterError(
                "is for a tenant or for a job, one of them",
                field="reservation",
                value=self.tenant,
                remedy="Name tenant or job_id.",
            )
        if self.gpu_count < 1:
            raise ParameterError(
                "must be at least 1",
                field="gpu_count",
                value=self.gpu_count,
                remedy="Give a whole number from 1 up.",
            )
        if not 0 <= self.start < self.end:
            raise ParameterError(
                "is not after the start",
                field="end",
                value=self.end,
                remedy=f"Give a time after {self.start:g}, from 0 up.",
            )

    @property
    def holder(self) -> Holder:
        return Holder(self.tenant, self.job_id)

    def holds_at(self, now: float) -> bool:
        return self.start <= now < self.end


def reservation_limits(
    cluster: Cluster, reservations: Sequence[Reservation], now: float
) -> tuple[Limit, ...]:
    """Return rows that keep the GPUs reserved at this moment free.

    For every group of holders, all others hold at most what the group leaves. All groups have
    rows, not only single holders: otherwise a third party could take the GPUs of one holder while
    another borrows. A reservation of more GPUs than are in service reserves all that are. Types
    that the cluster lacks are skipped.

    Raises:
        ParameterError: A type has too many holders.
    """
    limits: list[Limit] = []
    for name, capacity in zip(cluster.type_names, cluster.capacity.tolist(), strict=True):
        reserved = _by_holder([r for r in reservations if r.gpu_type == name and r.holds_at(now)])
        if len(reserved) > MOST_HOLDERS:
            raise ParameterError(
                "are more holders of one GPU type than Maat accepts",
                field="reservations",
                value=len(reserved),
                remedy=f"Reserve {name} for at most {MOST_HOLDERS} tenants and jobs at one time.",
            )
        for size in range(1, len(reserved) + 1):
            for group in combinations(reserved, size):
                gpus = sum(reserved[holder] for holder in group)
                limits.append(_others(name, group, max(capacity - gpus * cluster.jobs_per_gpu, 0)))
    return tuple(limits)


def room_comes_later(reservations: Sequence[Reservation], now: float) -> bool:
    """Return whether a reservation is still to end and will free its GPUs."""
    return any(now < reservation.end < float("inf") for reservation in reservations)


def next_boundary(reservations: Sequence[Reservation], now: float) -> float:
    """Return when the next reservation begins or ends; infinite if none will."""
    return min(
        (time for one in reservations for time in (one.start, one.end) if time > now),
        default=float("inf"),
    )


def check_reservations(
    reservations: Sequence[Reservation],
    cluster: Cluster,
    *,
    job_ids: Collection[JobId] | None = None,
) -> None:
    """Check reservations against a cluster and the jobs of a trace.

    Raises:
        ClusterError: One is for a GPU type that the cluster lacks.
        ParameterError: One is for none of these jobs, or a type has at some time too many holders
            or more GPUs reserved than exist.
    """
    for reservation in reservations:
        if reservation.gpu_type not in cluster.type_index:
            raise ClusterError(
                "is no GPU type of this cluster",
                field="reservation.gpu_type",
                value=reservation.gpu_type,
                remedy=f"Use one of: {', '.join(cluster.type_names)}.",
            )
        if (
            job_ids is not None
            and reservation.job_id is not None
            and reservation.job_id not in job_ids
        ):
            raise ParameterError(
                "is no job of the trace",
                field="reservation.job_id",
                value=reservation.job_id,
                remedy="Use the name of one of its jobs, or reserve for a tenant.",
            )
    for start in {reservation.start for reservation in reservations}:
        reservation_limits(cluster, reservations, start)
        _check_sum([r for r in reservations if r.holds_at(start)], cluster)


def _check_sum(together: Sequence[Reservation], cluster: Cluster) -> None:
    """Raise ClusterTooSmall if simultaneous reservations exceed the GPUs of a type."""
    for name in {r.gpu_type for r in together}:
        most = sum(node.gpu_count for node in cluster.nodes_of(name))
        wanted = sum(r.gpu_count for r in together if r.gpu_type == name)
        if wanted > most:
            raise ClusterTooSmall(
                f"of {name} hold together at one time, of which there are {most}",
                field="reservation.gpu_count",
                value=wanted,
                remedy=f"Reserve at most {most}, or at other times.",
            )


def _by_holder(reservations: Sequence[Reservation]) -> Mapping[Holder, int]:
    gpus: dict[Holder, int] = {}
    for reservation in reservations:
        gpus[reservation.holder] = gpus.get(reservation.holder, 0) + reservation.gpu_count
    return gpus


def _others(gpu_type: str, group: Collection[Holder], places: int) -> Limit:
    return Limit(
        f"reservation:{gpu_type}:{' + '.join(holder.label for holder in group)}",
        LimitKind.RESERVATION,
        places,
        gpu_type=gpu_type,
        besides_tenants=tuple(holder.tenant for holder in group if holder.tenant is not None),
        besides_jobs=tuple(holder.job_id for holder in group if holder.job_id is not None),
    )
