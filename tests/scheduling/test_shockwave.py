"""Shockwave: its two programmes, its forecast, and how it keeps to its plan."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling.examples import belief, round_of, spec

from maat.scheduling.belief import Belief, TypeBelief
from maat.scheduling.fitting import Sample
from maat.scheduling.job import Job
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.shockwave.policy import _Estimates
from maat.scheduling.policies.shockwave.regime_forecast import expected_epochs, forecast
from maat.scheduling.policies.shockwave.window import (
    BREAKPOINTS,
    LOG_OF_NOTHING,
    Window,
    _solve,
    order_rounds,
    share_rounds,
    spread_rounds,
)
from maat.scheduling.protocols import Policy
from maat.scheduling.regimes import DeclaredRegimes
from maat.scheduling.rounds import Decision, PolicyState, RoundInput
from maat.scheduling.solving import mixed_highs
from maat.scheduling.solving.mixed_programme import MixedOptions
from maat.scheduling.solving.report import SolveStatus
from maat.vocabulary import Adaptivity

EXACT = MixedOptions(gap=0.0)


def window_of(
    *jobs: tuple[int, float, float], free: int, rounds: int, k: float = 0.0, **changes: Any
) -> Window:
    """Jobs as (GPUs, share done, rounds that the whole takes)."""
    demand, done, whole = (np.array(column) for column in zip(*jobs, strict=True))
    return Window(
        demand=demand.astype(np.int64),
        done=done.astype(float),
        paced_rounds=whole.astype(float),
        remaining_rounds=changes.pop("remaining", (1.0 - done) * whole),
        weight=changes.pop("weight", np.ones(len(jobs))),
        least_rounds=changes.pop("least", np.zeros(len(jobs))),
        must_run=np.zeros(len(jobs), dtype=bool),
        free=free,
        rounds=rounds,
        makespan_weight=k,
        **changes,
    )


def worth(window: Window, counts: tuple[int, ...]) -> float:
    """The objective of so many rounds each, term by term.

    Minus infinity if a job may not have so few.
    """
    log = np.log(np.maximum(BREAKPOINTS, LOG_OF_NOTHING))
    planned = np.minimum(counts, (1.0 - window.done) * window.paced_rounds)
    if (planned < window.least_rounds - 1e-9).any():
        return -np.inf
    utility = np.interp(window.done + planned / window.paced_rounds, BREAKPOINTS, log)
    late = np.maximum(window.remaining_rounds - planned, 0.0).max()
    return float((window.weight * utility).sum() - window.makespan_weight * late)


def jobs() -> st.SearchStrategy[list[tuple[int, float, float]]]:
    return st.lists(
        st.tuples(st.sampled_from((1, 2, 4)), st.floats(0.0, 0.95), st.floats(0.5, 12.0)),
        min_size=1,
        max_size=4,
    )


@settings(max_examples=30)
@given(given_jobs=jobs(), k=st.sampled_from((0.0, 0.1, 3.0)), free=st.sampled_from((4, 6)))
def test_no_other_rounds_would_be_worth_more(
    given_jobs: list[tuple[int, float, float]], k: float, free: int
) -> None:
    window = window_of(*given_jobs, free=free, rounds=3, k=k)
    table, report = share_rounds(window, EXACT)
    assert table is not None
    assert (table.T @ window.demand <= free).all()
    each = list(product(product((0, 1), repeat=3), repeat=len(window)))
    tables = np.array(each)
    fits = tables[(np.einsum("njr,j->nr", tables, window.demand) <= free).all(axis=1)]
    best = max(
        worth(window, counts) for counts in {tuple(counts) for counts in fits.sum(axis=2).tolist()}
    )
    assert worth(window, tuple(table.sum(axis=1).tolist())) == pytest.approx(best, abs=1e-6)
    assert report.objective == pytest.approx(best, abs=1e-6)


def test_counts_that_fit_by_sum_but_not_round_by_round_are_not_believed() -> None:
    """One job needs all four GPUs for one round of two, another needs both rounds.

    They need six of eight GPU-rounds, yet no schedule exists.
    """
    window = window_of((4, 0.0, 1.0), (1, 0.0, 2.0), free=4, rounds=2)
    assert spread_rounds(window, np.array([1, 2])) is None
    counts, _ = _solve(window, 1, EXACT)
    assert counts is not None
    assert counts[:, 0].tolist() == [1, 2]
    table, _ = share_rounds(window, EXACT)
    assert table is not None
    assert (table.T @ window.demand <= 4).all()


@given(count=st.lists(st.integers(0, 6), min_size=1, max_size=9), free=st.integers(1, 9))
def test_equal_demands_that_fit_by_sum_always_fit(count: list[int], free: int) -> None:
    window = window_of(*[(1, 0.0, 1.0)] * len(count), free=free, rounds=6)
    table = spread_rounds(window, np.array(count))
    if sum(count) <= free * 6:
        assert table is not None
        assert table.sum(axis=1).tolist() == count
        assert (table.sum(axis=0) <= free).all()
    else:
        assert table is None


def test_a_heavier_makespan_gives_rounds_to_the_longest_job() -> None:
    several = ((1, 0.0, 2.0), (1, 0.0, 2.0), (1, 0.5, 400.0))
    shared, _ = share_rounds(window_of(*several, free=1, rounds=4, k=0.0), EXACT)
    rushed, _ = share_rounds(window_of(*several, free=1, rounds=4, k=100.0), EXACT)
    assert shared is not None
    assert rushed is not None
    assert shared[2].sum() == 0
    assert rushed[2].sum() == 4


def test_rounds_that_fairness_demands_are_given_or_there_is_no_answer() -> None:
    several = ((1, 0.0, 2.0), (1, 0.5, 400.0))
    table, _ = share_rounds(
        window_of(*several, free=1, rounds=4, least=np.array([0.0, 3.0])), EXACT
    )
    assert table is not None
    assert table[1].sum() >= 3
    table, report = share_rounds(
        window_of(*several, free=1, rounds=4, least=np.array([2.0, 3.0])), EXACT
    )
    assert table is None
    assert report.fallback


@settings(max_examples=30)
@given(given_jobs=jobs(), priority=st.lists(st.floats(1.0, 100.0), min_size=4, max_size=4))
def test_ordering_keeps_how_many_rounds_every_job_has(
    given_jobs: list[tuple[int, float, float]], priority: list[float]
) -> None:
    window = window_of(*given_jobs, free=4, rounds=3)
    table, _ = share_rounds(window, EXACT)
    assert table is not None
    weight = np.array(priority[: len(window)])
    ordered, _ = order_rounds(window, table, weight, EXACT)
    assert (ordered.sum(axis=1) == table.sum(axis=1)).all()
    assert (ordered.T @ window.demand <= 4).all()

    def cost(rounds: np.ndarray) -> float:
        held = np.maximum(rounds.sum(axis=1), 1)
        return float((weight * (rounds @ np.arange(3)) / held).sum())

    assert cost(ordered) <= cost(table) + 1e-6


def test_jobs_of_higher_priority_come_first() -> None:
    window = window_of((1, 0.0, 2.0), (1, 0.0, 2.0), free=1, rounds=4)
    ordered, _ = order_rounds(
        window, np.array([[1, 0, 1, 0], [0, 1, 0, 1]]), np.array([1.0, 5.0]), EXACT
    )
    assert ordered.tolist() == [[0, 0, 1, 1], [1, 1, 0, 0]]


def test_epochs_seen_move_the_expectation_from_the_prior() -> None:
    assert expected_epochs((32, 256), {}, epochs=20.0, left=20.0) == {32: 10.0, 256: 10.0}
    # 10 + 6 and 10 of 26, scaled to 20: 12.3 and 7.7; six of the first are over, 14 of 14 are left.
    assert expected_epochs((32, 256), {32: 6}, epochs=20.0, left=14.0) == pytest.approx(
        {32: 20 * 16 / 26 - 6, 256: 20 * 10 / 26}
    )


@given(
    sizes=st.lists(st.integers(1, 99), min_size=1, max_size=4, unique=True),
    begun=st.lists(st.integers(0, 40), min_size=4, max_size=4),
    epochs=st.floats(0.1, 100.0),
    left=st.floats(0.0, 1.0),
)
def test_expected_epochs_are_as_many_as_are_left(
    sizes: list[int], begun: list[int], epochs: float, left: float
) -> None:
    found = expected_epochs(
        sizes, dict(zip(sizes, begun, strict=False)), epochs=epochs, left=left * epochs
    )
    assert all(many >= 0 for many in found.values())
    assert sum(found.values()) == pytest.approx(left * epochs)


def adapting(job_id: str = "job", **changes: Any) -> Job:
    """Ten epochs of 1000 samples: 10 s at 32 samples a step, 4 s at 64, as measured.

    The model fitted to that predicts other times.
    """
    declared = spec(
        job_id,
        adaptivity=Adaptivity.RIGID,
        gpu_count=1,
        batch_size=32,
        work=10_000.0,
        regimes=DeclaredRegimes(1000.0, (32, 64)),
        submitted_at=changes.pop("submitted_at", 0.0),
    )
    samples = (Sample(1, 1, 32, 0.32, 0.0), Sample(1, 1, 64, 0.256, 0.0))
    known = Belief({"t4": TypeBelief(samples, np.array([5.0, 0.001, 0.1, 1e-8, 0.1, 1e-8, 1.0]))})
    return Job(declared, known, changes.pop("remaining_work", 10_000.0), **changes)


def test_measured_speeds_are_believed_before_the_model() -> None:
    found = forecast(round_of("t4=1x4", adapting()))
    assert found.remaining_seconds[0] == pytest.approx(4.5 * 4 + 5.5 * 10, rel=0.1)
    assert (found.done[0], found.spent_seconds[0], found.paced_seconds[0]) == pytest.approx(
        (0.0, 0.0, 100.0)
    )


def test_half_way_through_pace_and_rest_follow_from_what_was_seen() -> None:
    found = forecast(
        round_of("t4=1x4", adapting(remaining_work=5000.0, epochs_begun={32: 4, 64: 1}))
    )
    pace = (4 * 10 + 4) / 5
    assert found.done[0] == pytest.approx(0.5)
    assert (found.spent_seconds[0], found.paced_seconds[0]) == pytest.approx((5 * pace, 10 * pace))
    slow, fast = 10 * 9 / 15 - 4, 10 * 6 / 15 - 1
    assert found.remaining_seconds[0] == pytest.approx((slow * 10 + fast * 4) * 5 / (slow + fast))


def test_nothing_is_forecast_of_jobs_of_unknown_speed_or_that_can_run_nowhere() -> None:
    known, unknown = Job(spec("a"), belief(t4=0.1), 1e6), Job(spec("b"), Belief(), 1e6)
    nowhere = Job(
        spec("c", adaptivity=Adaptivity.RIGID, gpu_count=9, batch_size=64), belief(t4=0.1), 1e6
    )
    found = forecast(round_of("t4=1x4", known, unknown, nowhere))
    assert np.isnan(found.remaining_seconds).tolist() == [False, True, False]
    assert np.isinf(found.remaining_seconds).tolist() == [False, False, True]
    supposed = found.supposing(600.0)
    assert supposed.remaining_seconds[0] == found.remaining_seconds[0]
    assert supposed.remaining_seconds[1:].tolist() == [600.0, np.inf]


def test_a_job_of_unknown_speed_is_planned_with_others() -> None:
    known, unknown = (
        Job(spec("a", gpu_count=1, batch_size=64), belief(t4=0.1), 1e6),
        Job(spec("b", gpu_count=1, batch_size=64), Belief(), 1e6),
    )
    for decision in rounds_of(shockwave(), round_of("t4=1x2", known, unknown, now=0.0), 3):
        assert set(decision.grants) == {"a", "b"}


def shockwave(**parameters: object) -> Policy:
    return POLICIES.build("shockwave", parameters)


def rounds_of(policy: Policy, start: RoundInput, many: int) -> list[Decision]:
    """The same jobs round after round, as if none made progress."""
    decisions, current = [], start
    for _ in range(many):
        decisions.append(policy.allocate(current))
        state = replace(decisions[-1].state, data=json.loads(json.dumps(decisions[-1].state.data)))
        current = replace(
            current, round_number=current.round_number + 1, now=current.now + 120.0, state=state
        )
    return decisions


def crowd(count: int, **changes: Any) -> tuple[Job, ...]:
    return tuple(adapting(f"job-{n}", **changes) for n in range(count))


def test_a_plan_is_followed_until_it_is_eight_rounds_old() -> None:
    found = rounds_of(shockwave(), round_of("t4=1x2", *crowd(5), now=0.0), 10)
    solved = [decision.report.status is not SolveStatus.NOT_NEEDED for decision in found]
    assert solved == [True] + [False] * 7 + [True, False]


def test_a_job_that_comes_or_goes_makes_a_new_plan() -> None:
    policy, first = shockwave(), round_of("t4=1x2", *crowd(3), now=0.0)
    state = policy.allocate(first).state
    for changed in (crowd(4), crowd(2)):
        later = replace(round_of("t4=1x2", *changed, now=120.0), round_number=2, state=state)
        assert policy.allocate(later).report.status is not SolveStatus.NOT_NEEDED
    same = replace(round_of("t4=1x2", *crowd(3), now=120.0), round_number=2, state=state)
    assert policy.allocate(same).report.status is SolveStatus.NOT_NEEDED


def test_no_gpu_idles_while_a_job_waits() -> None:
    for decision in rounds_of(shockwave(), round_of("t4=1x3", *crowd(7), now=0.0), 6):
        assert len(decision.grants) == 3


def test_a_late_job_comes_first() -> None:
    """Both have the same to do; one was to be finished long ago."""
    late, new = (
        adapting("late", submitted_at=0.0, remaining_work=9000.0),
        adapting("new", submitted_at=5000.0, remaining_work=9000.0),
    )
    policy, alone = shockwave(), round_of("t4=1x1", late, now=0.0)
    state = policy.allocate(alone).state
    later = replace(round_of("t4=1x1", new, late, now=5000.0), round_number=50, state=state)
    assert list(policy.allocate(later).grants) == ["late"]


def test_a_finish_target_is_mostly_the_mean_of_past_estimates_over_the_time_they_stood() -> None:
    estimates = _Estimates(0.0, 0.0, 100.0, 0.0).then(200.0, 30.0)
    assert _Estimates(0.0, 0.0, 100.0, 0.0).target(0.0) == pytest.approx(100.0)
    assert estimates.target(40.0) == pytest.approx(0.9 * (100 * 30 + 200 * 10) / 40 + 0.1 * 200)


def test_what_another_policy_or_other_parameters_left_behind_is_not_read() -> None:
    policy, first = shockwave(), round_of("t4=1x2", *crowd(3), now=0.0)
    fresh = policy.allocate(first)
    foreign = replace(
        first, state=PolicyState("gavel", "x", {"jobs": {"job-0": {"received": 3.0}}})
    )
    assert policy.allocate(foreign).state == fresh.state
    left = replace(first, round_number=2, state=shockwave(window_rounds=10).allocate(first).state)
    assert policy.allocate(left).report.status is not SolveStatus.NOT_NEEDED


def test_what_it_remembers_of_a_job_is_small() -> None:
    decision = shockwave().allocate(round_of("t4=1x8", *crowd(40), now=0.0))
    assert len(json.dumps(decision.state.data)) < 40 * 130


def test_its_searches_end_by_nodes_long_before_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[MixedOptions] = []
    run = mixed_highs.run_highs
    monkeypatch.setattr(
        mixed_highs,
        "run_highs",
        lambda programme, options: asked.append(options) or run(programme, options),
    )
    report = shockwave(solver_nodes=7).allocate(round_of("t4=1x2", *crowd(5), now=0.0)).report
    assert {(options.nodes, options.seconds) for options in asked} == {(7, 300.0)}
    assert not report.out_of_time


def test_a_plan_whose_search_a_clock_ended_says_so_and_the_rounds_that_follow_it_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = mixed_highs.run_highs
    monkeypatch.setattr(
        mixed_highs,
        "run_highs",
        lambda programme, options: replace(run(programme, options), out_of_time=True),
    )
    found = rounds_of(shockwave(), round_of("t4=1x2", *crowd(5), now=0.0), 3)
    assert [decision.report.out_of_time for decision in found] == [True, False, False]
