"""Mixed programmes: HiGHS's answers are checked, a missing one is reported."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maat.scheduling.solving.mixed_programme import MixedOptions, MixedProgramme, Rows, breaks
from maat.scheduling.solving.mixed_solver import solve_mixed
from maat.scheduling.solving.report import SolveStatus

EXACT = MixedOptions(gap=0.0)


def knapsack(
    worth: list[float], weight: list[float], room: float, *, lower: float = 0.0
) -> MixedProgramme:
    """Whole numbers of 0 to 2 of each thing."""
    rows, many = Rows(), len(worth)
    rows.add(np.array([lower]), np.array([room]), (np.arange(many)[None, :], np.array([weight])))
    return rows.programme(
        np.array(worth), np.zeros(many), np.full(many, 2.0), np.ones(many, dtype=bool)
    )


@settings(max_examples=40)
@given(
    things=st.lists(st.tuples(st.integers(-3, 9), st.integers(1, 7)), min_size=1, max_size=5),
    room=st.integers(0, 20),
)
def test_the_answer_is_the_best_of_all(things: list[tuple[int, int]], room: int) -> None:
    worth, weight = [float(w) for w, _ in things], [float(w) for _, w in things]
    answer = solve_mixed(knapsack(worth, weight, room), EXACT)
    best = max(
        sum(w * n for w, n in zip(worth, counts, strict=True))
        for counts in product(range(3), repeat=len(things))
        if sum(w * n for w, n in zip(weight, counts, strict=True)) <= room
    )
    assert answer.x is not None
    assert answer.report.objective == pytest.approx(best, abs=1e-6)
    assert answer.report.bound >= answer.report.objective
    assert answer.report.status is SolveStatus.OPTIMAL


def test_an_infeasible_programme_is_reported_as_infeasible() -> None:
    answer = solve_mixed(knapsack([1.0], [1.0], 9.0, lower=5.0))
    assert (answer.x, answer.infeasible, answer.report.fallback) == (None, True, True)
    assert "nfeasible" in answer.report.message


def test_a_programme_without_an_end_has_no_answer() -> None:
    rows = Rows()
    rows.add(np.zeros(1), np.full(1, np.inf), (np.array([0]), np.ones(1)))
    answer = solve_mixed(
        rows.programme(np.ones(1), np.zeros(1), np.full(1, np.inf), np.zeros(1, dtype=bool))
    )
    assert answer.x is None
    assert np.isfinite([answer.report.objective, answer.report.bound, answer.report.gap]).all()


@pytest.mark.parametrize(
    ("point", "broken"),
    [((2.0, 1.0), False), ((2.0, 2.0), True), ((0.5, 0.0), True), ((3.0, 0.0), True)],
)
def test_a_point_is_checked_against_bounds_rows_and_wholeness(
    point: tuple[float, float], broken: bool
) -> None:
    assert breaks(knapsack([1.0, 1.0], [1.0, 2.0], 4.0), np.array(point)) is broken


def hard_knapsack() -> MixedProgramme:
    """Strongly correlated value and weight: HiGHS branches for a while."""
    weight = np.random.default_rng(0).integers(1_000, 9_000, 60).astype(float)
    return knapsack((weight + 1_000.0).tolist(), weight.tolist(), float(weight.sum() // 2))


def test_a_search_that_its_clock_ends_says_so() -> None:
    assert solve_mixed(hard_knapsack(), MixedOptions(gap=0.0, seconds=0.0)).report.out_of_time


def test_a_search_that_its_nodes_end_is_not_out_of_time_and_answers_the_same_twice() -> None:
    first, again = (
        solve_mixed(hard_knapsack(), MixedOptions(gap=0.0, nodes=3, seconds=600.0))
        for _ in range(2)
    )
    assert not first.report.out_of_time
    assert first.report.status is SolveStatus.WITHIN_GAP
    assert first.x is not None
    assert again.x is not None
    assert first.x.tolist() == again.x.tolist()
