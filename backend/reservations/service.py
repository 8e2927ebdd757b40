"""Makes and removes reservations of live clusters, checked by the engine's rules.

Commits nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant
from backend.answers import answer_of
from backend.audit.changes import Change, Shown, asker, record
from backend.clocktime import cluster_seconds, seconds_at, shown_at
from backend.clusters.models import Cluster
from backend.clusters.repository import get_cluster, nodes_of
from backend.clusters.topology import capacity_by_type, engine_cluster
from backend.jobs.models import Job
from backend.moments import moment_of
from backend.problems import FieldError, Invalid, invalid_input
from backend.reservations.models import ClusterReservation
from backend.reservations.repository import (
    engine_reservations,
    get_reservation,
    standing,
    tenant_names,
)
from backend.sight import sight_of
from maat.api.reservations import ReservationBody, ReservationOut
from maat.scheduling.errors import InputError
from maat.scheduling.reservations import check_reservations


def reserve(
    session: Session, principal: Principal, cluster_id: str, body: ReservationBody
) -> ClusterReservation:
    """Store a reservation.

    Raises Invalid naming the field, NotFound for an unknown cluster.
    """
    cluster = get_cluster(session, cluster_id, lock=True)
    now = cluster_seconds(cluster, moment_of(session))
    row = ClusterReservation(
        cluster_id=cluster.id,
        gpu_type=body.gpu_type,
        gpu_count=body.gpu_count,
        start_seconds=now
        if body.start_at is None
        else max(seconds_at(cluster, body.start_at), 0.0),
        end_seconds=None if body.end_at is None else seconds_at(cluster, body.end_at),
        owner_id=principal.user_id,
        **_holder(session, cluster, body),
    )
    _check_times(row, now)
    _check_capacity(session, cluster, row)
    _check_all(session, cluster, row, now)
    session.add(row)
    session.flush()
    tenant_id = _tenant_of(session, row)
    record(session, Change(asker(), "reserve GPUs", row.id, {}, _written(row), tenant_id))
    return row


def remove(session: Session, cluster_id: str, reservation_id: str) -> None:
    """Remove it. Raises NotFound. The next round may give its GPUs to any job."""
    cluster = get_cluster(session, cluster_id, lock=True)
    row = get_reservation(session, cluster.id, reservation_id)
    tenant_id = _tenant_of(session, row)
    record(session, Change(asker(), "remove reservation", row.id, _written(row), {}, tenant_id))
    session.delete(row)


def show_reservations(
    session: Session, principal: Principal, cluster: Cluster, rows: Sequence[ClusterReservation]
) -> list[ReservationOut]:
    """Show reservations; the holder only to those who may see it."""
    tenants = tenant_names(session, [row.tenant_id for row in rows if row.tenant_id is not None])
    jobs = [row.job_id for row in rows if row.job_id is not None]
    ended = set(
        session.exec(
            select(Job.id).where(col(Job.id).in_(jobs), col(Job.finished_seconds).is_not(None))
        )
    )
    now, sight = cluster_seconds(cluster, moment_of(session)), sight_of(session, principal, jobs)
    return [
        answer_of(
            ReservationOut,
            row,
            tenant=None
            if row.tenant_id is None or not principal.may_see(row.tenant_id)
            else tenants[row.tenant_id],
            job_id=None if row.job_id is None else sight.job(row.job_id),
            start_at=shown_at(cluster, row.start_seconds),
            end_at=None if row.end_seconds is None else shown_at(cluster, row.end_seconds),
            state="over" if row.job_id in ended else _state(row, now),
        )
        for row in rows
    ]


def _written(row: ClusterReservation) -> Shown:
    """Return what is written down of a reservation."""
    names = ("cluster_id", "gpu_type", "gpu_count", "tenant_id", "job_id")
    return {name: getattr(row, name) for name in (*names, "start_seconds", "end_seconds")}


def _tenant_of(session: Session, row: ClusterReservation) -> str | None:
    """Return whose GPUs it keeps."""
    if row.job_id is None:
        return row.tenant_id
    return session.exec(select(Job.tenant_id).where(Job.id == row.job_id)).first()


def _state(row: ClusterReservation, now: float) -> Literal["upcoming", "active", "over"]:
    if row.end_seconds is not None and row.end_seconds <= now:
        return "over"
    return "active" if row.start_seconds <= now else "upcoming"


def _holder(session: Session, cluster: Cluster, body: ReservationBody) -> dict[str, Any]:
    if (body.tenant is None) == (body.job_id is None):
        raise _invalid(
            "/tenant",
            "either_or",
            "A reservation is for either a tenant or a job.",
            "Give tenant or job_id.",
            body.tenant,
        )
    if body.job_id is not None:
        job = session.get(Job, body.job_id)
        if job is None or job.cluster_id != cluster.id or job.finished_seconds is not None:
            raise _invalid(
                "/job_id",
                "no_such_job",
                "The cluster has no unfinished job with this id.",
                "See GET /jobs.",
                body.job_id,
            )
        return {"job_id": job.id}
    tenant = session.exec(select(Tenant).where(Tenant.name == body.tenant)).first()
    if tenant is None:
        raise _invalid(
            "/tenant",
            "unknown_tenant",
            "There is no tenant of this name.",
            "Use the name that its jobs show.",
            body.tenant,
        )
    return {"tenant_id": tenant.id}


def _check_times(row: ClusterReservation, now: float) -> None:
    if row.end_seconds is not None and row.end_seconds <= max(row.start_seconds, now):
        remedy = "Give a time of the cluster's clock in the future and after start_at, or none."
        raise _invalid(
            "/end_at", "over", "The reservation would end before it begins.", remedy, None
        )


def _check_capacity(session: Session, cluster: Cluster, row: ClusterReservation) -> None:
    capacity = capacity_by_type(nodes_of(session, cluster.id), usable_only=False)
    there = ", ".join(f"{name} ({count} GPUs)" for name, count in capacity.items())
    if row.gpu_type not in capacity:
        raise _invalid(
            "/gpu_type",
            "no_such_gpu_type",
            "The cluster has no GPUs of this type.",
            f"Use one of: {there}.",
            row.gpu_type,
        )
    if row.gpu_count > capacity[row.gpu_type]:
        remedy = f"Give at most {capacity[row.gpu_type]}."
        raise _invalid(
            "/gpu_count",
            "exceeds_cluster",
            "The cluster has fewer GPUs of this type.",
            remedy,
            row.gpu_count,
        )


def _check_all(session: Session, cluster: Cluster, row: ClusterReservation, now: float) -> None:
    """Refuse a reservation that the engine would refuse with others of its type.

    It must not reach a round.
    """
    rows = [
        *(
            other
            for other in standing(session, cluster.id, now=now)
            if other.gpu_type == row.gpu_type
        ),
        row,
    ]
    try:
        check_reservations(
            engine_reservations(session, rows),
            engine_cluster(nodes_of(session, cluster.id), jobs_per_gpu=cluster.jobs_per_gpu),
        )
    except InputError as error:
        raise invalid_input(error, "/gpu_type") from None


def _invalid(pointer: str, code: str, message: str, remedy: str, value: object) -> Invalid:
    return Invalid(
        f"{message} {remedy}", errors=[FieldError(pointer, code, message, remedy, value)]
    )
