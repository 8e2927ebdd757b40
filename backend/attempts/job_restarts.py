"""What a restart of a job costs, where the job is: by the catalog, or by its attempts."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session, col, select

from backend.attempts.models import AttemptRow
from backend.attempts.restarts import RestartPart, restart_parts, restart_seconds
from backend.clusters.models import Cluster
from backend.jobs.models import Job
from maat.models.catalog import load_catalog


def restart_of(session: Session, cluster: Cluster, job: Job) -> tuple[float, Sequence[RestartPart]]:
    """Return the seconds that rounds believe a restart to take, and the parts that add up to them.

    On a cluster that plays its jobs they are the catalog's, which has no parts.
    """
    if not cluster.runs_commands:
        return load_catalog()[job.model].restart_seconds, ()
    attempts = select(AttemptRow).where(AttemptRow.job_id == job.id)
    parts = restart_parts(session.exec(attempts.order_by(col(AttemptRow.number))).all())
    return restart_seconds(parts), parts
