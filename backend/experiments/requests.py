"""Converts a request into the laboratory's experiment. The worker calls it too."""

from __future__ import annotations

from sqlmodel import Session

from backend.measurements.uses import NOTHING_MEASURED, Measured
from backend.simulations.traces import workload_of
from maat.api.experiments import AutoscalingBody, ExperimentBody, RentedTrace, TuningBody
from maat.api.simulations import UploadedTrace
from maat.laboratory.experiments import (
    Autoscaling,
    ElasticAgainstStatic,
    Thresholds,
    autoscalers_of,
    check_one_given,
    check_policy_is_used,
)
from maat.laboratory.rented import Training
from maat.laboratory.requested import Conditions, Fidelity, Scenario, fidelity_drawing, named_model
from maat.laboratory.setup import GivenTrace, Setup
from maat.laboratory.tuning import Tuning
from maat.scheduling.cluster import Cluster

AnyExperiment = Autoscaling | ElasticAgainstStatic


def experiment_of(
    session: Session, body: ExperimentBody, measured: Measured = NOTHING_MEASURED
) -> AnyExperiment:
    """Convert a request. Raises InputError naming field, value and remedy."""
    cluster = Cluster.parse(body.cluster, racks=True)
    rules = fidelity_drawing(body.fidelity, None, measured=False)
    if isinstance(body, TuningBody):
        return _searches(body, cluster, rules, measured)
    check_one_given(body.model, body.trace)
    check_policy_is_used(body.policy, body.trace)
    thresholds = Thresholds(body.upper, body.lower, body.window, body.give_back_below)
    autoscalers = autoscalers_of(cluster, thresholds, body.fixed_nodes)
    trained = (
        Training(named_model(body.model or "", measured.profiles), cluster, rules)
        if body.trace is None
        else _workload(session, body, body.trace, cluster, rules, measured)
    )
    return Autoscaling(trained, autoscalers)


def _workload(
    session: Session,
    body: AutoscalingBody,
    trace: RentedTrace,
    cluster: Cluster,
    rules: Fidelity,
    measured: Measured,
) -> Scenario:
    if isinstance(trace, UploadedTrace):
        raise TypeError("an uploaded trace is stored as its text")
    return Setup(
        GivenTrace(workload_of(session, trace, measured.models)),
        measured.models,
        cluster,
        policy=body.policy,
        policy_parameters=body.policy_parameters,
        conditions=Conditions(fidelity=rules),
        seed=body.seed,
    ).scenario()


def _searches(
    body: TuningBody, cluster: Cluster, rules: Fidelity, measured: Measured
) -> ElasticAgainstStatic:
    elastic = Tuning(
        named_model(body.model, measured.profiles),
        cluster,
        rules,
        policy=body.policy,
        trials=body.trials,
        at_a_time=body.at_a_time,
        static_batch_per_gpu=body.static_batch_per_gpu,
        work_scale=body.work_scale,
        seed=body.seed,
    )
    return ElasticAgainstStatic(elastic, body.static_gpus)
