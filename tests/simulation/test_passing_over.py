"""Tests of skipped rounds: the figures equal those of a run with all rounds; no gap is too long."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from maat.laboratory.fairness import contention_of_life
from maat.scheduling.cluster import Cluster
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.reservations import Reservation
from maat.scheduling.stability import NO_BOUNDS, Stability
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.failures import NodeFailure, Outages, RandomFailures
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.interference import Interference
from maat.simulation.record import Cancelled, Position, SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.workloads.workloads import TraceJob, Workload

MODELS = catalog_models()
UNIX_TIME = 1_500_000_000.0
SAYS_HOW_LONG = ("fifo", "tiresias")


def workload(*jobs: TraceJob) -> Workload:
    return Workload("by hand", tuple(sorted(jobs, key=lambda job: job.submit_seconds)), "sia")


@st.composite
def scenarios(draw: DrawFn) -> Scenario:
    """Draw a few jobs with idle hours between them, under any policy and placer.

    Their GPUs may fail, be reserved or be shared.
    """
    jobs, submit = [], draw(st.sampled_from((0.0, 59.9, 60.0, 5000.0)))
    for number in range(draw(st.integers(1, 6))):
        gpus = draw(st.sampled_from((1, 1, 2, 3, 4, 8)))
        batch = draw(st.sampled_from((128, 256, None)))
        jobs.append(
            TraceJob(
                name=f"job-{number}",
                submit_seconds=submit,
                model="cifar10",
                gpu_count=gpus,
                batch_size=batch,
                work_scale=draw(st.sampled_from((0.002, 0.05, 0.3))),
                preemptible=draw(st.booleans()),
            )
        )
        submit += draw(st.sampled_from((0.0, 1.0, 60.0, 431.7, 3600.0, 20_000.0)))
    cluster = Cluster.parse(draw(st.sampled_from(("t4=2x4", "t4=3x2", "t4=1x4,a100=1x4"))))
    policy = draw(st.sampled_from((*SAYS_HOW_LONG, *SAYS_HOW_LONG, *POLICIES.names)))
    shared = draw(st.sampled_from((1, 1, 2)))
    failures = draw(
        st.sampled_from(
            ((), (), (NodeFailure(700.0, cluster.nodes[0].id, 1000.0),), RandomFailures(1.0, 900.0))
        )
    )
    reserved = draw(
        st.sampled_from(((), (), (Reservation("t4", 3, tenant="other", start=200.0, end=4000.0),)))
    )
    conditions = Conditions(
        fidelity=FIDELITIES[draw(st.sampled_from(sorted(FIDELITIES)))],
        round_seconds=draw(st.sampled_from((None, 37.3))),
        failures=failures,
        reservations=reserved,
        interference=Interference.constant(1.3) if shared > 1 else None,
        stability=draw(st.sampled_from((NO_BOUNDS, NO_BOUNDS, Stability(1000.0, 2)))),
    )
    return Scenario(
        workload(*jobs),
        MODELS,
        replace(cluster, jobs_per_gpu=shared),
        policy=policy,
        placer=draw(
            st.sampled_from((suiting_placer(policy), suiting_placer(policy), *PLACERS.names))
        ),
        policy_parameters=draw(st.sampled_from(({"thresholds": "100,900"}, {"promote_after": 1.0})))
        if policy == "tiresias"
        else {},
        conditions=conditions,
        max_rounds=300,
    )


def series(result: SimulationResult) -> dict[float, tuple[int, ...]]:
    """By time of a round: jobs, and GPUs held by type."""
    return dict(
        zip(
            result.round_times,
            zip(result.contention, *result.gpus_by_type.values(), strict=True),
            strict=True,
        )
    )


@settings(max_examples=15)
@given(scenario=scenarios())
def test_the_figures_are_those_of_a_run_that_plays_every_round(scenario: Scenario) -> None:
    assert_figures_are_those_of_every_round(scenario)


@pytest.mark.long
@settings(max_examples=500)
@given(scenario=scenarios())
def test_the_figures_of_many_more_scenarios_are_those_of_a_run_that_plays_every_round(
    scenario: Scenario,
) -> None:
    assert_figures_are_those_of_every_round(scenario)


def assert_figures_are_those_of_every_round(scenario: Scenario) -> None:
    whole, quick = simulate(scenario, every_round=True), simulate(scenario)
    assert quick.records == whole.records
    assert quick.metrics == whole.metrics
    assert quick.spans == whole.spans
    assert (quick.rounds, quick.end_time, quick.complete) == (
        whole.rounds,
        whole.end_time,
        whole.complete,
    )
    assert quick.unfinished_because == whole.unfinished_because
    assert series(quick).items() <= series(whole).items()
    left_out = set(series(whole)) - set(series(quick))
    assert all(set(series(whole)[time]) == {0} for time in left_out), (
        "nothing but idle rounds is left out of the series"
    )
    for record in whole.records:
        if record.finish is not None:
            lived = [
                contention_of_life(result, record.submit, record.finish)
                for result in (whole, quick)
            ]
            assert lived[0] == lived[1]


@pytest.mark.parametrize("policy", SAYS_HOW_LONG)
def test_a_round_that_repeats_the_last_is_not_played(policy: str) -> None:
    long = workload(
        TraceJob(name="a", submit_seconds=0.0, model="cifar10", gpu_count=4, batch_size=128),
        TraceJob(name="b", submit_seconds=100.0, model="cifar10", gpu_count=8, batch_size=256),
    )
    result = simulate(
        Scenario(long, MODELS, Cluster.parse("t4=2x4"), policy=policy, placer="packed-sticky")
    )
    assert result.complete
    assert result.rounds > 60
    assert len(result.policy_seconds) < 20


@pytest.mark.parametrize("policy", POLICIES.names)
def test_a_trace_in_unix_time_is_played_like_one_from_zero(policy: str) -> None:
    jobs = (
        TraceJob(
            name="a",
            submit_seconds=0.0,
            model="cifar10",
            gpu_count=2,
            batch_size=128,
            work_scale=0.02,
        ),
        TraceJob(
            name="b",
            submit_seconds=100.0,
            model="cifar10",
            gpu_count=4,
            batch_size=256,
            work_scale=0.02,
        ),
        TraceJob(
            name="c",
            submit_seconds=9e6,
            model="cifar10",
            gpu_count=1,
            batch_size=128,
            work_scale=0.02,
        ),
    )
    cluster = Cluster.parse("t4=2x4")
    scenario = Scenario(
        workload(*jobs),
        MODELS,
        cluster,
        policy=policy,
        placer=suiting_placer(policy),
        conditions=Conditions(round_seconds=60.0),
    )
    late = workload(*(replace(job, submit_seconds=UNIX_TIME + job.submit_seconds) for job in jobs))

    result = simulate(replace(scenario, workload=late))

    assert result.complete
    assert result.rounds == pytest.approx((UNIX_TIME + 9e6) / 60, abs=1e4)
    assert len(result.round_times) < 1000
    assert result.metrics.contention_mean < 1e-3
    if policy in SAYS_HOW_LONG:
        begun = simulate(scenario)
        assert [r.jct for r in result.records] == pytest.approx(
            [r.jct for r in begun.records], rel=1e-6
        )
        assert result.metrics.utilisation == pytest.approx(begun.metrics.utilisation)


def test_a_gap_is_told_once_and_can_be_ended_there() -> None:
    jobs = workload(
        TraceJob(
            name="a",
            submit_seconds=UNIX_TIME,
            model="cifar10",
            gpu_count=1,
            batch_size=128,
            work_scale=0.01,
        )
    )
    scenario = Scenario(
        jobs, MODELS, Cluster.parse("t4=1x4"), policy="fifo", placer="packed-sticky"
    )
    seen: list[Position] = []
    simulate(scenario, on_progress=seen.append)
    assert [position.round_number for position in seen[:2]] == [1, UNIX_TIME / 60]
    assert seen[1].now == UNIX_TIME - 60.0

    def stop(position: Position) -> None:
        if position.now > 1e6:
            raise Cancelled

    part = simulate(scenario, on_progress=stop)
    assert not part.complete
    assert part.rounds == UNIX_TIME / 60


def test_a_run_ends_where_jobs_are_left_that_never_end() -> None:
    """One more GPU than there are, though one is being repaired for ever and a day."""
    jobs = workload(
        TraceJob(
            name="huge",
            submit_seconds=1e6,
            model="cifar10",
            gpu_count=4,
            batch_size=128,
            work_scale=0.01,
        )
    )
    cluster = Cluster.parse("t4=2x4")
    broken = tuple(NodeFailure(1e6, node.id, 1e9) for node in cluster.nodes)
    result = simulate(
        Scenario(
            jobs,
            MODELS,
            cluster,
            policy="fifo",
            placer="packed-sticky",
            conditions=Conditions(failures=broken),
            max_rounds=100,
        )
    )
    assert not result.complete
    assert result.end_time == pytest.approx(1e6 + 100 * 60, abs=60.0)


@given(
    hours=st.lists(
        st.tuples(st.floats(0.0, 50.0), st.integers(0, 2), st.floats(0.0, 9.0)), max_size=6
    ),
    after=st.floats(0.0, 60.0),
)
@example(hours=[(1.0, 0, 0.0)], after=1.0)
def test_between_two_changes_the_same_nodes_are_in_service(
    hours: list[tuple[float, int, float]], after: float
) -> None:
    cluster = Cluster.parse("t4=3x1")
    failures = tuple(
        NodeFailure(at * 3600, cluster.nodes[node].id, repair * 3600) for at, node, repair in hours
    )
    outages, now = Outages(cluster, failures), after * 3600
    change = outages.next_change(now)
    for failure in failures:
        for time in (failure.time, failure.repaired_at):
            assert not now < time < change
    assert change == float("inf") or any(
        change in (failure.time, failure.repaired_at) for failure in failures
    )
