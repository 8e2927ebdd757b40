"""Converts a request's conditions into the engine's, and checks them.

Simulations and sweeps share both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from backend.measurements.uses import NOTHING_MEASURED, Measured
from backend.problems import FieldError, Invalid, invalid_input
from maat.api.simulations import MAX_FAILURES_PER_HOUR, MAX_SIMULATED_GPUS, ConditionsBody
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError
from maat.scheduling.reservations import Reservation, check_reservations
from maat.simulation.adaptivity_shares import check_shares
from maat.simulation.conditions import Conditions, check_interference, penalties_of, with_draw
from maat.simulation.failures import RandomFailures
from maat.simulation.fidelity import Fidelity, fidelity
from maat.simulation.interference import Interference, synthetic
from maat.simulation.iteration_models import shipped_models
from maat.simulation.scenario import Scenario
from maat.simulation.tuned_jobs import TunedJobs
from maat.simulation.world import World
from maat.vocabulary import SYNTHETIC, ScoreDraw, TuningRule


def conditions_of(request: Mapping[str, Any], measured: Measured = NOTHING_MEASURED) -> Conditions:
    """Convert a stored request. Raises InputError.

    Older requests may lack some fields. `measured`: from the measurements it names.
    """
    failures, rule = request.get("failures"), request.get("tuned")
    return Conditions(
        fidelity=_fidelity(request, measured),
        round_seconds=request["round_seconds"],
        rigid_share=request.get("rigid_share", 0.0),
        strong_scaling_share=request.get("strong_scaling_share", 0.0),
        failures=() if failures is None else RandomFailures(**failures),
        reservations=tuple(_reservation(given) for given in request.get("reservations", ())),
        interference=_interference(request.get("interference"), measured),
        variability=measured.variability,
        locality_penalties=_penalties(request.get("locality_penalty")),
        tuned=None if rule is None else TunedJobs(TuningRule(rule), request["tuned_gpus"]),
    )


def _fidelity(request: Mapping[str, Any], measured: Measured) -> Fidelity:
    draw = request.get("variability_draw")
    preset = fidelity(request["fidelity"], profiling=request.get("profiling"))
    return with_draw(
        preset, None if draw is None else ScoreDraw(draw), measured=measured.variability is not None
    )


def _penalties(given: float | Mapping[str, float] | None) -> Mapping[str, float]:
    return {} if given is None else penalties_of(given, shipped_models())


def _interference(given: str | float | None, measured: Measured) -> Interference | None:
    """Return the interference.

    A text is never a path here: it names the shipped table or uploaded measurements.
    """
    if given is None:
        return None
    if isinstance(given, str):
        return synthetic() if given == SYNTHETIC else measured.interference
    return Interference.constant(given)


def cluster_of(request: Mapping[str, Any]) -> Cluster:
    """Return the cluster of a stored request. Raises ClusterError.

    Requests from before GPU sharing lack `jobs_per_gpu`.
    """
    return replace(Cluster.parse(request["cluster"]), jobs_per_gpu=request.get("jobs_per_gpu", 1))


def check_conditions(body: ConditionsBody, measured: Measured) -> Cluster:
    """Return the cluster to simulate. Raises Invalid at an unusable field."""
    cluster = _checked_cluster(body.cluster)
    with pointing_at("/fidelity"):
        preset = fidelity(body.fidelity)
    with pointing_at("/variability_draw"):
        with_draw(preset, body.variability_draw, measured=measured.variability is not None)
    with pointing_at("/locality_penalty"):
        _penalties(body.locality_penalty)
    with pointing_at("/strong_scaling_share"):
        check_shares(body.rigid_share, body.strong_scaling_share)
    with pointing_at("/interference"):
        check_interference(
            _interference(body.interference, measured), jobs_per_gpu=body.jobs_per_gpu
        )
    _check_failures(body, len(cluster.nodes))
    for index, given in enumerate(body.reservations):
        with pointing_at(f"/reservations/{index}"):
            check_reservations([_reservation(given.model_dump())], cluster)
    with pointing_at("/reservations"):
        check_reservations(
            [_reservation(given.model_dump()) for given in body.reservations], cluster
        )
    return cluster


def check_shared_gpus(scenario: Scenario) -> None:
    """Raise Invalid if jobs share GPUs and their interference is unknown."""
    with pointing_at("/interference"):
        World.of(scenario).check_interference()


def check_scores(scenario: Scenario) -> None:
    """Raise Invalid if the measurements lack a GPU type or enough GPUs of it."""
    with pointing_at("/variability"):
        World.of(scenario).check_scores()


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
