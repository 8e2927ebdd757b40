"""Demo jobs, drawn from a generated workload and submitted now.

Makes request bodies; stores nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from backend.jobs.admission import objections
from backend.problems import Conflict
from maat.api.jobs import JobBody
from maat.models.catalog import load_catalog
from maat.workloads.generators import generate
from maat.workloads.workloads import TraceJob

DEMO_FAMILY = "philly"
DEMO_WORK_SCALE = 0.25
_DRAWN = 4


def demo_bodies(
    count: int, *, seed: int | None, cluster_id: str, capacity: Mapping[str, int]
) -> list[JobBody]:
    """Return `count` jobs that can all run on this capacity.

    Raises Conflict if none of the drawn jobs can.
    """
    seed = secrets.randbelow(2**31) if seed is None else seed
    drawn = generate(DEMO_FAMILY, jobs=count * _DRAWN, seed=seed).jobs
    bodies = [_body(job, index, seed, cluster_id) for index, job in enumerate(drawn)]
    usable = [
        body for body in bodies if not objections(body, models=load_catalog(), capacity=capacity)
    ]
    if not usable:
        raise Conflict("None of the demo jobs could run on this cluster.")
    return [
        usable[i % len(usable)].model_copy(update={"name": f"demo-{seed}-{i + 1}"})
        for i in range(count)
    ]


def _body(job: TraceJob, index: int, seed: int, cluster_id: str) -> JobBody:
    model = load_catalog()[job.model]
    return JobBody(
        name=f"demo-{seed}-{index}",
        model=model.name,
        cluster_id=cluster_id,
        gpu_count=job.gpu_count,
        work_scale=DEMO_WORK_SCALE,
    )
