"""When a solver fails, the worst possible answer is the present allocation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scheduling.solving.assignment_problems import many_jobs, problem

from maat.scheduling.solving.assignment import highs, price_search, solver
from maat.scheduling.solving.assignment.exact_search import SearchResult
from maat.scheduling.solving.assignment.highs import HighsAnswer, run_highs
from maat.scheduling.solving.assignment.problem import AssignmentProblem, SolveOptions, is_feasible
from maat.scheduling.solving.assignment.solver import solve, solve_highs
from maat.scheduling.solving.report import SolveStatus

Ended = Callable[[str, np.ndarray, bool], None]


@pytest.fixture
def highs_ends_with(monkeypatch: pytest.MonkeyPatch) -> Ended:
    """Make HiGHS end with a status, an assignment and a claim of optimality."""

    def install(status: str, x: np.ndarray, optimal: bool = False) -> None:
        monkeypatch.setattr(
            highs,
            "run_highs",
            lambda problem, **_: HighsAnswer(optimal, status, x, np.inf, not optimal),
        )

    return install


def two_jobs_that_hold_something() -> AssignmentProblem:
    return problem(
        [1.0, 3.0, 2.0, 1.0],
        [1, 4, 2, 1],
        [0, 0, 1, 1],
        limits=[[0]] * 4,
        capacity=[5],
        present=(0, 2),
    )


def test_a_time_limits_all_zero_answer_is_not_believed(highs_ends_with: Ended) -> None:
    highs_ends_with("Time limit reached", np.zeros(4), False)

    answer = solve_highs(two_jobs_that_hold_something())

    assert answer.chosen.tolist() == [0, 2]
    assert answer.report.status is SolveStatus.KEPT_PRESENT
    assert answer.report.fallback
    assert "Time limit reached" in answer.report.message
    assert answer.report.objective == 3.0


def test_an_all_zero_answer_that_calls_itself_optimal_is_not_believed_either(
    highs_ends_with: Ended,
) -> None:
    highs_ends_with("Optimal", np.zeros(4), True)

    assert solve_highs(two_jobs_that_hold_something()).report.status is SolveStatus.KEPT_PRESENT


def test_an_unproved_answer_better_than_the_present_is_taken_with_its_gap(
    highs_ends_with: Ended,
) -> None:
    highs_ends_with("Time limit reached", np.array([0.0, 1.0, 0.0, 1.0]), False)

    answer = solve_highs(two_jobs_that_hold_something())

    assert answer.chosen.tolist() == [1, 3]
    assert answer.report.status is SolveStatus.WITHIN_GAP
    assert not answer.report.fallback
    assert answer.report.gap == pytest.approx((5.0 - 4.0) / 5.0)


def test_an_answer_that_breaks_a_limit_is_not_believed(highs_ends_with: Ended) -> None:
    highs_ends_with("Optimal", np.array([0.0, 1.0, 1.0, 0.0]), True)

    answer = solve_highs(two_jobs_that_hold_something())

    assert answer.report.status is SolveStatus.KEPT_PRESENT
    assert is_feasible(two_jobs_that_hold_something(), answer.chosen)


def test_of_a_present_that_no_longer_fits_as_much_is_kept_as_the_limits_allow(
    highs_ends_with: Ended,
) -> None:
    shrunk = problem(
        [1.0, 1.0, 1.0], [4, 4, 2], [0, 1, 2], limits=[[0]] * 3, capacity=[6], present=(0, 1, 2)
    )
    highs_ends_with("Solve error", np.zeros(3), False)

    answer = solve_highs(shrunk)

    assert answer.chosen.tolist() == [0, 2]


def test_highs_really_stopped_by_its_time_limit_keeps_at_least_the_present() -> None:
    instance = two_jobs_that_hold_something()

    answer = solve_highs(instance, SolveOptions(fallback_seconds=0.0))

    assert answer.report.out_of_time
    assert answer.report.objective >= 3.0
    assert is_feasible(instance, answer.chosen)


def test_values_that_are_no_numbers_keep_the_present_and_say_how_many() -> None:
    instance = two_jobs_that_hold_something()
    broken = AssignmentProblem(
        np.array([1.0, np.nan, 2.0, np.inf]),
        instance.places,
        instance.job,
        instance.membership,
        instance.capacity,
        instance.present,
    )

    for answer in (solve(broken), solve_highs(broken)):
        assert answer.chosen.tolist() == [0, 2]
        assert answer.report.status is SolveStatus.KEPT_PRESENT
        assert "2 of 4 pairs" in answer.report.message


def test_an_answer_by_prices_is_never_worse_than_the_present(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    best = solve(many_jobs(5), SolveOptions(tolerance=0.0))
    held = np.zeros(len(many_jobs(5).value), dtype=bool)
    held[best.chosen] = True
    bare = many_jobs(5)
    instance = AssignmentProblem(
        bare.value, bare.places, bare.job, bare.membership, bare.capacity, held, bare.limit_names
    )
    monkeypatch.setattr(
        price_search, "ordered_greedy", lambda problem, prices: np.full(problem.job_count, -1)
    )
    monkeypatch.setattr(
        price_search,
        "search_within_budget",
        lambda *_, **__: SearchResult(None, np.inf, False, 10**9),
    )

    answer = solve(instance, SolveOptions(tolerance=0.0))

    assert answer.report.objective == pytest.approx(best.report.objective)


def test_a_gap_that_prices_leave_open_is_closed_by_highs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        price_search, "ordered_greedy", lambda problem, prices: np.full(problem.job_count, -1)
    )
    monkeypatch.setattr(
        price_search,
        "search_within_budget",
        lambda *_, **__: SearchResult(None, np.inf, False, 10**9),
    )
    instance = many_jobs(6)

    report = solve(instance, SolveOptions(tolerance=0.0)).report

    assert report.method.endswith("highs")
    assert not report.out_of_time
    assert report.objective == pytest.approx(
        solve_highs(instance, SolveOptions(tolerance=0.0)).report.objective, abs=1e-6
    )


def test_a_second_opinion_that_fails_leaves_the_first_answer_and_is_reported(
    monkeypatch: pytest.MonkeyPatch, highs_ends_with: Ended
) -> None:
    monkeypatch.setattr(
        price_search,
        "search_within_budget",
        lambda *_, **__: SearchResult(None, np.inf, False, 10**9),
    )
    monkeypatch.setattr(solver, "ACCEPTABLE_GAP", 0.0)
    bare = many_jobs(6)
    held = np.zeros(len(bare.value), dtype=bool)
    held[0] = True
    instance = AssignmentProblem(
        bare.value, bare.places, bare.job, bare.membership, bare.capacity, held, bare.limit_names
    )
    highs_ends_with("Time limit reached", np.zeros(len(held)), False)

    answer = solve(instance, SolveOptions(tolerance=0.0))

    assert answer.report.objective > float(instance.value[0])
    assert answer.report.status is SolveStatus.WITHIN_GAP
    assert answer.report.out_of_time
    assert "Time limit reached" in answer.report.message


def test_highs_says_what_it_did_and_the_bound_it_has() -> None:
    said = run_highs(two_jobs_that_hold_something(), gap=0.0, seconds=10.0)

    assert said.optimal
    assert said.status == "Optimal"
    assert np.round(said.x).tolist() == [0.0, 1.0, 0.0, 1.0]
    assert said.bound == pytest.approx(4.0)
