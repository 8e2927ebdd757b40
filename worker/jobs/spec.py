"""A job's row as the scheduler knows it."""

from __future__ import annotations

from backend.jobs.declarations import declaration_of
from backend.models import Job as JobRow
from maat.models.catalog import load_catalog
from maat.scheduling.job import JobSpec


def job_spec(row: JobRow, *, tenant: str) -> JobSpec:
    """Return the owner's declaration with the catalog's facts.

    The tenant goes by name. Raises JobError if the model can never run it.
    """
    return load_catalog()[row.model].job_spec(
        declaration_of(row),
        id=row.id,
        submitted_at=row.submitted_seconds,
        owner=row.owner_id,
        tenant=tenant,
    )
