"""Tests of a run's series: exact step functions that agree with the ledgers of its jobs."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from small import under

from maat.scheduling.cluster import Cluster
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.failures import NodeFailure, RandomFailures
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.interference import Interference
from maat.simulation.record import Cancelled, Position, SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.series import RunSeries, Stretches
from maat.simulation.world_models import catalog_models
from maat.vocabulary import ProfilingMode
from maat.workloads.workloads import TraceJob, Workload

MODELS = catalog_models()
T4 = Cluster.parse("t4=2x4")
# GPUs that profile a job before it may run are none of the cluster's rounds.
UNPROFILED = FIDELITIES["paper"].revealing(ProfilingMode.ORACLE)


def run_of(*jobs: TraceJob, cluster: Cluster = T4, policy: str = "fifo", **how: object) -> Scenario:
    trace = Workload("by hand", tuple(sorted(jobs, key=lambda job: job.submit_seconds)), "sia")
    placer = how.pop("placer", suiting_placer(policy))
    return Scenario(trace, MODELS, cluster, policy=policy, placer=placer, **how)  # type: ignore[arg-type]


def job(name: str, submit: float = 0.0, gpus: int = 1, **how: object) -> TraceJob:
    given = {"model": "cifar10", "batch_size": None, "work_scale": 0.05, **how}
    return TraceJob(name=name, submit_seconds=submit, gpu_count=gpus, **given)  # type: ignore[arg-type]


@st.composite
def scenarios(draw: DrawFn) -> Scenario:
    """Draw a few jobs under any policy; nodes may fail, and GPUs be shared or unequal."""
    jobs = [
        job(
            f"job-{number}",
            draw(st.sampled_from((0.0, 59.9, 60.0, 431.7, 4000.0))),
            draw(st.sampled_from((1, 1, 2, 4, 8))),
            model=draw(st.sampled_from(("cifar10", "bert"))),
            work_scale=draw(st.sampled_from((0.002, 0.05, 0.2))),
        )
        for number in range(draw(st.integers(1, 6)))
    ]
    cluster = Cluster.parse(draw(st.sampled_from(("t4=2x4", "t4=1x4,a100=1x4"))))
    shared = draw(st.sampled_from((1, 1, 2)))
    conditions = Conditions(
        fidelity=UNPROFILED,
        failures=draw(
            st.sampled_from(
                ((), (NodeFailure(700.0, cluster.nodes[0].id, 1000.0),), RandomFailures(1.0, 900.0))
            )
        ),
        interference=Interference.constant(1.3) if shared > 1 else None,
        locality_penalties=draw(st.sampled_from(({}, {"cifar10": 1.5}))),
    )
    return run_of(
        *jobs,
        cluster=replace(cluster, jobs_per_gpu=shared),
        policy=draw(st.sampled_from(POLICIES.names)),
        conditions=conditions,
        max_rounds=300,
    )


def seconds_by_job(series: RunSeries, which: Stretches) -> list[float]:
    spent = np.bincount(which.job, which.end - which.start, len(series.jobs))
    return list(spent.tolist())


def gpu_seconds(result: SimulationResult) -> dict[str, float]:
    """The integral of GPUs in use, by type."""
    used = result.series.gpus
    lasted = np.diff(used.times)
    each = (used.counts[:-1] * lasted[:, None]).sum(axis=0) if len(used.times) else []
    return dict(zip(result.series.types, each, strict=False))


@settings(max_examples=25, deadline=None)
@given(scenario=scenarios())
def test_the_series_agree_with_the_ledgers_of_the_jobs(scenario: Scenario) -> None:
    result = simulate(scenario)
    series, records = result.series, result.records
    assert series.jobs == tuple(record.name for record in records)

    held = series.stretches.chosen(series.stretches.gpu_count > 0)
    waits = series.stretches.waits
    by_ledger: dict[str, float] = {}
    for number, record in enumerate(records):
        lived = (series.end_time if record.finish is None else record.finish) - record.submit
        waited = seconds_by_job(series, waits)[number]
        assert waited + seconds_by_job(series, held)[number] == pytest.approx(lived)
        if record.finish is not None:
            assert waited == pytest.approx(record.waited, abs=1e-6)
        for kind, seconds in record.gpu_seconds.items():
            by_ledger[kind] = by_ledger.get(kind, 0.0) + seconds

    in_use = gpu_seconds(result)
    for kind, seconds in by_ledger.items():
        if scenario.cluster.jobs_per_gpu == 1:
            assert in_use.get(kind, 0.0) == pytest.approx(seconds, abs=1e-3)
        else:
            assert seconds / 2 - 1e-3 <= in_use.get(kind, 0.0) <= seconds + 1e-3
    assert (series.gpus.counts >= 0).all()
    assert (series.gpus.counts <= scenario.cluster.usable_gpus).all()


@settings(max_examples=15, deadline=None)
@given(scenario=scenarios())
def test_efficiency_lies_above_0_and_at_most_at_1(scenario: Scenario) -> None:
    series = simulate(scenario).series
    training = series.stretches.chosen(series.stretches.batch_size > 0)
    for known in (training.efficiency, series.efficiency.mean, series.efficiency.by_gpu):
        measured = known[~np.isnan(known)]
        assert ((measured > 0) & (measured <= 1)).all()
    assert np.isnan(series.stretches.waits.efficiency).all()


@settings(max_examples=10, deadline=None)
@given(scenario=scenarios())
def test_a_run_that_is_played_again_or_round_by_round_has_the_same_series(
    scenario: Scenario,
) -> None:
    first = simulate(scenario).series
    for again in (simulate(scenario).series, simulate(scenario, every_round=True).series):
        assert_same(first.stretches, again.stretches)
        assert_same(first.gpus, again.gpus)
        assert_same(first.efficiency, again.efficiency)
        assert_same(first.nodes, again.nodes)


def assert_same(one: object, other: object) -> None:
    for each in fields(one):  # type: ignore[arg-type]
        np.testing.assert_array_equal(getattr(one, each.name), getattr(other, each.name))


def test_a_stopped_run_has_the_beginning_of_the_whole_series() -> None:
    jobs = (job("a", work_scale=0.5), job("b", 30.0, 4, work_scale=0.5))
    scenario = run_of(*jobs, policy="las")  # which plays every round

    def stop(at: Position) -> None:
        if at.now >= 600:
            raise Cancelled

    part, whole = simulate(scenario, on_progress=stop).series, simulate(scenario).series
    assert 600 <= part.end_time < whole.end_time
    for name in ("a", "b"):
        begun, lived = part.of_job(name), whole.of_job(name)
        assert len(begun) <= len(lived)
        np.testing.assert_array_equal(begun.start, lived.start[: len(begun)])
        np.testing.assert_array_equal(begun.batch_size, lived.batch_size[: len(begun)])
        assert begun.end[-1] == part.end_time


def test_a_wait_is_an_interval_and_a_restart_trains_nothing() -> None:
    jobs = (job("a", gpus=8, batch_size=256), job("b", 100.0, gpus=8, batch_size=512))
    result = simulate(run_of(*jobs))
    series, (a, b) = result.series, result.records
    waits = series.of_job("b").waits
    assert (waits.start.tolist(), waits.end.tolist()) == ([100.0], [b.start])

    life = series.of_job("a")
    assert (life.start[0], life.end[-1]) == (0.0, a.finish)
    restarting = life.chosen((life.gpu_count > 0) & (life.batch_size == 0))
    pause = float(MODELS["cifar10"].restart_seconds)
    assert (restarting.end - restarting.start).tolist() == [pause]
    training = life.chosen(life.batch_size > 0)
    assert training.batch_size.tolist() == [256] * len(training)
    assert set(training.gpu_count.tolist()) == {8}


def test_the_agents_own_batch_sizes_are_recorded_where_no_policy_chooses_one() -> None:
    """Pollux's figure 6: larger batches as training goes on, at a lower efficiency than M0's."""
    result = simulate(run_of(job("a", gpus=4, work_scale=1.0), policy="pollux"))
    life = result.series.of_job("a")
    training = life.chosen(life.batch_size > 0)
    assert len(set(training.batch_size.tolist())) > 1
    assert training.batch_size[0] < training.batch_size.max()
    assert training.efficiency.min() < 1


def test_the_mean_counts_each_job_once_or_by_its_gpus() -> None:
    jobs = (job("a", gpus=1, batch_size=128), job("b", gpus=4, batch_size=1024))
    series = simulate(run_of(*jobs, cluster=Cluster.parse("t4=2x4"))).series
    at = 120.0  # both train
    of = {
        name: life.efficiency[(life.start <= at) & (at < life.end)].item()
        for name in ("a", "b")
        for life in [series.of_job(name)]
    }
    row = int(np.searchsorted(series.efficiency.times, at, side="right")) - 1
    assert of["b"] < of["a"]
    assert series.efficiency.mean[row] == pytest.approx((of["a"] + of["b"]) / 2)
    assert series.efficiency.by_gpu[row] == pytest.approx((of["a"] + 4 * of["b"]) / 5)


def test_nodes_leave_at_a_failure_and_return_once_repaired() -> None:
    cluster = Cluster.parse("t4=2x4,a100=1x8")
    failures = (
        NodeFailure(125.5, cluster.nodes[0].id, 300.0),
        NodeFailure(200.0, cluster.nodes[2].id, 50.0),
    )
    scenario = run_of(job("a", gpus=4, work_scale=0.3), cluster=cluster)
    nodes = simulate(under(scenario, failures=failures)).series.nodes
    assert nodes.times.tolist() == [0.0, 125.5, 200.0, 250.0, 425.5]
    assert nodes.nodes.tolist() == [3, 2, 1, 2, 3]
    kind = {name: column for column, name in enumerate(cluster.type_names)}
    assert nodes.gpus[:, kind["t4"]].tolist() == [8, 4, 4, 4, 8]
    assert nodes.gpus[:, kind["a100"]].tolist() == [8, 8, 0, 8, 8]


def test_a_failure_ends_the_use_of_gpus_at_its_moment() -> None:
    failures = (
        NodeFailure(130.0, T4.nodes[0].id, 600.0),
        NodeFailure(130.0, T4.nodes[1].id, 600.0),
    )
    result = simulate(under(run_of(job("a", gpus=8)), failures=failures))
    waits = result.series.of_job("a").waits
    assert 130.0 in waits.start.tolist()
    used = result.series.gpus
    assert used.counts[used.times == 130.0].tolist() == [[0]]


def test_a_gpu_that_two_jobs_share_is_in_use_once() -> None:
    jobs = (job("a", gpus=4, batch_size=128), job("b", gpus=4, batch_size=128))
    cluster = replace(Cluster.parse("t4=1x4"), jobs_per_gpu=2)
    scenario = run_of(*jobs, cluster=cluster, policy="sjf-ffs")
    result = simulate(under(scenario, interference=Interference.constant(1.5)))
    assert result.series.gpus.counts.max() == 4
    both = result.series.stretches
    assert both.slowdown[both.batch_size > 0].max() == 1.5
    assert both.variability[both.gpu_count > 0].tolist() == [1.0] * int((both.gpu_count > 0).sum())


def test_the_slowdown_by_placement_is_locality_times_variability() -> None:
    scores = {"A": (1.0, 1.0, 2.0, 1.0)}
    nodes = Cluster.parse("t4=2x2")
    cluster = replace(nodes, scores=scores)
    scenario = run_of(job("a", gpus=4), cluster=cluster)
    under_penalty = under(scenario, locality_penalties={"cifar10": 1.5})
    series = simulate(under_penalty).series
    life = series.of_job("a")
    training = life.chosen(life.batch_size > 0)
    assert set(training.locality.tolist()) == {1.5}
    expected = training.locality * training.variability
    assert training.slowdown == pytest.approx(expected)
    assert series.placement_slowdown.tolist() == pytest.approx([expected[0]])
