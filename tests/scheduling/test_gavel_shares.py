"""Gavel's shares of time against the paper's own programmes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling.examples import belief, job, round_of, spec, type_belief
from scheduling.gavel_examples import ROUND, asks, gavel, play, problem_of, runs

from maat.scheduling.belief import Belief, GradientStatistics
from maat.scheduling.fitting import Sample
from maat.scheduling.job import MemoryLimits
from maat.scheduling.policies.isolated import IsolatedRule, Speeds, ThroughputUnit
from maat.scheduling.policies.requests import requests
from maat.scheduling.policies.shares.gavel import Objective
from maat.scheduling.policies.shares.programmes import Shares
from maat.scheduling.policies.shares.stated_shares import StatedShares
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.engines import Solver
from maat.scheduling.solving.linear_programme import LinearMethod


def test_steps_of_a_job_that_asks_for_no_batch_count_by_their_samples() -> None:
    small = {"t4": MemoryLimits(1, 16), "a100": MemoryLimits(1, 256)}
    free = job(
        spec("free", memory=small),
        replace(belief(t4=0.1, a100=0.2), gradient=GradientStatistics(1.0, 1e6)),
    )
    fixed = asks("fixed", t4=0.1, a100=0.2)
    speeds = Speeds.of(
        round_of("t4=1x1,a100=1x1", free, fixed), requests(round_of("t4=1x1,a100=1x1", free, fixed))
    )
    relative = speeds.steps[:, 0] / speeds.steps[:, 1]
    assert relative == pytest.approx(speeds.samples[:, 0] / speeds.samples[:, 1])
    assert speeds.samples[0, 1] > speeds.samples[0, 0] / 2, "the larger batch of an A100 counts"


@st.composite
def contended(draw: st.DrawFn) -> tuple[RoundInput, np.ndarray, np.ndarray]:
    """A round of two types, rates of each job on each, shape (J, 2), and GPU counts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = rng.choice([1, 2, 4], draw(st.integers(1, 7)))
    jobs = [
        asks(
            f"j{i}",
            int(n),
            age=float(rng.uniform(0, 9000)),
            work=float(rng.uniform(1e4, 1e6)),
            t4=0.5,
            a100=0.1,
        )
        for i, n in enumerate(counts)
    ]
    return (
        round_of("t4=1x4,a100=1x4", *jobs, round_seconds=ROUND),
        rng.uniform(1.0, 40.0, (len(jobs), 2)),
        counts,
    )


def never() -> Shares:
    raise AssertionError("cvxpy gave no answer")


@settings(max_examples=15)
@given(drawn=contended(), method=st.sampled_from(LinearMethod))
def test_the_largest_sum_is_that_of_the_papers_programme(
    drawn: tuple[RoundInput, np.ndarray, np.ndarray], method: LinearMethod
) -> None:
    round_input, rate, _ = drawn
    problem = problem_of(round_input, rate, method)
    best = StatedShares(problem, never).most_throughput().report.objective
    assert problem.most_throughput().report.objective == pytest.approx(best, rel=1e-5)


@settings(max_examples=15)
@given(drawn=contended(), method=st.sampled_from(LinearMethod))
def test_the_largest_minimum_is_that_of_the_papers_programme(
    drawn: tuple[RoundInput, np.ndarray, np.ndarray], method: LinearMethod
) -> None:
    round_input, rate, demand = drawn
    problem, need = problem_of(round_input, rate, method), rate.mean(axis=1) / demand
    best = StatedShares(problem, never).largest_minimum(need).report.objective
    assert problem.largest_minimum(need).report.objective == pytest.approx(best, rel=1e-4)


@settings(max_examples=15)
@given(drawn=contended())
def test_the_shortest_makespan_is_that_of_the_papers_convex_programme(
    drawn: tuple[RoundInput, np.ndarray, np.ndarray],
) -> None:
    round_input, rate, _ = drawn
    problem = problem_of(round_input, rate)
    remaining = np.array([j.remaining_work for j in round_input.jobs])
    best = StatedShares(problem, never).shortest_makespan(remaining)
    found = problem.shortest_makespan(remaining)
    assert found.report.objective == pytest.approx(best.report.objective, rel=1e-4)
    ends = remaining / (rate.max(axis=1) * problem.speed(best.x))
    assert 1.0 / ends.max() == pytest.approx(best.report.objective), "as its shares achieve"


@settings(max_examples=15)
@given(drawn=contended())
def test_the_least_worst_rho_is_that_of_the_papers_convex_programme(
    drawn: tuple[RoundInput, np.ndarray, np.ndarray],
) -> None:
    round_input, _, _ = drawn
    own, stated = (
        gavel(
            objective=Objective.FINISH_TIME_FAIRNESS, share_decimals=None, solver=solver
        ).allocate(round_input)
        for solver in Solver
    )
    assert (own.report.method, stated.report.method) == ("interior-point", "cvxpy")
    assert own.report.objective == pytest.approx(stated.report.objective, rel=2e-4)
    assert own.report.bound >= stated.report.objective - 1e-4, "no rho is below what is too small"


