"""The solver against HiGHS at gap 0 and against answers computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling.solving.assignment_problems import many_jobs, problem, problems

from maat.scheduling.errors import ContractViolation
from maat.scheduling.solving.assignment.problem import (
    AssignmentProblem,
    SolveOptions,
    is_feasible,
    used_places,
)
from maat.scheduling.solving.assignment.solver import solve, solve_highs
from maat.scheduling.solving.report import SolveStatus

PROOF = SolveOptions(tolerance=0.0)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems())
def test_the_answer_is_feasible_and_as_good_as_highs_with_proof(
    instance: AssignmentProblem,
) -> None:
    oracle = solve_highs(instance, PROOF).report.objective

    answer = solve(instance, PROOF)

    scale = max(1.0, abs(oracle))
    assert is_feasible(instance, answer.chosen)
    assert answer.report.objective == pytest.approx(oracle, abs=1e-6 * scale)
    assert answer.report.status is SolveStatus.OPTIMAL


@settings(max_examples=100, deadline=None, derandomize=True)
@given(problems(), st.sampled_from([0.0, 1e-4, 0.05, 0.3]))
def test_the_bound_holds_and_the_gap_says_how_far_the_answer_is_from_it(
    instance: AssignmentProblem, tolerance: float
) -> None:
    best = solve_highs(instance, PROOF).report.objective

    report = solve(instance, SolveOptions(tolerance=tolerance)).report

    slack = 1e-6 * max(1.0, abs(best))
    assert report.bound >= best - slack
    assert best - report.objective <= report.gap * report.bound + slack
    assert report.gap <= max(tolerance, 1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_pairs_under_several_limits_at_once_are_solved_exactly(seed: int) -> None:
    instance = many_jobs(seed)

    answer = solve(instance, PROOF)

    assert answer.report.objective == pytest.approx(
        solve_highs(instance, PROOF).report.objective, abs=1e-6
    )
    assert is_feasible(instance, answer.chosen)


def test_an_answer_found_without_budget_is_within_its_certified_gap() -> None:
    instance = many_jobs(7)

    report = solve(instance, SolveOptions(tolerance=0.0, budget_seconds=0.0)).report

    best = solve_highs(instance, PROOF).report.objective
    assert report.objective <= best + 1e-9 <= report.bound + 2e-9
    assert best - report.objective <= report.gap * report.bound + 1e-9


def test_sias_table_1_gives_each_job_what_the_paper_gives_it() -> None:
    # columns (1,1,A) (1,2,A) (1,1,B) (1,2,B) (1,4,B) of Sia table 1; two A and four B
    instance = problem(
        [1.0, 2.0, 2.0, 4.0, 8.0, 1.0, 2.0, 1.5, 2.5, 3.0],
        [1, 2, 1, 2, 4] * 2,
        [0] * 5 + [1] * 5,
        limits=[[0], [0], [1], [1], [1]] * 2,
        capacity=[2, 4],
    )

    assert solve(instance).chosen.tolist() == [4, 6]


def test_where_everything_fits_each_job_has_its_best_pair_and_places_cost_nothing() -> None:
    instance = problem([1.0, 3.0, 2.0], [1, 2, 2], [0, 0, 1], limits=[[0]] * 3, capacity=[4])

    answer = solve(instance, PROOF)

    assert answer.chosen.tolist() == [1, 2]
    assert answer.report.prices == {"limit-0": 0.0}


def test_a_price_says_what_one_more_place_would_be_worth() -> None:
    ten_alike = problem([2.0] * 10, [1] * 10, list(range(10)), limits=[[0]] * 10, capacity=[4])

    report = solve(ten_alike, PROOF).report

    assert report.objective == pytest.approx(8.0)
    assert report.prices["limit-0"] == pytest.approx(2.0, rel=1e-2)


def test_a_problem_without_pairs_is_solved_by_choosing_nothing() -> None:
    answer = solve(problem([], [], [], limits=[], capacity=[4]))

    assert answer.chosen.tolist() == []
    assert answer.report.status is SolveStatus.OPTIMAL


def test_pairs_worth_nothing_are_never_chosen() -> None:
    instance = problem([-1.0, 0.0, -0.2], [1, 1, 1], [0, 1, 2], limits=[[0]] * 3, capacity=[9])

    assert solve(instance).chosen.tolist() == []


def test_a_limit_of_no_places_keeps_its_pairs_out_and_no_others() -> None:
    instance = problem([5.0, 1.0], [1, 1], [0, 0], limits=[[0], [1]], capacity=[0, 1])

    assert solve(instance).chosen.tolist() == [1]


def test_of_equal_pairs_the_one_with_fewer_places_is_taken_then_the_first() -> None:
    instance = problem(
        [1.0, 1.0, 1.0], [4, 2, 2], [0, 0, 0], limits=[[0], [0], [1]], capacity=[8, 8]
    )

    assert solve(instance).chosen.tolist() == [1]


def test_a_tie_seed_picks_among_equal_answers_and_only_among_those() -> None:
    rng = np.random.default_rng(3)
    jobs = 12
    worth = np.repeat(rng.integers(1, 4, jobs), 3).astype(float)
    instance = problem(
        worth.tolist(),
        [1, 1, 1] * jobs,
        np.repeat(np.arange(jobs), 3).tolist(),
        limits=[[0], [1], [2]] * jobs,
        capacity=[2, 2, 3],
    )

    answers = [solve(instance, SolveOptions(tolerance=0.0, tie_seed=seed)) for seed in range(10)]

    assert len({tuple(answer.chosen.tolist()) for answer in answers}) > 3
    assert {round(answer.report.objective, 9) for answer in answers} == {
        round(solve(instance, PROOF).report.objective, 9)
    }


@pytest.mark.parametrize("tie_seed", [None, 5])
def test_the_same_problem_gives_the_same_answer(tie_seed: int | None) -> None:
    options = SolveOptions(tie_seed=tie_seed)

    first, second = solve(many_jobs(1), options), solve(many_jobs(1), options)

    assert first.chosen.tolist() == second.chosen.tolist()
    assert first.report.prices == second.report.prices


def test_the_problem_handed_in_is_left_as_it_was() -> None:
    instance = many_jobs(4)
    before = [
        array.copy()
        for array in (instance.value, instance.places, instance.membership, instance.capacity)
    ]

    solve(instance)

    for array, copy in zip(
        (instance.value, instance.places, instance.membership, instance.capacity),
        before,
        strict=True,
    ):
        np.testing.assert_array_equal(array, copy)


def test_pairs_out_of_order_are_refused_and_not_solved_wrongly() -> None:
    with pytest.raises(ContractViolation, match="sorted by job"):
        solve(problem([1.0, 1.0, 1.0], [1, 1, 1], [0, 1, 0], limits=[[0]] * 3, capacity=[1]))


def test_places_are_counted_under_every_limit_of_a_pair() -> None:
    instance = problem([1.0, 1.0], [3, 2], [0, 1], limits=[[0, 1], [1]], capacity=[9, 9])

    assert used_places(instance, np.array([0, 1])).tolist() == [3, 5]


def test_the_example_of_the_solver_page_is_proved_by_the_exact_search() -> None:
    values = {0: {1: 0.30, 2: 0.52, 4: 0.85}, 1: {1: 0.25, 2: 0.48, 4: 0.90}}
    values |= {2: {2: 0.40, 4: 0.62}, 3: {4: 0.70}}
    rows = [
        (value, gpus, job) for job, by_gpus in values.items() for gpus, value in by_gpus.items()
    ]
    value, places, job = (list(column) for column in zip(*rows, strict=True))
    instance = problem(value, places, job, limits=[[0]] * len(value), capacity=[7])

    hurried = solve(instance, SolveOptions(budget_seconds=0.0, tolerance=0.2)).report
    proved = solve(instance, PROOF)

    assert hurried.bound == pytest.approx(1.62, abs=0.02)
    assert hurried.objective == pytest.approx(1.42)
    assert [(job[pair], places[pair]) for pair in proved.chosen] == [(0, 1), (1, 4), (2, 2)]
    assert proved.report.method == "prices and core"
    assert proved.report.bound == pytest.approx(1.60)
    assert proved.report.prices["limit-0"] == pytest.approx(0.20, abs=1e-3)
