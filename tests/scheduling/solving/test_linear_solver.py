"""Linear programmes: both methods prove one optimum; a failure keeps the present.

The interior point returns the middle of equally good answers.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from maat.scheduling.solving import linear_solver
from maat.scheduling.solving.linear_programme import LinearAnswer, LinearMethod, LinearProgramme
from maat.scheduling.solving.linear_solver import solve_linear
from maat.scheduling.solving.report import SolveStatus


def dense(gain: list[float], rows: list[list[float]], most: list[float]) -> LinearProgramme:
    matrix = np.array(rows, dtype=np.float64).reshape(len(most), len(gain))
    row, column = np.nonzero(matrix)
    return LinearProgramme(np.array(gain), row, column, matrix[row, column], np.array(most))


@pytest.mark.parametrize("method", LinearMethod)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), jobs=st.integers(1, 12))
def test_the_optimum_is_that_of_an_independent_solver(
    method: LinearMethod, seed: int, jobs: int
) -> None:
    rng = np.random.default_rng(seed)
    gain, count = rng.uniform(0.0, 50.0, jobs * 3), rng.integers(1, 9, jobs)
    shares = np.kron(np.eye(jobs), np.ones(3))
    gpus = np.hstack([c * np.eye(3) for c in count])
    rows, most = np.vstack([shares, gpus]), np.concatenate([np.ones(jobs), rng.integers(0, 20, 3)])
    found = solve_linear(
        dense(gain.tolist(), rows.tolist(), most.tolist()),
        present=np.zeros(jobs * 3),
        method=method,
    )
    best = -linprog(-gain, A_ub=rows, b_ub=most).fun
    assert found.report.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert found.report.bound == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert not found.report.fallback
    assert (rows @ found.x <= most + 1e-6 * np.maximum(most, 1)).all()


def test_of_equal_answers_the_interior_point_is_the_middle_and_simplex_a_corner() -> None:
    two_equal_jobs_on_one_gpu = dense(
        [1.0, 1.0], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 1.0, 1.0]
    )
    middle = solve_linear(
        two_equal_jobs_on_one_gpu, present=np.zeros(2), method=LinearMethod.INTERIOR_POINT
    ).x
    corner = solve_linear(
        two_equal_jobs_on_one_gpu, present=np.zeros(2), method=LinearMethod.SIMPLEX
    ).x
    assert middle == pytest.approx([0.5, 0.5], abs=1e-4)
    assert sorted(corner.tolist()) == pytest.approx([0.0, 1.0])


def test_the_price_of_a_full_row_is_what_one_more_place_would_gain() -> None:
    programme = dense([3.0, 2.0], [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]], [1.0, 1.0, 2.0])
    found = solve_linear(
        programme, present=np.zeros(2), method=LinearMethod.SIMPLEX, row_names={2: "capacity:t4"}
    )
    assert found.report.prices == pytest.approx({"capacity:t4": 1.5})


def test_a_method_that_ends_without_an_optimum_gives_way_to_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(programme: LinearProgramme) -> LinearAnswer:
        return LinearAnswer(
            False, "out of patience", np.zeros(len(programme.gain)), np.zeros(len(programme.most))
        )

    monkeypatch.setitem(linear_solver._LINEAR, LinearMethod.INTERIOR_POINT, fails)
    found = solve_linear(
        dense([1.0], [[1.0]], [1.0]), present=np.zeros(1), method=LinearMethod.INTERIOR_POINT
    )
    assert (found.report.status, found.report.method, found.report.fallback) == (
        SolveStatus.OPTIMAL,
        "simplex",
        True,
    )
    assert "out of patience" in found.report.message
    assert found.x == pytest.approx([1.0])


def test_an_answer_that_breaks_a_row_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    for method in LinearMethod:
        monkeypatch.setitem(
            linear_solver._LINEAR,
            method,
            lambda p: LinearAnswer(
                True, "solved", np.full(len(p.gain), 9.0), np.zeros(len(p.most))
            ),
        )
    present = np.array([0.25])
    found = solve_linear(dense([4.0], [[1.0]], [1.0]), present=present, method=LinearMethod.SIMPLEX)
    assert found.report.status is SolveStatus.KEPT_PRESENT
    assert found.report.fallback
    assert (found.x.tolist(), found.report.objective) == ([0.25], 1.0)


def test_a_value_that_is_no_number_keeps_what_is_there() -> None:
    found = solve_linear(
        dense([float("nan")], [[1.0]], [1.0]), present=np.array([0.5]), method=LinearMethod.SIMPLEX
    )
    assert found.report.status is SolveStatus.KEPT_PRESENT
    assert found.x.tolist() == [0.5]
