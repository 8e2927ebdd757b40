"""Tests of a training on rented nodes: its cost, the price of growing, the published comparison.

Against the published figures only the sign is tested.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from simulation.small import LIMITS, truth

from maat.laboratory.rental_bound import fastest_epochs, least_seconds
from maat.laboratory.rented import Rented, Training, rent, train
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
from maat.simulation.conditions import Conditions
from maat.simulation.fidelity import fidelity
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import Model, catalog_models
from maat.vocabulary import ProfilingMode
from maat.workloads.workloads import TraceJob, Workload


@dataclass(frozen=True)
class Always:
    """So many nodes at any time; `largest`: with all that their GPUs hold."""

    nodes: int
    largest: bool = False
    name: str = "always"

    def share(self, scaling: ScalingInput) -> float:
        return 1.0

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


def trained_on(
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
    run = trained_on(Always(1), model())
    assert run.seconds == pytest.approx(100.0)
    assert run.node_seconds == pytest.approx(run.seconds)
    assert trained_on(Always(3), model()).node_seconds == pytest.approx(
        3 * trained_on(Always(3), model()).seconds
    )


def test_the_largest_batch_is_used_where_it_is_worth_nothing_and_costs_efficiency() -> None:
    chosen, largest = trained_on(Always(2), model()), trained_on(Always(2, largest=True), model())
    assert chosen.efficiency == pytest.approx(1.0)
    assert largest.efficiency < 0.3
    assert largest.seconds >= chosen.seconds


def test_growing_restarts_the_job() -> None:
    slow = Model("m", truth(noise_scale=1e6, work=40_000.0), 20.0, {"t4": LIMITS}, {}, {"t4": 10.0})
    run = trained_on(GoodputAutoscaler(), slow)
    assert run.rented[0] == (0.0, 1)
    assert [nodes for _, nodes in run.rented] == sorted(nodes for _, nodes in run.rented)
    assert run.rented[-1][1] == 4
    assert run.restarts == len(run.rented) - 1 - sum(time == 0.0 for time, _ in run.rented[1:])


def test_who_knows_nothing_beforehand_rents_one_node_until_it_has_run() -> None:
    slow = Model("m", truth(noise_scale=1e6, work=40_000.0), 0.0, {"t4": LIMITS}, {}, {"t4": 10.0})
    known, blind = (
        trained_on(GoodputAutoscaler(), slow, profiling=mode)
        for mode in (ProfilingMode.ORACLE, ProfilingMode.NO_PROFILE)
    )
    assert known.rented[1][0] == 0.0
    assert blind.rented[1][0] > 0.0
    assert blind.rented[-1][1] == 4


def test_the_batch_of_most_throughput_is_worth_less_on_few_nodes_than_what_they_hold() -> None:
    slow = Model("m", truth(noise_scale=30.0, work=40_000.0), 0.0, {"t4": LIMITS}, {}, {"t4": 10.0})
    held, most = (
        trained_on(ThroughputAutoscaler(fast_batch=batch), slow, cluster="t4=2x1")
        for batch in FastBatch
    )
    assert most.efficiency < held.efficiency


def test_a_workload_rents_for_all_its_jobs_and_pays_to_the_end_of_the_last() -> None:
    """Each of two jobs trains for 100 s on a GPU of its own, whatever else is rented.

    For one job two nodes are half of the ideal, for two jobs four.
    """
    jobs = tuple(
        TraceJob(name=name, submit_seconds=at, model="m", gpu_count=1)
        for name, at in (("a", 0.0), ("b", 60.0))
    )
    scenario = Scenario(
        Workload("two", jobs, "small"),
        {"m": model()},
        Cluster.parse("t4=4x1"),
        policy="fifo",
        placer="packed-sticky",
        conditions=Conditions(fidelity=fidelity("paper").revealing(ProfilingMode.ORACLE)),
    )
    fixed = rent(scenario, Always(3))
    assert fixed.seconds == pytest.approx(160.0)
    assert fixed.node_seconds == pytest.approx(480.0)
    assert fixed.avg_jct_seconds == pytest.approx(100.0)
    chosen = rent(scenario, GoodputAutoscaler())
    assert chosen.rented == ((0.0, 1), (0.0, 2), (60.0, 4))
    assert chosen.node_seconds == pytest.approx(2 * 60 + 4 * 100)


def test_what_a_job_asks_for_is_rented_where_the_policy_grants_requests() -> None:
    """Nothing is known of its speed before it runs, and three GPUs are three nodes."""
    job = TraceJob(name="wide", submit_seconds=0.0, model="m", gpu_count=3)
    scenario = Scenario(
        Workload("one", (job,), "small"),
        {"m": model()},
        Cluster.parse("t4=4x1"),
        policy="fifo",
        placer="packed-sticky",
        conditions=Conditions(fidelity=fidelity("paper").revealing(ProfilingMode.NO_PROFILE)),
    )
    run = rent(scenario, GoodputAutoscaler())
    assert run.rented[:2] == ((0.0, 1), (0.0, 3))
    assert run.unfinished == 0


def test_no_schedule_is_faster_at_its_cost_than_the_bound() -> None:
    """Two epochs; on one node 100 s each, on two 60 s and 90 s.

    For 200 node-seconds both run on one node: 200 s. Ten node-seconds more buy half of the first
    epoch on two nodes, which saves 20 s.
    """
    seconds = np.array([[100.0, 60.0], [100.0, 90.0]])
    assert least_seconds(seconds, node_seconds=200.0) == pytest.approx(200.0, abs=0.01)
    assert least_seconds(seconds, node_seconds=210.0) == pytest.approx(180.0, abs=0.01)
    assert least_seconds(seconds, node_seconds=1e9) == pytest.approx(150.0)
    assert least_seconds(seconds, node_seconds=100.0) > 10_000.0


def test_a_training_never_beats_the_bound() -> None:
    """Four epochs of 25 s, on one node as on two: without noise a larger batch gains nothing."""
    training = Training(model(), Cluster.parse("t4=2x1"), fidelity("pollux-artifact"))
    epochs = fastest_epochs(training)
    assert epochs == pytest.approx(np.full((4, 2), 25.0), rel=1e-6)
    run = train(training, Always(1))
    assert run.seconds >= least_seconds(epochs, node_seconds=run.node_seconds) - 1e-6


def test_a_model_that_was_never_measured_there_is_refused_by_name() -> None:
    with pytest.raises(TraceError, match="model"):
        trained_on(Always(1), model(), cluster="rtx=2x8")


def test_goodput_trains_imagenet_for_less_and_in_more_time_than_throughput() -> None:
    training = Training(
        catalog_models()["imagenet"], Cluster.parse("t4=16x4"), fidelity("pollux-artifact")
    )
    ours, theirs = train(training, GoodputAutoscaler()), train(training, ThroughputAutoscaler())
    assert 0.65 < ours.node_seconds / theirs.node_seconds < 0.85, "published: 0.75"
    assert 1.0 < ours.seconds / theirs.seconds < 1.4, "published: 1.06"
    assert ours.efficiency > theirs.efficiency
