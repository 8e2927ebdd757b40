"""The outcome of a placement: GPUs by job, and why other grants have no place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import JobId
from maat.scheduling.rounds import Grant, Placement, PlacementResult


def outcome(grants: Mapping[JobId, Grant], found: Mapping[JobId, Sequence[int]]) -> PlacementResult:
    """Return the placement of the jobs in `found`; the other grants are unplaced."""
    return PlacementResult(
        in_grant_order(grants, found),
        {job_id: unplaced(grant) for job_id, grant in grants.items() if job_id not in found},
    )


def in_grant_order(
    grants: Mapping[JobId, Grant], found: Mapping[JobId, Sequence[int]]
) -> Placement:
    """Return the GPUs found by job as a placement in order of the grants."""
    return Placement.of({job_id: found[job_id] for job_id in grants if job_id in found})


def unplaced(grant: Grant) -> Reasons:
    """Return why a grant has no place: enough GPUs are free, but not together."""
    return Reasons(
        ReasonCode.FRAGMENTED, {"gpu_type": grant.gpu_type, "gpu_count": grant.gpu_count}
    )
