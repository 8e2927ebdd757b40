"""Whether a job could ever run on a cluster: against the catalog's model and the GPUs that there are, drained ones included. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from backend.jobs.schemas import JobBody
from backend.problems import FieldError, input_field_error
from maat.scheduling.errors import JobError
from maat.scheduling.job import Adaptivity, JobSpec
from maat.simulation.catalog import CatalogModel


def objections(body: JobBody, *, models: Mapping[str, CatalogModel], capacity: Mapping[str, int]) -> list[FieldError]:
    """Everything that keeps this job from ever running; empty where it can. `capacity`: all GPUs of the cluster by type."""
    model = models.get(body.model)
    if model is None:
        known = ", ".join(sorted(models))
        return [FieldError("/model", "unknown_model", "There is no such model in the catalog.", f"Use one of: {known}.", body.model)]
    try:
        spec = declared_spec(body, model, job_id="job", submitted_seconds=0.0)
    except JobError as error:
        return [input_field_error(error, f"/{error.field}")]
    return list(_against_cluster(body, spec, capacity))


def declared_spec(body: JobBody, model: CatalogModel, *, job_id: str, submitted_seconds: float) -> JobSpec:
    """The job as the engine takes it. Raises JobError on what the model could never run."""
    return model.job_spec(
        id=job_id,
        submitted_at=submitted_seconds,
        name=body.name,
        work_scale=body.work_scale,
        adaptivity=Adaptivity(body.adaptivity),
        gpu_count=body.gpu_count,
        min_gpus=body.min_gpus,
        max_gpus=body.max_gpus,
        batch_size=body.batch_size,
        max_batch_size=body.max_batch_size,
        preemptible=body.preemptible,
        gpu_types=None if body.gpu_types is None else tuple(body.gpu_types),
    )


def _against_cluster(body: JobBody, spec: JobSpec, capacity: Mapping[str, int]) -> Iterator[FieldError]:
    there = ", ".join(f"{name} ({count} GPUs)" for name, count in capacity.items())
    for index, name in enumerate(body.gpu_types or ()):
        if name not in capacity:
            yield FieldError(
                f"/gpu_types/{index}", "no_such_gpu_type", "The cluster has no GPUs of this type.", f"Use some of: {there}.", name
            )
    usable = {name: count for name, count in capacity.items() if spec.may_use(name)}
    if not usable:
        remedy = f"It runs on {', '.join(sorted(spec.memory))}; the cluster has {there}."
        yield FieldError("/model", "no_compatible_gpu_type", "No GPU type of the cluster can run it.", remedy, body.model)
        return
    most = max(usable.values())
    asked, value = ("gpu_count", spec.requested_gpus) if spec.gpu_count is not None else ("min_gpus", spec.min_gpus)
    if value > most:
        message = "It needs more GPUs of one type than the cluster has."
        yield FieldError(f"/{asked}", "exceeds_cluster", message, f"Give at most {most}.", value)
    elif not any(_some_count(spec, name, count) for name, count in usable.items()):
        units = ", ".join(f"{spec.replica_gpus(name)} on {name}" for name in usable)
        message = "No GPU count that it allows holds a whole replica."
        field = "gpu_count" if spec.is_rigid else "max_gpus"
        asked_count = spec.gpu_count if spec.is_rigid else spec.max_gpus
        yield FieldError(f"/{field}", "no_whole_replica", message, f"One replica takes this many GPUs: {units}.", asked_count)


def _some_count(spec: JobSpec, gpu_type: str, capacity: int) -> bool:
    """Whether there is a GPU count of this type that the job allows and the cluster has."""
    unit = spec.replica_gpus(gpu_type)
    if spec.is_rigid:
        return spec.requested_gpus <= capacity and spec.requested_gpus % unit == 0
    high = capacity if spec.max_gpus is None else min(spec.max_gpus, capacity)
    smallest = -(-spec.min_gpus // unit) * unit
    return smallest <= high