def test_a_job_goes_where_it_is_comparatively_fastest() -> None:
    both = round_of(
        "t4=1x1,a100=1x1",
        asks("even", t4=0.1, a100=0.09),
        asks("picky", t4=0.9, a100=0.09),
        round_seconds=ROUND,
    )
    for objective in (Objective.MAX_SUM_THROUGHPUT, Objective.MAX_MIN, Objective.MAKESPAN):
        grants = gavel(objective=objective).allocate(both).grants
        assert (grants["even"].gpu_type, grants["picky"].gpu_type) == ("t4", "a100"), objective


def test_units_decide_who_gets_most_of_a_sum() -> None:
    quick = asks("quick", t4=0.01)
    large = replace(
        quick, spec=replace(quick.spec, id="large", batch_size=1024), belief=belief(t4=0.05)
    )
    both = round_of("t4=1x1", quick, large, round_seconds=ROUND)
    first = {
        unit: next(
            iter(
                gavel(objective=Objective.MAX_SUM_THROUGHPUT, throughput_unit=unit)
                .allocate(both)
                .grants
            )
        )
        for unit in (ThroughputUnit.STEPS, ThroughputUnit.SAMPLES)
    }
    assert first == {ThroughputUnit.STEPS: "quick", ThroughputUnit.SAMPLES: "large"}
    relative = play(
        gavel(objective=Objective.MAX_SUM_THROUGHPUT, throughput_unit=ThroughputUnit.RELATIVE),
        both,
        8,
    )
    assert runs(relative) == {("quick", "t4"): 4, ("large", "t4"): 4}


def test_a_measured_step_counts_before_the_model() -> None:
    """Both models predict the same on t4.

    One was measured at this request, and was far slower.
    """
    slower = asks("slower", t4=0.5)
    measured = replace(type_belief(0.5), samples=(Sample(1, 1, 32, 50.0, 0.0),))
    slower = replace(slower, belief=Belief({"t4": measured}, slower.belief.gradient, 1))
    decision = gavel(objective=Objective.MAX_SUM_THROUGHPUT).allocate(
        round_of("t4=1x1", slower, asks("other", t4=0.5), round_seconds=ROUND)
    )
    assert set(decision.grants) == {"other"}


def test_the_makespan_is_shortened_by_serving_the_job_with_most_left() -> None:
    long, short = asks("long", work=9e6), asks("short", work=1e6)
    played = runs(
        play(
            gavel(objective=Objective.MAKESPAN),
            round_of("t4=1x1", long, short, round_seconds=ROUND),
            20,
        )
    )
    assert played["long", "t4"] == 18


def test_finish_time_fairness_serves_the_job_that_waited_longest_for_its_size() -> None:
    waited, new = asks("waited", age=50_000.0), asks("new", age=0.0)
    first = gavel(objective=Objective.FINISH_TIME_FAIRNESS).allocate(
        round_of("t4=1x1", new, waited, round_seconds=ROUND)
    )
    assert set(first.grants) == {"waited"}


def test_isolated_time_so_far_uses_the_share_that_a_job_then_had() -> None:
    """Alone in the first round, the job did a third of its work.

    Now there are two jobs, and the rest takes twice as long alone.
    """
    policy = gavel(objective=Objective.FINISH_TIME_FAIRNESS)
    alone = round_of("t4=1x1", asks("x", work=3e5), round_seconds=ROUND)
    state = policy.allocate(alone).state
    rate = float(requests(alone).goodput[0, 0])
    crowd = round_of("t4=1x1", asks("x", work=2e5), asks("y"), round_seconds=ROUND, state=state)
    seconds, remaining, now_rate = policy.allocate(crowd).state.data["isolated"]["x"]  # type: ignore[index]
    assert (seconds, remaining, now_rate) == pytest.approx((1e5 / rate, 2e5, rate / 2))


def test_whole_job_isolated_time_counts_the_start_and_all_the_work() -> None:
    """Two equal jobs, one nearly done: equally late by the rest, not by the whole."""
    nearly = replace(asks("nearly", work=1e4, age=20_000.0), started_at=0.0)
    fresh = asks("fresh", work=1e6, age=20_000.0)
    both = round_of("t4=1x1", nearly, fresh, round_seconds=ROUND)
    rules = {
        rule: float(
            gavel(objective=Objective.FINISH_TIME_FAIRNESS, isolated_rule=rule)
            .allocate(both)
            .report.message.split()[-1]
        )
        for rule in IsolatedRule
    }
    assert rules[IsolatedRule.CUMULATIVE] > 3 * rules[IsolatedRule.WHOLE_JOB]
