"""What an uploaded table of interference names that no job here is called. Commits nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

from sqlmodel import Session, col, select

from backend.jobs.models import Job
from backend.measurements.models import Measurement
from maat.models.catalog import shipped_catalog
from maat.vocabulary import MeasurementKind

_MOST_NAMED = 4
_BATCH = re.compile(r" \(batch size [0-9]{1,18}\)$")


def measurement_notes(session: Session, row: Measurement) -> list[str]:
    """Return a sentence if models of a table of interference are none that a job here has.

    Names count as they are written, as policies look them up. Jobs are those of the table's tenant
    that have not ended.
    """
    if row.kind != MeasurementKind.INTERFERENCE:
        return []
    named = {_BATCH.sub("", name) for names in row.covers.values() for name in names}
    catalog = set(shipped_catalog().models)
    unknown = named - catalog
    unknown -= _models_of_jobs(session, row.tenant_id, unknown)
    if not unknown:
        return []
    shown = [_with_meant(name, catalog) for name in sorted(unknown)[:_MOST_NAMED]]
    more = len(unknown) - len(shown)
    words = ", ".join(shown) + (f" and {more} more" if more else "")
    return [
        f"No model of the catalog and no unfinished job has the name {words}. "
        "Slowdowns are found by a job's model, exactly as it is written."
    ]


def _models_of_jobs(session: Session, tenant_id: str, models: Iterable[str]) -> set[str]:
    asked = sorted(models)
    if not asked:
        return set()
    unended = (Job.tenant_id == tenant_id, col(Job.finished_seconds).is_(None))
    return set(session.exec(select(Job.model).where(*unended, col(Job.model).in_(asked))).all())


def _with_meant(name: str, known: Collection[str]) -> str:
    """Return the name, with the one of the catalog that a slip stands for."""
    near = get_close_matches(name.lower(), sorted(known), n=1, cutoff=0.75)
    return f"{name} (did you mean {near[0]}?)" if near else name
