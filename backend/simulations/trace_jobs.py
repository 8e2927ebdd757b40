"""A live job as the job of a trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from backend.jobs.declarations import declaration_of
from backend.jobs.models import Job, JobAllocation
from maat.scheduling.job import declared
from maat.vocabulary import MAX_GPUS, Adaptivity
from maat.workloads.recorded import RECORDED
from maat.workloads.workloads import TraceJob


def trace_job(job: Job, first: float, tenant: str) -> TraceJob:
    """Return a live job as a trace job named by its id.

    `first`: cluster seconds at which the trace begins; `tenant`: by name. An adaptive job keeps no
    adaptivity of its own, so that a study can make a share of the jobs rigid. A job without
    `max_gpus` may have up to MAX_GPUS, instead of the limit that a fidelity gives the jobs of
    published traces. A job that was held, or followed others, comes when it could first start.
    """
    asked = declared(declaration_of(job)) | {
        "name": job.id,
        "adaptivity": None if job.adaptivity == Adaptivity.ADAPTIVE else Adaptivity(job.adaptivity),
        "gpu_count": job.min_gpus if job.gpu_count is None else job.gpu_count,
        "max_gpus": MAX_GPUS if job.max_gpus is None else job.max_gpus,
    }
    comes = job.submitted_seconds + job.unwaited_seconds - first
    return TraceJob(**asked, submit_seconds=comes, tenant=tenant)


def as_recorded(
    job: Job, spans: Sequence[JobAllocation], *, since: float, now: float, tenant: str
) -> TraceJob | None:
    """Return a job that no model describes, such as a command, as it was recorded.

    It keeps the GPUs on which it ran longest, and runs on that many for as many seconds as it did
    run since then: GPU-seconds on other counts are divided by that count. None if it never ran.
    """
    gpu_seconds: dict[tuple[str, int], float] = defaultdict(float)
    for span in spans:
        if span.running_seconds is not None:
            end = now if span.to_seconds is None else span.to_seconds
            ran = max(end - max(span.running_seconds, since), 0.0)
            gpu_seconds[span.gpu_type, span.gpu_count] += ran * span.gpu_count
    whole = sum(gpu_seconds.values())
    if whole <= 0.0:
        return None
    gpu_type, count = max(gpu_seconds, key=lambda key: gpu_seconds[key])
    return TraceJob(
        name=job.id,
        model=RECORDED,
        submit_seconds=0.0,
        gpu_count=count,
        work_scale=whole / count,
        adaptivity=Adaptivity.RIGID,
        gpu_types=(gpu_type,),
        preemptible=job.preemptible,
        priority=job.priority,
        weight=job.weight,
        tenant=tenant,
    )
