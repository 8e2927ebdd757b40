"""Gavel: how shares of time become rounds, and how jobs share GPUs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from contracts.sampling import sampled
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling.examples import round_of
from scheduling.gavel_examples import ROUND, asks, gavel, play, problem_of, runs

from maat.contracts.generated import round_inputs
from maat.scheduling.checks import check_decision, check_placement
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Job
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.placement.lowest_numbered import LowestNumbered
from maat.scheduling.policies.isolated import Speeds
from maat.scheduling.policies.requests import requests
from maat.scheduling.policies.shares.gavel import Objective
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.linear_programme import LinearMethod


def test_equal_jobs_take_turns() -> None:
    decisions = play(
        gavel(), round_of("t4=1x1", asks("a"), asks("b"), asks("c"), round_seconds=ROUND), 9
    )
    assert runs(decisions) == {("a", "t4"): 3, ("b", "t4"): 3, ("c", "t4"): 3}
    assert [next(iter(d.grants)) for d in decisions[:3]] == ["a", "b", "c"]


@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1))
def test_over_many_rounds_every_job_receives_its_share(seed: int) -> None:
    """Jobs of one GPU on two types of one GPU receive their shares within 0.15."""
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


def test_a_gpu_that_no_job_is_due_goes_to_a_job_that_can_use_it() -> None:
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
    """A job arrives a round after the first reset, none later.

    Received time is forgotten all the same when ten rounds have passed.
    """
    policy = gavel(reset_seconds=10 * ROUND)
    three = round_of(
        "t4=1x1", asks("a"), asks("b"), asks("c"), round_seconds=ROUND, now=100_000.0 + ROUND
    )
    first = policy.allocate(round_of("t4=1x1", asks("a"), asks("b"), round_seconds=ROUND))
    soon = policy.allocate(replace(three, state=first.state))
    later = policy.allocate(replace(three, state=soon.state, now=100_000.0 + 10 * ROUND))
    resets = [decision.state.data["ledger"]["reset_at"] for decision in (first, soon, later)]  # type: ignore[index]
    assert resets == [100_000.0, 100_000.0, 100_000.0 + 10 * ROUND]


def test_held_shares_leave_a_new_job_only_spare_gpus_until_they_are_computed_again() -> None:
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
    """Eight GPUs fit t4 only.

    Four elsewhere would be half of the time if they counted for more.
    """
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
@sampled(40)
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
def test_no_job_shares_unless_asked_to_on_a_cluster_that_allows_it(changes: dict[str, Any]) -> None:
    round_input = shared_round(1.1, asks("a"), asks("b"), per_gpu=2 if changes else 1)
    decision = gavel(**changes).allocate(round_input)
    assert [grant.share_with for grant in decision.grants.values()] == [()]


def test_jobs_of_different_counts_and_unmeasured_pairs_do_not_share() -> None:
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
