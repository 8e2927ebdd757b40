"""Uploaded measurements that stand in for published data in a reproduction. Commits nothing.

The worker calls it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlmodel import Session

from backend.measurements.models import Measurement, MeasurementUse
from backend.measurements.repository import texts_of
from maat.api.papers import OwnNames
from maat.papers.own import OwnMeasurements
from maat.vocabulary import MeasurementKind


def names_by_kind(given: OwnNames) -> Mapping[MeasurementKind, str | None]:
    return {
        MeasurementKind.PROFILES: given.profiles,
        MeasurementKind.TRACE: given.trace,
        MeasurementKind.VARIABILITY: given.variability,
        MeasurementKind.INTERFERENCE: given.interference,
    }


def own_of(session: Session, uses: Sequence[MeasurementUse]) -> tuple[OwnMeasurements, ...]:
    """Return the measurements of these uses with their files, deleted ones too."""
    rows = [(use, session.get_one(Measurement, use.measurement_id)) for use in uses]
    return tuple(
        OwnMeasurements(
            MeasurementKind(row.kind),
            row.name,
            row.digest,
            texts_of(session, row.id),
            origin=_origin(row),
            gpu_type=use.gpu_type,
        )
        for use, row in sorted(rows, key=lambda found: found[0].kind)
    )


def _origin(row: Measurement) -> list[str]:
    """Return who measured it, where it is from and its licence, as far as that was said."""
    licence = None if row.licence is None else f"licence: {row.licence}"
    return [words for words in (row.source, row.url, licence) if words is not None]
