"""Accepts experiments: checks a request, then stores it. One worker plays its runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy.orm import defer
from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.clusters.service import check_parts
from backend.database import after_commit
from backend.experiments.models import Experiment
from backend.experiments.requests import AnyExperiment, experiment_of
from backend.experiments.stored import StoredExperiment
from backend.measurements.models import MeasurementUse
from backend.measurements.uses import Measured, find_profiles, keep_uses, measured
from backend.operations.models import Operation
from backend.operations.service import begin_operation
from backend.pagination import PageAsked, Rows
from backend.problems import FieldError, Invalid, invalid_input
from backend.queue import PLAY_NEXT_RUN, Queue
from backend.simulations.service import with_its_text
from backend.simulations.stored import refuse_unreadable
from backend.tenancy import find_owned, newest_owned
from maat.api.experiments import (
    MAX_RENTED_JOBS,
    MAX_RENTED_NODES,
    AutoscalingBody,
    ExperimentBody,
    TuningBody,
)
from maat.api.simulations import MAX_SIMULATED_GPUS, CsvTrace
from maat.laboratory.experiments import Autoscaling, ElasticAgainstStatic
from maat.laboratory.requested import Scenario
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError, InputError, TraceError

EXPERIMENT = "experiment"
OF_TRACE = ("family", "jobs", "hours", "xxl_share")


@dataclass(frozen=True)
class PreparedExperiment:
    """A checked request, ready to store."""

    request: StoredExperiment
    uses: list[MeasurementUse]
    runs: int


def prepare_experiment(
    session: Session, principal: Principal, body: ExperimentBody
) -> PreparedExperiment:
    """Check a request. It only reads, but may take time: a trace is drawn or read.

    Raises Invalid naming what cannot be used.
    """
    uses = find_profiles(session, principal, body.profiles)
    found = measured(session, uses, body)
    if isinstance(body, AutoscalingBody) and body.trace is not None:
        trace = with_its_text(session, principal, body.trace, "/trace")
        body = body.model_copy(update={"trace": trace})
    _check_cluster(body)
    parameters = body.policy_parameters if isinstance(body, AutoscalingBody) else {}
    check_parts(body.policy, parameters, None, {})
    experiment = _checked(session, body, found)
    if isinstance(body, TuningBody) and isinstance(experiment, ElasticAgainstStatic):
        body = body.model_copy(update={"static_batch_per_gpu": experiment.static_batch_per_gpu})
    return PreparedExperiment(
        StoredExperiment.model_validate(body.model_dump(mode="json")), uses, len(experiment.runs)
    )


def store_experiment(
    session: Session, principal: Principal, prepared: PreparedExperiment, queue: Queue
) -> Experiment:
    owner: dict[str, Any] = {"owner_id": principal.user_id, "tenant_id": principal.tenant_id}
    operation = Operation(
        kind=EXPERIMENT,
        total=float(prepared.runs),
        unit="runs",
        message="Waiting for a worker.",
        **owner,
    )
    body = prepared.request.body
    experiment = Experiment(
        kind=body.kind, name=body.name, request=prepared.request, operation_id="", **owner
    )
    begin_operation(session, operation, experiment, result_url="/api/v1/experiments")
    keep_uses(session, prepared.uses, experiment.operation_id)
    after_commit(session, partial(queue.send, PLAY_NEXT_RUN))
    return experiment


def newest_experiments(
    session: Session, principal: Principal, asked: PageAsked
) -> Rows[Experiment]:
    """List experiments newest first, without their runs."""
    large: Any = Experiment.runs
    return newest_owned(
        session, principal, Experiment, asked, options=[defer(large, raiseload=True)]
    )


def get_experiment(session: Session, principal: Principal, experiment_id: str) -> Experiment:
    """Find an experiment.

    Raises NotFound for another tenant's experiment too, Conflict for one that cannot be read.
    """
    found = find_owned(session, principal, Experiment, experiment_id, noun="experiment")
    refuse_unreadable(found.request)
    return found


def _checked(session: Session, body: ExperimentBody, found: Measured) -> AnyExperiment:
    """Return the experiment. Raises Invalid at the field that the library refuses."""
    try:
        experiment = experiment_of(session, body, found)
    except InputError as error:
        raise invalid_input(error, _pointer(error, body)) from None
    if isinstance(experiment, Autoscaling) and isinstance(experiment.trained, Scenario):
        _check_jobs(len(experiment.trained.workload))
    return experiment


def _pointer(error: InputError, body: ExperimentBody) -> str:
    """Return the pointer into the request of a field of the library."""
    if isinstance(body, AutoscalingBody) and body.trace is not None:
        if isinstance(body.trace, CsvTrace) and isinstance(error, TraceError):
            return "/trace/text"
        if error.field in OF_TRACE:
            return f"/trace/{error.field}"
    return f"/{error.field}"


def _check_cluster(body: ExperimentBody) -> None:
    """Raise Invalid for a cluster that cannot be read, or is larger than the service plays."""
    try:
        cluster = Cluster.parse(body.cluster, racks=True)
    except ClusterError as error:
        raise invalid_input(error, "/cluster") from None
    if isinstance(body, AutoscalingBody):
        _check_most("/cluster", "nodes", len(cluster.nodes), MAX_RENTED_NODES)
    _check_most("/cluster", "GPUs", cluster.gpu_count, MAX_SIMULATED_GPUS)


def _check_jobs(jobs: int) -> None:
    _check_most("/trace", "jobs", jobs, MAX_RENTED_JOBS)


def _check_most(pointer: str, what: str, count: int, most: int) -> None:
    if count > most:
        message = f"The experiment has more {what} than this service plays."
        remedy = f"Give at most {most}, or use `maat autoscale` on a machine of your own."
        raise Invalid(message, errors=[FieldError(pointer, "too_large", message, remedy, count)])
