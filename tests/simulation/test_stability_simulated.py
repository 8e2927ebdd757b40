"""Simulated jobs that must stay: none moves before its least stay or more often than it may."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from simulation.test_passing_over import MODELS, workload

from maat.scheduling.cluster import Cluster
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.stability import HOUR_SECONDS, Stability
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.failures import NodeFailure
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.interference import Interference
from maat.simulation.record import AllocationSpan, SimulationResult
from maat.simulation.scenario import Scenario
from maat.workloads.workloads import TraceJob

COUNTED = sorted(name for name, one in FIDELITIES.items() if not one.free_moves_of_same_shape)


@st.composite
def scenarios(draw: DrawFn) -> Scenario:
    """Draw a few jobs that crowd a small cluster, under any policy, placer and bounds."""
    jobs = tuple(
        TraceJob(
            name=f"job-{number}",
            submit_seconds=draw(st.sampled_from((0.0, 60.0, 431.7, 1800.0, 4000.0))),
            model=draw(st.sampled_from(("cifar10", "bert"))),
            gpu_count=draw(st.sampled_from((1, 1, 2, 4))),
            work_scale=draw(st.sampled_from((0.01, 0.05, 0.2))),
        )
        for number in range(draw(st.integers(2, 6)))
    )
    policy = draw(st.sampled_from((*POLICIES.names, "sia", "sia")))
    shared = draw(st.sampled_from((1, 1, 1, 2)))
    cluster = Cluster.parse(draw(st.sampled_from(("t4=2x4", "t4=1x4,a100=1x4"))))
    return Scenario(
        workload(*jobs),
        MODELS,
        replace(cluster, jobs_per_gpu=shared),
        policy=policy,
        placer=draw(st.sampled_from((suiting_placer(policy), *PLACERS.names))),
        conditions=Conditions(
            fidelity=FIDELITIES[draw(st.sampled_from(COUNTED))],
            interference=Interference.constant(1.3) if shared > 1 else None,
            stability=Stability(
                draw(st.sampled_from((None, 100.0, 600.0, 1800.0, 5000.0))),
                draw(st.sampled_from((None, 1, 2, 4))),
            ),
        ),
        max_rounds=300,
    )


def spans_by_job(result: SimulationResult) -> dict[str, list[AllocationSpan]]:
    spans: dict[str, list[AllocationSpan]] = {}
    for span in result.spans:
        spans.setdefault(span.job, []).append(span)
    return spans


def moves(spans: list[AllocationSpan]) -> list[tuple[float, float]]:
    """When the job got GPUs that a round took or changed, and when that was."""
    return [(held.start, after.start) for held, after in pairwise(spans) if held.gpu_count]


@settings(max_examples=40)
@given(scenario=scenarios())
def test_no_job_moves_before_its_least_stay_or_more_often_than_it_may(scenario: Scenario) -> None:
    assert_bounds_are_kept(scenario)


@pytest.mark.long
@settings(max_examples=1000)
@given(scenario=scenarios())
def test_no_job_of_many_more_moves_sooner_or_more_often(scenario: Scenario) -> None:
    assert_bounds_are_kept(scenario)


def assert_bounds_are_kept(scenario: Scenario) -> None:
    bounds = scenario.conditions.stability
    for spans in spans_by_job(simulate(scenario)).values():
        moved = moves(spans)
        if bounds.least_stay_seconds is not None:
            assert all(end - begin >= bounds.least_stay_seconds for begin, end in moved)
        if bounds.most_moves_per_hour is not None:
            ends = [end for _, end in moved]
            beyond = ends[bounds.most_moves_per_hour :]
            assert all(
                later - first >= HOUR_SECONDS for first, later in zip(ends, beyond, strict=False)
            )


def crowded(stability: Stability, *, policy: str = "sia") -> Scenario:
    """Jobs that come one after another, so that Sia moves the first ones again and again."""
    jobs = (
        TraceJob(
            name=f"job-{n}",
            submit_seconds=300.0 * n,
            model="cifar10",
            gpu_count=2,
            work_scale=0.3,
        )
        for n in range(6)
    )
    return Scenario(
        workload(*jobs),
        MODELS,
        Cluster.parse("t4=1x4,a100=1x4"),
        policy=policy,
        conditions=Conditions(stability=stability),
    )


def restarts(scenario: Scenario) -> int:
    return simulate(scenario).metrics.restarts


def test_bounds_lower_the_restarts_and_every_job_ends() -> None:
    free = restarts(crowded(Stability()))
    assert restarts(crowded(Stability(least_stay_seconds=0.0))) == free
    for bounds in (Stability(least_stay_seconds=1800.0), Stability(most_moves_per_hour=1)):
        result = simulate(crowded(bounds))
        assert result.complete
        assert result.metrics.restarts < free


def test_a_failed_node_moves_a_job_that_must_stay() -> None:
    failed = crowded(Stability(least_stay_seconds=1e6))
    failures = (NodeFailure(600.0, "a100-0", 1000.0), NodeFailure(601.0, "t4-0", 500.0))
    failed = replace(failed, conditions=replace(failed.conditions, failures=failures))
    result = simulate(failed)
    assert result.complete
    assert sum(record.interruptions for record in result.records) > 0
