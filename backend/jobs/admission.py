"""Checks whether a job could ever run on a cluster. Pure.

Compares it with the catalog's model and with all GPUs of the cluster, drained ones included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from backend.commands.spec import command_spec
from backend.jobs.declarations import declaration_of
from backend.problems import FieldError, input_field_error
from maat.api.jobs import JobBody
from maat.models.catalog import CatalogModel
from maat.models.gpu_types import meant_types
from maat.scheduling.errors import JobError
from maat.scheduling.job import JobSpec
from maat.vocabulary import Adaptivity, ExecutorKind

_NO_CEILINGS: Mapping[str, int] = {}
_NEEDS_COMMAND = FieldError(
    "/run",
    "missing",
    "This cluster runs commands, and the job has none.",
    'Give run, such as {"argv": ["python", "train.py"], "cwd": "/home/me/work"}.',
)
_RUNS_NO_COMMANDS = FieldError(
    "/run",
    "no_commands_here",
    "This cluster plays its jobs and runs no commands.",
    "Name a cluster whose executor runs commands as cluster_id, or leave run out.",
)


def objections(
    body: JobBody,
    *,
    models: Mapping[str, CatalogModel],
    capacity: Mapping[str, int],
    executor: str = ExecutorKind.SIMULATED,
    ceilings: Mapping[str, int] = _NO_CEILINGS,
) -> list[FieldError]:
    """Return everything that keeps this job from ever running; empty if it can run.

    `capacity`: all GPUs of the cluster by type. `executor`: what runs its jobs. `ceilings`: the
    most GPUs that its tenant may hold, of types that have such a bound.
    """
    runs_commands = executor != ExecutorKind.SIMULATED
    if (body.run is not None) != runs_commands:
        return [_NEEDS_COMMAND if runs_commands else _RUNS_NO_COMMANDS]
    if runs_commands:
        return _objections_to_command(body, capacity, ceilings)
    model = models.get(body.model)
    if model is None:
        known = ", ".join(sorted(models))
        return [
            FieldError(
                "/model",
                "unknown_model",
                "There is no such model in the catalog.",
                f"Use one of: {known}.",
                body.model,
            )
        ]
    try:
        spec = declared_spec(body, model, job_id="job", submitted_seconds=0.0)
    except JobError as error:
        return [input_field_error(error, f"/{error.field}")]
    return list(_against_cluster(body, spec, capacity, ceilings))


def _objections_to_command(
    body: JobBody, capacity: Mapping[str, int], ceilings: Mapping[str, int]
) -> list[FieldError]:
    for name, value in (("workload_kind", body.workload_kind), ("work_scale", body.work_scale)):
        if value != JobBody.model_fields[name].default:
            message = "This field is for jobs of the catalog's models."
            return [FieldError(f"/{name}", "not_for_commands", message, "Leave it out.", value)]
    twice = sorted(body.run.env.keys() & body.run.secret_env.keys()) if body.run else []
    if twice:
        message = f"{twice[0]} is both a variable and a secret."
        return [FieldError(f"/run/secret_env/{twice[0]}", "named_twice", message, "Give it once.")]
    if Adaptivity(body.adaptivity) is not Adaptivity.RIGID and body.batch_size is None:
        message = "The batch size that the script was tuned for is missing."
        remedy = "Give the total batch size, or adaptivity rigid with gpu_count."
        return [FieldError("/batch_size", "missing", message, remedy)]
    if body.gpu_count and body.batch_size and "adaptivity" not in body.model_fields_set:
        message = "With both gpu_count and batch_size it is not clear what may vary."
        remedy = (
            f'Give adaptivity: "rigid" runs it on {body.gpu_count} GPUs as it stands; "adaptive" '
            "lets Maat choose, for a script that uses maat.agent."
        )
        return [FieldError("/adaptivity", "missing", message, remedy)]
    try:
        spec = command_spec(
            declaration_of(body), id="job", submitted_at=0.0, gpu_types=capacity, work=None
        )
    except JobError as error:
        return [input_field_error(error, f"/{error.field}")]
    return list(_against_cluster(body, spec, capacity, ceilings))


def declared_spec(
    body: JobBody, model: CatalogModel, *, job_id: str, submitted_seconds: float
) -> JobSpec:
    """Return the job as the engine takes it.

    Raises JobError if the model could never run it.
    """
    return model.job_spec(declaration_of(body), id=job_id, submitted_at=submitted_seconds)


def _against_cluster(
    body: JobBody, spec: JobSpec, capacity: Mapping[str, int], ceilings: Mapping[str, int]
) -> Iterator[FieldError]:
    there = ", ".join(f"{name} ({count} GPUs)" for name, count in capacity.items())
    asked_types = list(body.gpu_types or ())
    for index, name in enumerate(asked_types):
        if name not in capacity:
            meant = " or ".join(meant_types([name], capacity))
            yield FieldError(
                f"/gpu_types/{index}",
                "no_such_gpu_type",
                "The cluster has no GPUs of this type.",
                f"Write {meant}." if meant else f"Use some of: {there}.",
                name,
            )
    usable = {name: count for name, count in capacity.items() if spec.may_use(name)}
    if not usable and asked_types and not capacity.keys() & asked_types:
        return  # it is said of each type
    if not usable:
        remedy = f"It runs on {', '.join(sorted(spec.memory))}; the cluster has {there}."
        yield FieldError(
            "/model",
            "no_compatible_gpu_type",
            "No GPU type of the cluster can run it.",
            remedy,
            body.model,
        )
        return
    most = max(usable.values())
    asked, value = (
        ("gpu_count", spec.requested_gpus)
        if spec.gpu_count is not None
        else ("min_gpus", spec.min_gpus)
    )
    if value > most:
        message = "The job needs more GPUs of one type than the cluster has."
        yield FieldError(f"/{asked}", "exceeds_cluster", message, f"Give at most {most}.", value)
        return
    if spec.batch_size is not None and spec.batch_size > spec.max_batch_size:
        message = "The batch size is above the maximum that the scheduler may use."
        remedy = f"Give at most {spec.max_batch_size}, or a larger max_batch_size."
        yield FieldError("/batch_size", "above_max_batch_size", message, remedy, spec.batch_size)
    counted = {
        name: least
        for name, count in usable.items()
        if (least := least_count(spec, name, count)) is not None
    }
    if not counted:
        units = ", ".join(f"{spec.replica_gpus(name)} on {name}" for name in usable)
        message = "No GPU count that the job allows holds a whole replica."
        field = "gpu_count" if spec.is_rigid else "max_gpus"
        asked_count = spec.gpu_count if spec.is_rigid else spec.max_gpus
        yield FieldError(
            f"/{field}",
            "no_whole_replica",
            message,
            f"One replica takes this many GPUs: {units}.",
            asked_count,
        )
        return
    yield from _too_small_batch(spec, counted)
    yield from _above_ceilings(spec, counted, ceilings)


def _too_small_batch(spec: JobSpec, counted: Mapping[str, int]) -> Iterator[FieldError]:
    """Find a fixed batch too small for the fewest GPUs that the job may have.

    It is too small on every type.
    """
    if not spec.has_fixed_batch or spec.batch_size is None:
        return
    needed = {
        name: spec.memory[name].smallest_per_gpu * count // spec.replica_gpus(name)
        for name, count in counted.items()
    }
    least = min(needed.values())
    if spec.batch_size >= least:
        return
    shares = ", ".join(f"{spec.memory[name].smallest_per_gpu} on {name}" for name in counted)
    message = "The batch is too small for so many GPUs."
    fewer = "gpu_count" if spec.is_rigid else "min_gpus"
    remedy = (
        f"Give at least {least}, or a lower {fewer}: "
        f"every replica takes at least this many samples: {shares}."
    )
    yield FieldError("/batch_size", "batch_below_replicas", message, remedy, spec.batch_size)


def _above_ceilings(
    spec: JobSpec, counted: Mapping[str, int], ceilings: Mapping[str, int]
) -> Iterator[FieldError]:
    """Find a job that needs more than its tenant may hold of any type.

    `counted`: the fewest GPUs that it may have, by type.
    """
    asks = spec.gpu_count is not None
    needed = {
        name: max(least, spec.requested_gpus) if asks else least for name, least in counted.items()
    }
    if any(count <= ceilings.get(name, count) for name, count in needed.items()):
        return
    bounds = ", ".join(f"at most {ceilings[name]} {name}" for name in needed)
    message = f"Your tenant's quota lets its jobs hold {bounds}, and this one needs more."
    most = max(ceilings[name] for name in needed)
    lower = f"Give at most {most}, or ask" if most else "Allow other GPU types, or ask"
    yield FieldError(
        "/gpu_count" if asks else "/min_gpus",
        "exceeds_quota",
        message,
        f"{lower} a cluster admin for a higher ceiling.",
        spec.requested_gpus,
    )


def least_count(spec: JobSpec, gpu_type: str, capacity: int) -> int | None:
    """Return the fewest GPUs of this type that the job allows, or None.

    The count must be whole replicas and at most the cluster's capacity.
    """
    unit = spec.replica_gpus(gpu_type)
    least = spec.requested_gpus if spec.is_rigid else -(-spec.min_gpus // unit) * unit
    high = capacity if spec.is_rigid or spec.max_gpus is None else min(spec.max_gpus, capacity)
    return least if least <= high and least % unit == 0 else None
