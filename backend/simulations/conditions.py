"""Converts a request's conditions into the engine's, and checks them.

Simulations and sweeps share both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from backend.measurements.uses import NOTHING_MEASURED, Measured
from backend.problems import FieldError, Invalid, invalid_input
from maat.api.quotas import TenantQuotaBody
from maat.api.simulations import (
    MAX_FAILURES_PER_HOUR,
    MAX_SIMULATED_GPUS,
    ConditionsBody,
    TraceReservationBody,
)
from maat.laboratory import requested
from maat.laboratory.requested import (
    Conditions,
    Scenario,
    TunedJobs,
    check_interference,
    check_racks,
    check_shares,
    fidelity_drawing,
    interference_from,
    penalties_from,
    requested_conditions,
    window_of,
)
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterTooSmall, InputError
from maat.scheduling.quotas import TenantQuota, check_quotas
from maat.scheduling.reservations import Reservation, check_reservations
from maat.scheduling.stability import Stability
from maat.vocabulary import TuningRule


def conditions_of(request: ConditionsBody, measured: Measured = NOTHING_MEASURED) -> Conditions:
    """Convert a request. Raises InputError. `measured`: from the measurements it names."""
    failures = request.failures
    return requested_conditions(
        fidelity=request.fidelity,
        profiling=request.profiling,
        variability_draw=request.variability_draw,
        round_seconds=request.round_seconds,
        rigid_share=request.rigid_share,
        strong_scaling_share=request.strong_scaling_share,
        mtbf_hours=None if failures is None else failures.mtbf_hours,
        repair_seconds=0.0 if failures is None else failures.repair_seconds,
        reservations=tuple(_reservation(given) for given in request.reservations),
        quotas=tuple(_quota(given) for given in request.quotas or ()),
        stability=Stability(request.least_stay_seconds, request.most_moves_per_hour),
        interference=interference_from(request.interference, measured.interference),
        variability=measured.variability,
        locality_penalty=request.locality_penalty,
        rack_penalty=request.rack_penalty,
        network_contention=request.network_contention,
        tuned=request.tuned,
        tuned_gpus=request.tuned_gpus,
        measured_jobs=request.measured_jobs,
        models=measured.models,
        locality=measured.locality,
        gpu_types=cluster_of(request).type_names,
    )


def tuned_of(request: ConditionsBody, rule: TuningRule | None) -> TunedJobs | None:
    """Return how the jobs of one run or policy are tuned; None: as all."""
    return None if rule is None else TunedJobs(rule, request.tuned_gpus)


def cluster_of(request: ConditionsBody) -> Cluster:
    """Return the cluster of a request. Raises ClusterError."""
    return replace(Cluster.parse(request.cluster, racks=True), jobs_per_gpu=request.jobs_per_gpu)


def check_conditions(body: ConditionsBody, measured: Measured, *, grows: bool = False) -> Cluster:
    """Return the cluster to simulate. Raises Invalid at an unusable field.

    `grows`: its size is varied, so that a larger one may have what is reserved or guaranteed.
    """
    too_small = (ClusterTooSmall,) if grows else ()
    cluster = _checked_cluster(body.cluster)
    with pointing_at("/fidelity"):
        fidelity_drawing(body.fidelity, None, measured=False)
    with pointing_at("/variability_draw"):
        fidelity_drawing(
            body.fidelity, body.variability_draw, measured=measured.variability is not None
        )
    with pointing_at("/locality_penalty"):
        penalties_from(
            body.locality_penalty, measured.models, measured.locality, cluster.type_names
        )
    with pointing_at("/strong_scaling_share"):
        check_shares(body.rigid_share, body.strong_scaling_share)
    with pointing_at("/interference"):
        check_interference(
            interference_from(body.interference, measured.interference),
            jobs_per_gpu=body.jobs_per_gpu,
        )
    with pointing_at("/rack_penalty"):
        check_racks(body.rack_penalty, cluster)
    with pointing_at("/measured_jobs"):
        window_of(body.measured_jobs)
    _check_failures(body, len(cluster.nodes))
    for index, given in enumerate(body.reservations):
        with pointing_at(f"/reservations/{index}"), suppress(*too_small):
            check_reservations([_reservation(given)], cluster)
    with pointing_at("/reservations"), suppress(*too_small):
        check_reservations([_reservation(given) for given in body.reservations], cluster)
    for index, quota in enumerate(body.quotas or ()):
        with pointing_at(f"/quotas/{index}"), suppress(*too_small):
            check_quotas([_quota(quota)], cluster)
    with pointing_at("/quotas"), suppress(*too_small):
        check_quotas([_quota(quota) for quota in body.quotas or ()], cluster)
    return cluster


def check_shared_gpus(scenario: Scenario) -> None:
    """Raise Invalid if jobs share GPUs and their interference is unknown."""
    with pointing_at("/interference"):
        requested.check_shared_gpus(scenario)


def check_models(scenario: Scenario) -> None:
    """Raise Invalid if the profiles lack models of the trace."""
    with pointing_at("/profiles"):
        requested.check_models(scenario)


def check_gpu_types(scenario: Scenario) -> None:
    """Raise Invalid for a GPU type that neither catalog nor trace know."""
    with pointing_at("/cluster"):
        requested.check_gpu_types(scenario)


def check_measured_jobs(scenario: Scenario) -> None:
    """Raise Invalid if the figures are to be of jobs that the trace does not have."""
    with pointing_at("/measured_jobs"):
        requested.check_measured_jobs(scenario)


def check_scores(scenario: Scenario) -> None:
    """Raise Invalid if the measurements lack a GPU type or enough GPUs of it."""
    with pointing_at("/variability"):
        requested.check_scores(scenario)


def check_reserved_jobs(scenario: Scenario) -> None:
    """Raise Invalid if GPUs are reserved for a job that is not in the trace."""
    names = {job.name for job in scenario.workload.jobs}
    for index, reservation in enumerate(scenario.conditions.reservations):
        with pointing_at(f"/reservations/{index}/job"):
            check_reservations([reservation], scenario.cluster, job_ids=names)


def _check_failures(body: ConditionsBody, nodes: int) -> None:
    """Limit the rate of failures.

    The simulation computes each one, and a storm of them would keep a worker busy.
    """
    if body.failures is not None and nodes / body.failures.mtbf_hours > MAX_FAILURES_PER_HOUR:
        message = f"Of {nodes} nodes more than {MAX_FAILURES_PER_HOUR} would fail in an hour."
        remedy = f"Give at least {nodes / MAX_FAILURES_PER_HOUR:g}, or a smaller cluster."
        raise Invalid(
            message,
            errors=[
                FieldError(
                    "/failures/mtbf_hours", "too_small", message, remedy, body.failures.mtbf_hours
                )
            ],
        )


@contextmanager
def pointing_at(pointer: str) -> Iterator[None]:
    """Turn the library's errors inside into problems at this pointer."""
    try:
        yield
    except InputError as error:
        raise invalid_input(error, pointer) from None


def _reservation(given: TraceReservationBody) -> Reservation:
    return Reservation(
        given.gpu_type,
        given.gpu_count,
        tenant=given.tenant,
        job_id=given.job,
        start=given.start_seconds,
        end=float("inf") if given.end_seconds is None else given.end_seconds,
    )


def _quota(given: TenantQuotaBody) -> TenantQuota:
    return TenantQuota(
        tenant=given.tenant,
        weight=given.weight,
        guaranteed=given.guaranteed,
        ceiling=given.ceiling,
    )


def _checked_cluster(shape: str) -> Cluster:
    with pointing_at("/cluster"):
        cluster = Cluster.parse(shape, racks=True)
    if cluster.gpu_count > MAX_SIMULATED_GPUS:
        message = "The cluster is larger than this service simulates."
        remedy = (
            f"Stay at or below {MAX_SIMULATED_GPUS} GPUs, "
            "or use `maat simulate` on a machine of your own."
        )
        raise Invalid(
            message,
            errors=[FieldError("/cluster", "too_large", message, remedy, cluster.gpu_count)],
        )
    return cluster
