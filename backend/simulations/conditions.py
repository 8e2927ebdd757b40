"""From a request's conditions to what the engine takes for them, and whether it takes them. Simulations and sweeps share both."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypedDict

from backend.problems import FieldError, Invalid, invalid_input
from backend.simulations.schemas import MAX_FAILURES_PER_HOUR, MAX_SIMULATED_GPUS, ConditionsBody
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, InterferenceError
from maat.scheduling.reservations import Reservation, check_reservations
from maat.simulation.adaptivity_shares import check_shares
from maat.simulation.failures import Failures, RandomFailures
from maat.simulation.fidelity import Fidelity, fidelity
from maat.simulation.interference import Interference, interference
from maat.simulation.tuned_jobs import TunedJobs, TuningRule


class Conditions(TypedDict):
    """What a Scenario and a sweep's Setup call by the same names."""

    fidelity: Fidelity
    round_seconds: float | None
    rigid_share: float
    strong_scaling_share: float
    failures: Failures
    reservations: tuple[Reservation, ...]
    interference: Interference | None
    tuned: TunedJobs | None


def conditions_of(request: Mapping[str, Any]) -> Conditions:
    """Of a stored request, also of one from before there were some of them. Raises InputError."""
    failures, lost, rule = (request.get(name) for name in ("failures", "interference", "tuned"))
    return Conditions(
        fidelity=fidelity(request["fidelity"], profiling=request.get("profiling")),
        round_seconds=request["round_seconds"],
        rigid_share=request.get("rigid_share", 0.0),
        strong_scaling_share=request.get("strong_scaling_share", 0.0),
        failures=() if failures is None else RandomFailures(**failures),
        reservations=tuple(_reservation(given) for given in request.get("reservations", ())),
        interference=None if lost is None else interference(str(lost)),
        tuned=None if rule is None else TunedJobs(TuningRule(rule), request["tuned_gpus"]),
    )


def jobs_per_gpu_of(request: Mapping[str, Any]) -> int:
    """Of a stored request, also of one from before GPUs could be shared: a Scenario has it in its cluster, a Setup by itself."""
    count: int = request.get("jobs_per_gpu", 1)
    return count


def check_conditions(body: ConditionsBody) -> Cluster:
    """The cluster to be simulated. Raises Invalid at the field that cannot be used."""
    cluster = _checked_cluster(body.cluster)
    with pointing_at("/fidelity"):
        fidelity(body.fidelity)
    with pointing_at("/strong_scaling_share"):
        check_shares(body.rigid_share, body.strong_scaling_share)
    check_sharing(body, models=())
    _check_failures(body, len(cluster.nodes))
    for index, given in enumerate(body.reservations):
        with pointing_at(f"/reservations/{index}"):
            check_reservations([_reservation(given.model_dump())], cluster)
    with pointing_at("/reservations"):
        check_reservations([_reservation(given.model_dump()) for given in body.reservations], cluster)
    return cluster


def check_sharing(body: ConditionsBody, models: Collection[str]) -> None:
    """Raises Invalid where jobs share GPUs and it is not known what jobs of these models lose by that."""
    if body.jobs_per_gpu == 1:
        return
    with pointing_at("/interference"):
        if body.interference is None:
            remedy = "Give 'synthetic', or a constant such as 1.25."
            raise InterferenceError("is missing where several jobs may share a GPU", field="interference", remedy=remedy)
        interference(str(body.interference)).between(models, (1,))


def check_reserved_jobs(body: ConditionsBody, names: set[str]) -> None:
    """Raises Invalid where GPUs are reserved for a job that the trace does not have."""
    for index, given in enumerate(body.reservations):
        if given.job is not None and given.job not in names:
            message, remedy = "The trace has no job of this name.", "Use the name of one of its jobs, or reserve for a tenant."
            raise Invalid(message, errors=[FieldError(f"/reservations/{index}/job", "unknown_job", message, remedy, given.job)])


def _check_failures(body: ConditionsBody, nodes: int) -> None:
    """Every failure is worked out: a storm of them would keep a worker busy for nothing."""
    if body.failures is not None and nodes / body.failures.mtbf_hours > MAX_FAILURES_PER_HOUR:
        message = f"Of {nodes} nodes more than {MAX_FAILURES_PER_HOUR} would fail in an hour."
        remedy = f"Give at least {nodes / MAX_FAILURES_PER_HOUR:g}, or a smaller cluster."
        raise Invalid(message, errors=[FieldError("/failures/mtbf_hours", "too_small", message, remedy, body.failures.mtbf_hours)])


@contextmanager
def pointing_at(pointer: str) -> Iterator[None]:
    """What the library refuses inside is a problem with the field at this pointer."""
    try:
        yield
    except InputError as error:
        raise invalid_input(error, pointer) from None


def _reservation(given: Mapping[str, Any]) -> Reservation:
    return Reservation(
        given["gpu_type"],
        given["gpu_count"],
        tenant=given["tenant"],
        job_id=given["job"],
        start=given["start_seconds"],
        end=float("inf") if given["end_seconds"] is None else given["end_seconds"],
    )


def _checked_cluster(shape: str) -> Cluster:
    with pointing_at("/cluster"):
        cluster = Cluster.parse(shape)
    if cluster.gpu_count > MAX_SIMULATED_GPUS:
        message = "It is larger than this service simulates."
        remedy = f"Stay at or below {MAX_SIMULATED_GPUS} GPUs, or use `maat simulate` on a machine of your own."
        raise Invalid(message, errors=[FieldError("/cluster", "too_large", message, remedy, cluster.gpu_count)])
    return cluster
