"""Reads reservations, as rows and as the engine takes them.

Commits nothing. The worker calls it too.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.accounts.models import Tenant
from backend.jobs.models import Job
from backend.problems import NotFound
from backend.reservations.models import ClusterReservation
from maat.scheduling.reservations import Reservation


def get_reservation(session: Session, cluster_id: str, reservation_id: str) -> ClusterReservation:
    """Find a reservation. Raises NotFound."""
    found = session.get(ClusterReservation, reservation_id)
    if found is None or found.cluster_id != cluster_id:
        raise NotFound(f"The cluster has no reservation {reservation_id!r}.")
    return found


def standing(session: Session, cluster_id: str, *, now: float) -> Sequence[ClusterReservation]:
    """List present and future reservations. One for a job ends with the job."""
    over = sa.select(col(Job.id)).where(col(Job.finished_seconds).is_not(None))
    statement = select(ClusterReservation).where(
        ClusterReservation.cluster_id == cluster_id,
        col(ClusterReservation.end_seconds).is_(None) | (col(ClusterReservation.end_seconds) > now),
        col(ClusterReservation.job_id).is_(None) | col(ClusterReservation.job_id).not_in(over),
    )
    return session.exec(statement.order_by(col(ClusterReservation.id))).all()


def engine_reservations(
    session: Session, rows: Sequence[ClusterReservation]
) -> tuple[Reservation, ...]:
    """Return the engine's reservations. Tenants go by name, as in the engine's jobs."""
    names = tenant_names(session, [row.tenant_id for row in rows if row.tenant_id is not None])
    return tuple(
        Reservation(
            row.gpu_type,
            row.gpu_count,
            tenant=None if row.tenant_id is None else names[row.tenant_id],
            job_id=row.job_id,
            start=row.start_seconds,
            end=float("inf") if row.end_seconds is None else row.end_seconds,
        )
        for row in rows
    )


def tenant_names(session: Session, tenant_ids: Sequence[str]) -> dict[str, str]:
    return dict(
        session.exec(
            select(Tenant.id, Tenant.name).where(col(Tenant.id).in_(set(tenant_ids)))
        ).all()
    )
