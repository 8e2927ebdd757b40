"""Which jobs hold other GPUs now than at a past moment. Pure: reads spans of timelines."""

from __future__ import annotations

from collections.abc import Iterable

from backend.occupancy.repository import Span
from backend.sight import OTHER_JOB, Sight
from maat.api.clusters import HeldOut, HoldingChangeOut


def holding_changes(
    spans: Iterable[Span], at_seconds: float, sight: Sight
) -> list[HoldingChangeOut]:
    """Return the jobs that hold another type or number of GPUs now than then.

    `spans`: all that began or ended after that moment, in the order they began.
    """
    names: dict[str, str] = {}
    before: dict[str, HeldOut] = {}
    after: dict[str, HeldOut] = {}
    for span in spans:
        names[span.job_id] = span.name
        held = HeldOut(gpu_type=span.gpu_type, gpu_count=span.gpu_count)
        if span.from_seconds <= at_seconds:
            before[span.job_id] = held
        if span.to_seconds is None:
            after[span.job_id] = held
    return [
        HoldingChangeOut(
            job_id=sight.job(job),
            job_name=name if sight.may_see(job) else OTHER_JOB,
            before=before.get(job),
            after=after.get(job),
        )
        for job, name in names.items()
        if before.get(job) != after.get(job)
    ]
