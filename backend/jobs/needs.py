"""How many GPUs of each type a job needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.commands.spec import command_spec
from backend.jobs.admission import least_count
from backend.jobs.declarations import declaration_of
from backend.jobs.models import Job
from maat.models.catalog import load_catalog
from maat.scheduling.errors import JobError
from maat.scheduling.job import JobSpec


def needed_gpus(
    job: Job, evidence: Mapping[str, Any], capacity: Mapping[str, int], *, runs_commands: bool
) -> Mapping[str, int]:
    """Return how many GPUs a job needs, by the types of a cluster that it can run on.

    The fewest that it allows; or as many replicas as its round found too few GPUs for, since an
    ordering policy gives a job what it asks for. `evidence`: of its reason.
    """
    spec = _spec(job, capacity, runs_commands=runs_commands)
    if spec is None:
        return {}
    replicas = _replicas_wanted(spec, evidence)
    usable = (name for name in capacity if spec.may_use(name))
    least = {name: least_count(spec, name, capacity[name]) for name in usable}
    return {
        name: max(count, replicas * spec.replica_gpus(name))
        for name, count in least.items()
        if count is not None
    }


def _spec(job: Job, capacity: Mapping[str, int], *, runs_commands: bool) -> JobSpec | None:
    declaration = declaration_of(job)
    if runs_commands:
        return command_spec(declaration, id=job.id, submitted_at=0.0, gpu_types=capacity, work=None)
    model = load_catalog().get(job.model)
    try:
        return None if model is None else model.job_spec(declaration, id=job.id, submitted_at=0.0)
    except JobError:  # of a catalog that has changed since
        return None


def _replicas_wanted(spec: JobSpec, evidence: Mapping[str, Any]) -> int:
    """Return for how many replicas the type that its reason names lacked GPUs; 0 if none."""
    _, _, gpu_type = str(evidence.get("binding_limit", "")).partition("capacity:")
    gpus = evidence.get("needed_gpus")
    if not isinstance(gpus, int) or not spec.may_use(gpu_type):
        return 0
    return gpus // spec.replica_gpus(gpu_type)
