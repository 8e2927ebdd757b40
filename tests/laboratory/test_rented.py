"""Tests of a training on rented nodes: its cost, the price of growing, the published comparison.

Against the published figures only the sign is tested.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from simulation.small import LIMITS, truth

from maat.laboratory.rented import Rented, Training, train
from maat.scheduling.autoscaling import (
    Autoscaler,
    FastBatch,
    GoodputAutoscaler,
    ScalingInput,
    ThroughputAutoscaler,
)
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import TraceError
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Job
from maat.simulation.fidelity import fidelity
from maat.simulation.world_models import Model, catalog_models
from maat.vocabulary import ProfilingMode


@dataclass(frozen=True)
class Always:
    """So many nodes at any time; `largest`: with all that their GPUs hold."""

    nodes: int
    largest: bool = False
    name: str = "always"

    def node_count(self, scaling: ScalingInput) -> int:
        return self.nodes

    def batch(self, scaling: ScalingInput, job: Job, *, gpu_count: int) -> BatchPlan | None:
        return (
            ThroughputAutoscaler().batch(scaling, job, gpu_count=gpu_count)
            if self.largest
            else None
        )


def model(restart_seconds: float = 0.0) -> Model:
    """Return a model whose steps of ten samples take one second, with batches of up to 400.

    There is no noise, so a larger batch gains nothing.
    """
    return Model("m", truth(), restart_seconds, {"t4": LIMITS}, {}, {"t4": 10.0})


def rent(
    autoscaler: Autoscaler,
    trained: Model,
    cluster: str = "t4=4x1",
    profiling: ProfilingMode = ProfilingMode.ORACLE,
) -> Rented:
    return train(
        Training(trained, Cluster.parse(cluster), fidelity("paper"), profiling=profiling),
        autoscaler,
    )


def test_nodes_are_paid_from_the_first_moment_to_the_end_of_training() -> None:
    run = rent(Always(1), model())
    assert run.seconds == pytest.approx(100.0)
    assert run.node_seconds == pytest.approx(run.seconds)
    assert rent(Always(3), model()).node_seconds == pytest.approx(
        3 * rent(Always(3), model()).seconds
    )


def test_the_largest_batch_is_used_where_it_is_worth_nothing_and_costs_efficiency() -> None:
    chosen, largest = rent(Always(2), model()), rent(Always(2, largest=True), model())
    assert chosen.efficiency == pytest.approx(1.0)
    assert largest.efficiency < 0.3
    assert largest.seconds >= chosen.seconds


def test_growing_restarts_the_job() -> None:
    slow = Model("m", truth(noise_scale=1e6, work=40_000.0), 20.0, {"t4": LIMITS}, {}, {"t4": 10.0})
    run = rent(GoodputAutoscaler(), slow)
    assert run.rented[0] == (0.0, 1)
    assert [nodes for _, nodes in run.rented] == sorted(nodes for _, nodes in run.rented)
    assert run.rented[-1][1] == 4
    assert run.restarts == len(run.rented) - 1 - sum(time == 0.0 for time, _ in run.rented[1:])


def test_who_knows_nothing_beforehand_rents_one_node_until_it_has_run() -> None:
    slow = Model("m", truth(noise_scale=1e6, work=40_000.0), 0.0, {"t4": LIMITS}, {}, {"t4": 10.0})
    known, blind = (
        rent(GoodputAutoscaler(), slow, profiling=mode)
        for mode in (ProfilingMode.ORACLE, ProfilingMode.NO_PROFILE)
    )
    assert known.rented[1][0] == 0.0
    assert blind.rented[1][0] > 0.0
    assert blind.rented[-1][1] == 4


def test_the_batch_of_most_throughput_is_worth_less_on_few_nodes_than_what_they_hold() -> None:
    slow = Model("m", truth(noise_scale=30.0, work=40_000.0), 0.0, {"t4": LIMITS}, {}, {"t4": 10.0})
    held, most = (
        rent(ThroughputAutoscaler(fast_batch=batch), slow, cluster="t4=2x1") for batch in FastBatch
    )
    assert most.efficiency < held.efficiency


def test_a_model_that_was_never_measured_there_is_refused_by_name() -> None:
    with pytest.raises(TraceError, match="model"):
        rent(Always(1), model(), cluster="rtx=2x8")


def test_goodput_trains_imagenet_for_less_and_in_more_time_than_throughput() -> None:
    training = Training(
        catalog_models()["imagenet"], Cluster.parse("t4=16x4"), fidelity("pollux-artifact")
    )
    ours, theirs = train(training, GoodputAutoscaler()), train(training, ThroughputAutoscaler())
    assert 0.65 < ours.node_seconds / theirs.node_seconds < 0.85, "published: 0.75"
    assert 1.0 < ours.seconds / theirs.seconds < 1.4, "published: 1.06"
    assert ours.efficiency > theirs.efficiency
