"""Gavel: shares of time against the paper's own programmes, and how shares become rounds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from contracts.generated import round_inputs
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling.examples import belief, job, round_of, spec, type_belief

from maat.scheduling.belief import Belief, GradientStatistics
from maat.scheduling.checks import check_decision, check_placement
from maat.scheduling.cluster import Cluster
from maat.scheduling.fitting import Sample
from maat.scheduling.job import Allocation, Job, MemoryLimits
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.placement.lowest_numbered import LowestNumbered
from maat.scheduling.policies.isolated import IsolatedRule, Speeds, ThroughputUnit
from maat.scheduling.policies.requests import requests
from maat.scheduling.policies.shares.gavel import Gavel, Objective
from maat.scheduling.policies.shares.programmes import ShareProblem
from maat.scheduling.policies.shares.time_shares import candidates_of
from maat.scheduling.rounds import Decision, RoundInput
from maat.scheduling.solving.linear_programme import LinearMethod

ROUND = 360.0


def asks(
    name: str,
    gpus: int = 1,
    *,
    held: Sequence[int] = (),
    work: float = 1e6,
    age: float = 1000.0,
    **alphas: float,
) -> Job:
    """A job of that many GPUs at a batch of 32 a GPU, and what it knows of each type: seconds of a pass at batch zero."""
    declared = spec(
        name, gpu_count=gpus, batch_size=32 * gpus, submitted_at=100_000.0 - age, model=name
    )
    return replace(job(declared, belief(**(alphas or {"t4": 0.5})), held=held), remaining_work=work)


def gavel(**changes: Any) -> Gavel:
    return Gavel(**{"objective": Objective.MAX_MIN, **changes})


def play(policy: Gavel, first: RoundInput, rounds: int) -> list[Decision]:
    """Rounds one after the other: jobs hold what they were granted, and nobody makes progress."""
    decisions, now = [], first
    for number in range(rounds):
        decision = policy.allocate(now)
        decisions.append(decision)
        state = replace(decision.state, data=json.loads(json.dumps(decision.state.data)))
        jobs = tuple(
            replace(j, allocation=_held(decision, j.id, first.cluster)) for j in first.jobs
        )
        now = replace(
            first,
            jobs=jobs,
            state=state,
            now=first.now + ROUND * (number + 1),
            round_number=number + 2,
        )
    return decisions


def _held(decision: Decision, job_id: str, cluster: Cluster) -> Allocation | None:
    grant = decision.grants.get(job_id)
    if grant is None:
        return None
    kind = cluster.type_index[grant.gpu_type]
    gpus = np.flatnonzero(cluster.gpu_type_of == kind)[: grant.gpu_count]
    return Allocation(grant.gpu_type, tuple(gpus.tolist()))


def runs(decisions: Sequence[Decision]) -> Counter[tuple[str, str]]:
    """Rounds by job and type."""
    return Counter(
        (job_id, grant.gpu_type) for d in decisions for job_id, grant in d.grants.items()
    )


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


def problem_of(
    round_input: RoundInput, rate: np.ndarray, method: LinearMethod = LinearMethod.INTERIOR_POINT
) -> ShareProblem:
    return ShareProblem(
        round_input, candidates_of(round_input, requests(round_input), rate), method
    )


# ---- shares against the programmes as the paper states them -----------------------------------------------------------------------


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


def shares(count: int, demand: np.ndarray) -> tuple[cp.Variable, list[cp.Constraint]]:
    x = cp.Variable((count, 2))
    return x, [x >= 0, cp.sum(x, axis=1) <= 1, demand @ x <= np.array([4.0, 4.0])]


@settings(max_examples=15)
@given(drawn=contended(), method=st.sampled_from(LinearMethod))
def test_the_largest_sum_is_that_of_the_papers_programme(
    drawn: tuple[RoundInput, np.ndarray, np.ndarray], method: LinearMethod
) -> None:
    round_input, rate, demand = drawn
    x, rows = shares(len(rate), demand)
    best = cp.Problem(cp.Maximize(cp.sum(cp.multiply(rate, x))), rows).solve(solver="CLARABEL")
    assert problem_of(
        round_input, rate, method
    ).most_throughput().report.objective == pytest.approx(best, rel=1e-5)


@settings(max_examples=15)
@given(drawn=contended(), method=st.sampled_from(LinearMethod))
def test_the_largest_minimum_is_that_of_the_papers_programme(
    drawn: tuple[RoundInput, np.ndarray, np.ndarray], method: LinearMethod
) -> None:
    round_input, rate, demand = drawn
    need = rate.mean(axis=1) / demand
    x, rows = shares(len(rate), demand)
    best = cp.Problem(
        cp.Maximize(cp.min(cp.multiply(cp.sum(cp.multiply(rate, x), axis=1), 1 / need))), rows
    ).solve(solver="CLARABEL")
    assert problem_of(round_input, rate, method).largest_minimum(
        need
    ).report.objective == pytest.approx(best, rel=1e-4)


@settings(max_examples=15)
@given(drawn=contended())
def test_the_least_worst_rho_is_that_of_the_papers_convex_programme(
    drawn: tuple[RoundInput, np.ndarray, np.ndarray],
) -> None:
    round_input, _, demand = drawn
    policy = gavel(objective=Objective.FINISH_TIME_FAIRNESS, share_decimals=None)
    found = float(policy.allocate(round_input).report.message.split()[-1])
    rate = Speeds.of(round_input, requests(round_input)).goodput
    part = 4.0 / len(rate) / demand[:, None] * np.ones((1, 2))
    alone_rate = (rate * part / np.maximum(part.sum(axis=1, keepdims=True), 1.0)).sum(axis=1)
    remaining = np.array([j.remaining_work for j in round_input.jobs])
    elapsed = np.array([j.age_seconds(round_input.now) for j in round_input.jobs])
    x, rows = shares(len(rate), demand)
    to_come = cp.multiply(remaining, cp.inv_pos(cp.sum(cp.multiply(rate, x), axis=1)))
    rho = cp.multiply(elapsed + to_come, alone_rate / remaining)
    best = cp.Problem(cp.Minimize(cp.max(rho)), rows).solve(solver="CLARABEL")
    assert found == pytest.approx(best, rel=2e-3)


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
    """Both models say the same of t4; of one of them just this request was measured there, and was far slower."""
    slower = asks("slower", t4=0.5)
    measured = replace(type_belief(0.5), samples=(Sample(1, 1, 32, 50.0, 0.0),))
    slower = replace(slower, belief=Belief({"t4": measured}, slower.belief.gradient, 1))
    decision = gavel(objective=Objective.MAX_SUM_THROUGHPUT).allocate(
        round_of("t4=1x1", slower, asks("other", t4=0.5), round_seconds=ROUND)
    )
    assert set(decision.grants) == {"other"}


def test_the_makespan_is_shortened_by_serving_who_has_most_left() -> None:
    long, short = asks("long", work=9e6), asks("short", work=1e6)
    played = runs(
        play(
            gavel(objective=Objective.MAKESPAN),
            round_of("t4=1x1", long, short, round_seconds=ROUND),
            20,
        )
    )
    assert played["long", "t4"] == 18


def test_finish_time_fairness_serves_who_has_waited_longest_for_its_size() -> None:
    waited, new = asks("waited", age=50_000.0), asks("new", age=0.0)
    first = gavel(objective=Objective.FINISH_TIME_FAIRNESS).allocate(
        round_of("t4=1x1", new, waited, round_seconds=ROUND)
    )
    assert set(first.grants) == {"waited"}


def test_isolated_time_so_far_is_reckoned_with_the_part_that_a_job_then_had() -> None:
    """Alone in the first round the job did a third of its work; now there are two, and what is left takes twice as long alone."""
    policy = gavel(objective=Objective.FINISH_TIME_FAIRNESS)
    alone = round_of("t4=1x1", asks("x", work=3e5), round_seconds=ROUND)
    state = policy.allocate(alone).state
    rate = float(requests(alone).goodput[0, 0])
    crowd = round_of("t4=1x1", asks("x", work=2e5), asks("y"), round_seconds=ROUND, state=state)
    seconds, remaining, now_rate = policy.allocate(crowd).state.data["isolated"]["x"]  # type: ignore[index]
    assert (seconds, remaining, now_rate) == pytest.approx((1e5 / rate, 2e5, rate / 2))


def test_whole_job_isolated_time_counts_the_start_and_all_the_work() -> None:
    """The same two jobs, one nearly done: by what remains both are equally late, by the whole job they are not."""
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


# ---- rounds -----------------------------------------------------------------------------------------------------------------------


def test_equal_jobs_take_turns() -> None:
    decisions = play(
        gavel(), round_of("t4=1x1", asks("a"), asks("b"), asks("c"), round_seconds=ROUND), 9
    )
    assert runs(decisions) == {("a", "t4"): 3, ("b", "t4"): 3, ("c", "t4"): 3}
    assert [next(iter(d.grants)) for d in decisions[:3]] == ["a", "b", "c"]


@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1))
def test_over_many_rounds_everybody_receives_its_share(seed: int) -> None:
    """Jobs of one GPU on two types with one GPU each: the fractions received come to the shares within 0.15."""
    rng = np.random.default_rng(seed)
    jobs = [
        asks(f"j{i}", t4=float(rng.uniform(0.1, 0.9)), a100=float(rng.uniform(0.02, 0.2)))
        for i in range(4)
    ]
    first = round_of("t4=1x1,a100=1x1", *jobs, round_seconds=ROUND)
    speeds = Speeds.of(first, requests(first)).goodput
    problem = problem_of(first, speeds)
    x = np.zeros((4, 2))
    x[problem.candidates.members[:, 0], problem.candidates.gpu_type] = problem.largest_minimum(
        speeds.mean(axis=1)
    ).x
    played = runs(play(gavel(reset_seconds=None), first, 40))
    received = np.array([[played[f"j{i}", kind] for kind in ("t4", "a100")] for i in range(4)]) / 40
    assert np.abs(received - x).max() <= 0.15


def test_a_gpu_that_nobody_is_due_goes_to_whoever_can_use_it() -> None:
    """Both are due all their time on the fast type, which has room for one."""
    jobs = [asks(name, t4=50.0, a100=0.01) for name in ("first", "second")]
    played = play(
        gavel(objective=Objective.MAX_SUM_THROUGHPUT, share_decimals=1),
        round_of("t4=1x1,a100=1x1", *jobs, round_seconds=ROUND),
        4,
    )
    assert all(len(decision.grants) == 2 for decision in played)


def test_received_time_is_forgotten_when_jobs_change_and_long_enough_has_passed() -> None:
    pair = round_of("t4=1x1", asks("a"), asks("b"), round_seconds=ROUND)
    three = round_of(
        "t4=1x1", asks("a"), asks("b"), asks("c"), round_seconds=ROUND, now=100_000.0 + ROUND
    )
    for reset, forgotten in ((None, False), (10 * ROUND, False), (ROUND, True)):
        policy = gavel(reset_seconds=reset, break_ties_by_owed=False)
        state = policy.allocate(replace(pair, state=policy.allocate(pair).state)).state
        rows = policy.allocate(replace(three, state=state)).state.data["ledger"]["rows"]  # type: ignore[index]
        seconds = {ids[0]: received for ids, _, received, _, _ in rows}
        assert sum(seconds.values()) == pytest.approx(
            3 * ROUND / 2 + ROUND * (1 if forgotten else 3)
        )


def test_a_change_that_comes_too_soon_after_a_reset_is_not_lost() -> None:
    """A job comes a round after the first reset; nobody comes later, and yet received time is forgotten when ten rounds have passed."""
    policy = gavel(reset_seconds=10 * ROUND)
    three = round_of(
        "t4=1x1", asks("a"), asks("b"), asks("c"), round_seconds=ROUND, now=100_000.0 + ROUND
    )
    first = policy.allocate(round_of("t4=1x1", asks("a"), asks("b"), round_seconds=ROUND))
    soon = policy.allocate(replace(three, state=first.state))
    later = policy.allocate(replace(three, state=soon.state, now=100_000.0 + 10 * ROUND))
    resets = [decision.state.data["ledger"]["reset_at"] for decision in (first, soon, later)]  # type: ignore[index]
    assert resets == [100_000.0, 100_000.0, 100_000.0 + 10 * ROUND]


def test_held_shares_leave_a_newcomer_what_nobody_is_due_until_they_are_computed_anew() -> None:
    long, short = asks("long", work=1e6), asks("short", work=9e6)
    first = round_of("t4=1x1", long, round_seconds=ROUND)
    both = round_of("t4=1x1", long, short, round_seconds=ROUND, now=100_000.0 + ROUND)
    shown = {}
    for held in (True, False):
        policy = gavel(objective=Objective.MAKESPAN, hold_shares=held, reset_seconds=10 * ROUND)
        soon = policy.allocate(replace(both, state=policy.allocate(first).state))
        later = policy.allocate(replace(both, state=soon.state, now=100_000.0 + 10 * ROUND))
        shown[held] = (set(soon.grants), set(later.grants))
    assert shown == {True: ({"long"}, {"short"}), False: ({"short"}, {"short"})}


def test_of_equal_priorities_the_one_that_is_owed_most_goes_first() -> None:
    """After the reset a and b stand alike again; a has run and b has not."""
    pair = round_of("t4=1x1", asks("a"), asks("b"), round_seconds=ROUND)
    later = round_of(
        "t4=1x1", asks("a"), asks("b"), asks("c"), round_seconds=ROUND, now=100_000.0 + 9 * ROUND
    )
    first = {}
    for owed in (True, False):
        policy = gavel(break_ties_by_owed=owed)
        state = policy.allocate(pair).state
        first[owed] = next(iter(policy.allocate(replace(later, state=state)).grants))
    assert first == {True: "b", False: "a"}


def test_state_of_other_parameters_is_not_read_and_ended_jobs_are_dropped() -> None:
    pair = round_of("t4=1x1", asks("a"), asks("b"), round_seconds=ROUND)
    state = gavel().allocate(pair).state
    assert set(gavel().allocate(replace(pair, state=state)).grants) == {"b"}
    assert set(gavel(share_decimals=6).allocate(replace(pair, state=state)).grants) == {"a"}
    kept = (
        gavel()
        .allocate(replace(round_of("t4=1x1", asks("b"), round_seconds=ROUND), state=state))
        .state
    )
    assert '"a"' not in json.dumps(kept.data)


def test_what_is_remembered_of_two_thousand_jobs_stays_below_a_megabyte() -> None:
    jobs = [asks(f"job-number-{i:05d}", t4=0.5, rtx=0.3, a100=0.1) for i in range(2000)]
    policy = gavel(objective=Objective.MAX_SUM_THROUGHPUT, linear_method=LinearMethod.SIMPLEX)
    state = policy.allocate(
        round_of("t4=64x4,rtx=32x8,a100=32x8", *jobs, round_seconds=ROUND)
    ).state
    assert len(json.dumps(state.data)) < 1_000_000


def test_a_type_that_does_not_fit_takes_a_share_of_the_time_where_it_counts_for_something() -> None:
    """Eight GPUs fit t4 alone; four of them elsewhere would be half of the time, if they counted for more."""
    wide = round_of("t4=1x8,a100=1x4", asks("wide", 8, t4=0.5, a100=0.5), round_seconds=ROUND)
    shown = {}
    for rate in (0.0, 900.0):
        decision = gavel(objective=Objective.MAX_SUM_THROUGHPUT, unfit_throughput=rate).allocate(
            wide
        )
        assert decision.grants["wide"].gpu_type == "t4"
        shown[rate] = decision.reasons["wide"].evidence["time_share"]
    assert shown == {0.0: 1.0, 900.0: 0.5}


def test_rounding_takes_shares_away_that_are_next_to_nothing() -> None:
    long, short = asks("long", work=1e6), asks("short", work=1e4)
    both = round_of("t4=1x1", long, short, round_seconds=ROUND)
    shown = {
        decimals: gavel(objective=Objective.MAKESPAN, share_decimals=decimals)
        .allocate(both)
        .reasons["long"]
        .evidence["time_share"]
        for decimals in (1, None)
    }
    assert shown[1] == 1.0
    assert shown[None] == pytest.approx(1 / 1.01, rel=1e-4)


def test_a_quota_holds_shares_and_rounds() -> None:
    quota = Limit("quota:default", LimitKind.QUOTA, 2, tenant="default")
    decision = gavel().allocate(
        round_of("t4=1x4", asks("a", 2), asks("b", 2), limits=[quota], round_seconds=ROUND)
    )
    assert len(decision.grants) == 1
    assert (
        decision.reasons[next(iter({"a", "b"} - set(decision.grants)))].evidence["binding_limit"]
        == "quota:default"
    )


@pytest.mark.parametrize("objective", Objective)
@settings(max_examples=25)
@given(round_input=round_inputs(), slow=st.floats(1.0, 3.0))
def test_every_objective_keeps_the_rules_of_every_round_with_and_without_sharing(
    objective: Objective, round_input: RoundInput, slow: float
) -> None:
    models = ("vision", "speech")
    shared = replace(
        round_input,
        interference={(a, b, n): slow for a in models for b in models for n in range(1, 50)},
    )
    decision = gavel(objective=objective).allocate(shared)
    check_decision(decision, shared)
    check_placement(LowestNumbered().place(decision, shared), decision, shared)
    assert not decision.report.fallback
    assert np.isfinite([decision.report.objective, decision.report.bound]).all()


# ---- sharing GPUs -----------------------------------------------------------------------------------------------------------------


def shared_round(slowdown: float, *jobs: Job, gpus: int = 1, per_gpu: int = 2) -> RoundInput:
    cluster = replace(Cluster.parse(f"t4=1x{gpus}"), jobs_per_gpu=per_gpu)
    table = {
        (a.spec.model, b.spec.model, n): slowdown
        for a in jobs
        for b in jobs
        if a is not b
        for n in (1, 2)
    }
    return round_of(cluster, *jobs, interference=table, round_seconds=ROUND)


@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize(("slowdown", "together"), [(1.2, True), (1.9, True), (2.1, False)])
def test_two_jobs_share_a_gpu_where_both_together_are_faster_than_by_turns(
    objective: Objective, slowdown: float, together: bool
) -> None:
    grants = (
        gavel(objective=objective).allocate(shared_round(slowdown, asks("a"), asks("b"))).grants
    )
    assert len(grants) == (2 if together else 1)
    if together:
        assert (grants["a"].share_with, grants["a"].shared_gpus) == ((), 0)
        assert (grants["b"].share_with, grants["b"].shared_gpus) == (("a",), 1)


@pytest.mark.parametrize("changes", [{"space_sharing": False}, {}])
def test_nobody_shares_unless_asked_to_on_a_cluster_that_allows_it(changes: dict[str, Any]) -> None:
    round_input = shared_round(1.1, asks("a"), asks("b"), per_gpu=2 if changes else 1)
    decision = gavel(**changes).allocate(round_input)
    assert [grant.share_with for grant in decision.grants.values()] == [()]


def test_jobs_of_different_counts_and_pairs_that_nobody_measured_do_not_share() -> None:
    grants = gavel().allocate(shared_round(1.0, asks("a", 2), asks("b", 1), gpus=2)).grants
    assert all(not grant.share_with for grant in grants.values())
    unmeasured = replace(shared_round(1.0, asks("a"), asks("b")), interference={("a", "b", 1): 1.0})
    assert len(gavel().allocate(unmeasured).grants) == 1


def test_a_pair_takes_its_gpus_once_and_a_job_alone_has_them_to_itself() -> None:
    jobs = [asks(name) for name in "abcde"]
    decision = gavel(objective=Objective.MAX_SUM_THROUGHPUT).allocate(
        shared_round(1.1, *jobs, gpus=2)
    )
    assert len(decision.grants) == 4
    assert sum(grant.gpu_count - grant.shared_gpus for grant in decision.grants.values()) == 2


def test_a_pinned_partner_keeps_its_gpu_to_itself() -> None:
    stays = replace(asks("stays", held=(0,)), spec=replace(asks("stays").spec, preemptible=False))
    decision = gavel().allocate(shared_round(1.0, stays, asks("a"), asks("b"), gpus=2))
    assert {name: grant.share_with for name, grant in decision.grants.items()} == {
        "stays": (),
        "a": (),
        "b": ("a",),
    }
    assert decision.reasons["a"].evidence["shares_with"] == "b"
