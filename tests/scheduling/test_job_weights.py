"""What the weight of a job means in each policy that weighs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scheduling.examples import belief, job, round_of, spec
from scheduling.gavel_examples import ROUND, asks, gavel, problem_of
from scheduling.test_pollux_search import even
from scheduling.test_shockwave import EXACT, window_of

from maat.scheduling.job import Job
from maat.scheduling.loop import plan_round
from maat.scheduling.parameters import parameter_hash
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.pollux.problem import SearchProblem, fitness, power_mean
from maat.scheduling.policies.pollux.search import SearchOptions, search
from maat.scheduling.policies.shares.gavel import Objective
from maat.scheduling.policies.shockwave.window import share_rounds
from maat.scheduling.policies.tiresias import Tiresias
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.rounds import PolicyState
from maat.scheduling.solving.linear_programme import LinearMethod


def asking(
    name: str, *, weight: float = 1.0, hours: float = 0.0, work: float = 1e6, tenant: str = "a"
) -> Job:
    """A job of one T4 that had it for so many hours."""
    declared = spec(name, gpu_count=1, batch_size=64, weight=weight, tenant=tenant)
    one = replace(job(declared, belief(t4=0.5)), remaining_work=work)
    return replace(one, attained_gpu_seconds={"t4": hours * 3600.0})


def first_of(policy: str, *jobs: Job) -> str:
    """Which of the jobs gets the only GPU."""
    (granted,) = POLICIES.build(policy).allocate(round_of("t4=1x1", *jobs)).grants
    return granted


@pytest.mark.parametrize(("weight", "first"), [(1.9, "light"), (2.1, "heavy")])
def test_least_attained_service_counts_service_by_weight(weight: float, first: str) -> None:
    heavy = asking("heavy", weight=weight, hours=2.0)
    assert first_of("las", asking("light", hours=1.0), heavy) == first


@pytest.mark.parametrize("policy", ["srtf", "sjf"])
@pytest.mark.parametrize(("weight", "first"), [(1.9, "light"), (2.1, "heavy")])
def test_shortest_first_is_smith_s_rule(policy: str, weight: float, first: str) -> None:
    heavy = asking("heavy", weight=weight, work=2e6)
    assert first_of(policy, asking("light", work=1e6), heavy) == first


def test_a_job_of_weight_two_reaches_a_threshold_after_twice_the_service() -> None:
    light, heavy = asking("light", hours=17.0), asking("heavy", hours=31.0, weight=2.0)
    assert first_of("tiresias", light, heavy) == "heavy"
    assert first_of(
        "tiresias", light, replace(heavy, attained_gpu_seconds={"t4": 33 * 3600.0})
    ) == ("light")


def test_a_job_whose_weight_is_raised_comes_back_to_the_queue_that_it_has_left() -> None:
    policy = Tiresias()
    jobs = [asking("light", hours=17.0), asking("other", hours=20.0)]
    state = PolicyState(policy.name, parameter_hash(policy))
    fell = policy.allocate(round_of("t4=1x1", *jobs, state=state))
    assert list(fell.grants) == ["light"]
    raised = replace(jobs[1], spec=replace(jobs[1].spec, weight=2.0))
    then = policy.allocate(round_of("t4=1x1", jobs[0], raised, state=fell.state))
    assert list(then.grants) == ["other"]


def test_a_decision_of_tiresias_stands_until_a_threshold_is_reached_by_weight() -> None:
    def stands(weight: float) -> float:
        declared = spec("a", gpu_count=1, batch_size=64, weight=weight)
        one = job(declared, belief(t4=0.5), held=(0,))
        return Tiresias().allocate(round_of("t4=1x1", one, now=0.0)).stands_until

    assert stands(2.0) == pytest.approx(2 * stands(1.0), rel=1e-6)


def test_optimus_gives_the_next_gpu_by_weight_and_the_first_ones_too() -> None:
    def counts(*weights: float, gpus: int) -> list[int]:
        jobs = [
            job(
                spec(f"j{i}", batch_size=512, adaptivity="strong-scaling", weight=w), belief(t4=0.5)
            )
            for i, w in enumerate(weights)
        ]
        grants = POLICIES.build("optimus").allocate(round_of(f"t4=1x{gpus}", *jobs)).grants
        return [grants[one.id].gpu_count if one.id in grants else 0 for one in jobs]

    assert counts(1.0, 1.0, gpus=1) == [1, 0]
    assert counts(1.0, 2.0, gpus=1) == [0, 1]
    assert counts(1.0, 1.0, gpus=8) == [4, 4]
    few, many = counts(1.0, 8.0, gpus=8)
    assert few < 4 < many


def test_sia_counts_a_job_of_weight_two_as_two_jobs_like_it() -> None:
    def value(weight: float) -> float:
        one = job(spec("a", weight=weight), belief(t4=0.5))
        reason = POLICIES.build("sia").allocate(round_of("t4=1x4", one)).reasons["a"]
        return float(reason.evidence["value"] or 0.0)

    assert value(2.0) == pytest.approx(2 * value(1.0))


# ---- Gavel


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    jobs=st.integers(2, 6),
    heavier=st.sampled_from((1.5, 4.0, 1000.0)),
)
def test_the_shares_of_a_heavier_job_give_it_no_less_throughput(
    seed: int, jobs: int, heavier: float
) -> None:
    rng = np.random.default_rng(seed)
    counts, rate = rng.choice([1, 2, 4], jobs), rng.uniform(1.0, 40.0, (jobs, 2))

    def throughput(weight: float) -> float:
        declared = [asks(f"j{i}", int(n), t4=0.5, a100=0.1) for i, n in enumerate(counts)]
        declared[0] = replace(declared[0], spec=replace(declared[0].spec, weight=weight))
        round_input = round_of("t4=1x4,a100=1x4", *declared, round_seconds=ROUND)
        problem = problem_of(round_input, rate, LinearMethod.SIMPLEX)
        mine = problem.candidates.members[:, 0] == 0
        return float(problem.candidates.rate[mine, 0] @ problem.most_throughput().x[mine])

    assert throughput(heavier) >= throughput(1.0) - 1e-6


def test_max_min_holds_a_job_of_weight_two_to_twice_the_normalised_throughput() -> None:
    two = [asks("light"), replace(asks("heavy"), spec=replace(asks("heavy").spec, weight=2.0))]
    decision = gavel().allocate(round_of("t4=1x1", *two, round_seconds=ROUND))
    assert decision.reasons["heavy"].evidence["time_share"] == pytest.approx(2 / 3, abs=1e-3)


@pytest.mark.parametrize("objective", [Objective.MAKESPAN, Objective.FINISH_TIME_FAIRNESS])
def test_gavel_does_not_weigh_where_every_job_is_to_end_soon(objective: Objective) -> None:
    def decided(weight: float) -> object:
        jobs = [asks("a"), replace(asks("b"), spec=replace(asks("b").spec, weight=weight))]
        round_input = round_of("t4=1x1", *jobs, round_seconds=ROUND)
        return plan_round(round_input, gavel(objective=objective), PLACERS.build("packed")).reasons

    assert decided(1.0) == decided(5.0)


# ---- Pollux


def test_the_fitness_of_pollux_is_the_mean_over_jobs_counted_by_weight() -> None:
    values = np.array([[1.0, 2.0, 3.0]])
    for p in (-1.0, 0.0, 1.0):
        doubled = power_mean(np.array([[1.0, 2.0, 2.0, 3.0]]), p)
        share = np.array([0.25, 0.5, 0.25])
        assert power_mean(values, p, share) == pytest.approx(doubled)


def test_equal_weights_leave_the_fitness_as_it_is_bit_by_bit() -> None:
    problem, rng = even(3, 2, 8), np.random.default_rng(0)
    population = rng.integers(0, 3, size=(20, 3, 2)).astype(np.int32)
    for weight in (np.ones(3), np.full(3, 7.0)):
        weighed = replace(problem, weight=weight)
        assert (fitness(weighed, population) == fitness(problem, population)).all()


@settings(max_examples=20)
@given(heavier=st.sampled_from((2.0, 10.0, 1000.0)), jobs=st.integers(2, 3))
def test_the_search_gives_a_heavier_job_no_fewer_gpus(heavier: float, jobs: int) -> None:
    def found(weight: float) -> int:
        problem = even(jobs, 1, 4, weight=np.array([weight, *[1.0] * (jobs - 1)]))
        individual = search(
            problem, problem.present[None], options=SearchOptions(), rng=np.random.default_rng(0)
        ).population[0]
        assert fitness(problem, individual[None])[0] == pytest.approx(_most(problem))
        return int(individual[0].sum())

    assert found(heavier) >= found(1.0)


def _most(problem: SearchProblem) -> float:
    """The best fitness of any allocation of one node."""
    rows = product(range(5), repeat=problem.jobs)
    all_of_them = np.array([row for row in rows if sum(row) <= 4], dtype=np.int32)
    return float(fitness(problem, all_of_them[:, :, None]).max())


# ---- Shockwave


@settings(max_examples=40)
@given(
    given_jobs=st.lists(
        st.tuples(st.sampled_from((1, 2, 4)), st.floats(0.0, 0.9), st.floats(0.5, 8.0)),
        min_size=2,
        max_size=4,
    ),
    heavier=st.sampled_from((1.5, 4.0, 100.0)),
)
def test_the_plan_of_a_heavier_job_is_worth_no_less_to_it(
    given_jobs: Sequence[tuple[int, float, float]], heavier: float
) -> None:
    def worth(weight: float) -> float:
        weights = np.array([weight, *[1.0] * (len(given_jobs) - 1)])
        window = window_of(*given_jobs, free=4, rounds=3, weight=weights)
        table, report = share_rounds(window, EXACT)
        assume(table is not None and not report.fallback)
        assert table is not None
        return float(window.utilities()[0, table[0].sum()]) / weight

    assert worth(heavier) >= worth(1.0) - 1e-4


def test_of_two_jobs_alike_shockwave_runs_the_heavier_one_first() -> None:
    def first(*weights: float) -> list[str]:
        jobs = [asking(f"j{i}", weight=w) for i, w in enumerate(weights)]
        return list(POLICIES.build("shockwave").allocate(round_of("t4=1x1", *jobs)).grants)

    assert first(1.0, 4.0) == ["j1"]
    assert first(4.0, 1.0) == ["j0"]


# ---- Quotas


def test_within_its_share_a_tenant_s_heavier_job_goes_first_and_takes_nothing_from_others() -> None:
    def granted(weight: float) -> set[str]:
        jobs = [
            asking("a-1", hours=1.0),
            asking("a-2", hours=2.0, weight=weight),
            asking("b-1", hours=50.0, tenant="b"),
        ]
        quotas = (TenantQuota(tenant="a"), TenantQuota(tenant="b"))
        round_input = round_of("t4=1x2", *jobs, quotas=quotas)
        policy, placer = POLICIES.build("las"), PLACERS.build("packed-sticky")
        return set(plan_round(round_input, policy, placer).decision.grants)

    assert granted(1.0) == {"a-1", "b-1"}
    assert granted(1000.0) == {"a-2", "b-1"}
