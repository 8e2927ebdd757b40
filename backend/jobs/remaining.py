"""How long a job still takes at what it does now: one figure for every answer. Pure."""

from __future__ import annotations

from backend.clusters.models import Cluster
from backend.jobs.models import Job


def remaining_seconds(job: Job, cluster: Cluster) -> float | None:
    """Return the cluster seconds to a job's end at its present goodput.

    None while it has no goodput on the GPUs that it holds, or if its work is unknown.
    """
    if job.finished_seconds is not None:
        return 0.0
    if cluster.runs_commands and job.progress == 0:  # nobody may have said how much work there is
        return None
    return job.remaining_work / job.goodput if job.goodput is not None and job.goodput > 0 else None
