"""Reads measurements that are not deleted, by id or by name, and their files.

Commits nothing. The worker calls it too.
"""

from __future__ import annotations

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.clusters.models import Cluster
from backend.measurements.models import Measurement, MeasurementFiles, MeasurementUse
from backend.problems import NotFound
from backend.tenancy import find_owned
from maat.vocabulary import MeasurementKind


def get_measurement(
    session: Session, principal: Principal, measurement_id: str, *, lock: bool = False
) -> Measurement:
    """Find a measurement. Raises NotFound if it is deleted or another tenant's."""
    found = find_owned(
        session, principal, Measurement, measurement_id, noun="measurement", lock=lock
    )
    if found.deleted_at is not None:
        raise NotFound(f"The measurement {measurement_id!r} was deleted.")
    return found


def named(session: Session, tenant_id: str, kind: MeasurementKind, name: str) -> Measurement | None:
    """Find the tenant's measurement of this name that is not deleted."""
    same = (
        Measurement.tenant_id == tenant_id,
        Measurement.kind == kind.value,
        Measurement.name == name,
    )
    return session.exec(
        select(Measurement).where(*same, col(Measurement.deleted_at).is_(None))
    ).first()


def is_used(session: Session, measurement_id: str) -> bool:
    """Return whether any operation was requested with it, or a cluster declares it."""
    of_operations = select(MeasurementUse.kind).where(
        MeasurementUse.measurement_id == measurement_id
    )
    of_clusters = select(Cluster.id).where(col(Cluster.interference).startswith(measurement_id))
    found = (session.exec(statement.limit(1)).first() for statement in (of_operations, of_clusters))
    return any(one is not None for one in found)


def profiled_models(session: Session, tenant_id: str) -> set[str]:
    """Return the models of which the tenant has profiles."""
    kept = (
        Measurement.tenant_id == tenant_id,
        Measurement.kind == MeasurementKind.PROFILES.value,
        col(Measurement.deleted_at).is_(None),
    )
    covers = session.exec(select(Measurement.covers).where(*kept)).all()
    return {model for each in covers for models in each.values() for model in models}


def texts_of(session: Session, measurement_id: str) -> dict[str, str]:
    """File name -> content."""
    texts: dict[str, str] = session.get_one(MeasurementFiles, measurement_id).texts
    return texts
