"""The papers' programmes on examples that can be checked by hand, and answers that are unusable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from maat.scheduling.policies.shockwave.stated_window import order_by_cvxpy, share_by_cvxpy
from maat.scheduling.policies.shockwave.window import Window, share_rounds
from maat.scheduling.solving.assignment.problem import AssignmentProblem, SolveOptions
from maat.scheduling.solving.assignment.solver import solve_stated as assign_stated
from maat.scheduling.solving.linear_programme import LinearProgramme
from maat.scheduling.solving.linear_solver import solve_stated as share_stated
from maat.scheduling.solving.mixed_programme import MixedOptions
from maat.scheduling.solving.papers import gavel, sia, themis
from maat.scheduling.solving.papers.cvxpy_solver import MixedLimits
from maat.scheduling.solving.papers.stated_answer import StatedAnswer
from maat.scheduling.solving.report import SolveStatus

EXACT = MixedLimits(gap=0.0, seconds=10.0)


def sia_round(**changes: object) -> sia.SiaRound:
    """Two jobs: each may have one or two of three GPUs. The first is rigid if it says so."""
    values: dict[str, object] = {
        "utility": np.array([1.0, 0.6, 1.0, 0.7]),
        "job": np.array([0, 0, 1, 1]),
        "rigid": np.zeros(4, dtype=bool),
        "weight": np.ones(4),
        "usage": np.array([[1], [2], [1], [2]]),
        "capacity": np.array([3]),
        "idle_penalty": 1.1,
        "minimised": True,
        **changes,
    }
    return sia.SiaRound(**values)  # type: ignore[arg-type]


def test_sias_sum_is_that_of_equation_4_with_lambda_for_idle_jobs() -> None:
    answer = sia.solve(sia_round(), EXACT)
    assert answer.x is not None
    assert answer.x.round().tolist() == [0, 1, 1, 0]
    assert answer.objective == pytest.approx(0.6 + 1.0)
    alone = sia.solve(sia_round(capacity=np.array([1])), EXACT)
    assert alone.objective == pytest.approx(1.0 + 1.1), "one job is idle"


def test_rigid_jobs_are_summed_by_equation_5_and_share_the_same_gpus() -> None:
    """The first job is rigid and asks for two GPUs: its pair of one GPU does not exist."""
    rigid = sia_round(
        utility=np.array([0.6, 1.0, 0.7]),
        job=np.array([0, 1, 1]),
        rigid=np.array([True, False, False]),
        weight=np.ones(3),
        usage=np.array([[2], [1], [2]]),
    )
    answer = sia.solve(rigid, EXACT)
    assert answer.x is not None
    assert answer.x.round().tolist() == [1, 1, 0]
    assert answer.objective == pytest.approx(0.6 + 1.0)


def test_for_p_above_zero_an_idle_job_is_a_penalty_not_a_reward() -> None:
    answer = sia.solve(sia_round(minimised=False, capacity=np.array([1])), EXACT)
    assert answer.objective == pytest.approx(1.0 - 1.1)


def test_a_job_of_weight_two_counts_twice_with_its_idle_penalty() -> None:
    answer = sia.solve(
        sia_round(weight=np.array([1.0, 1.0, 2.0, 2.0]), capacity=np.array([1])), EXACT
    )
    assert answer.x is not None
    assert answer.x.round().tolist() == [0, 0, 1, 0]
    assert answer.objective == pytest.approx(1.1 + 2 * 1.0)


def test_the_price_of_a_gpu_is_what_one_more_is_worth_to_the_relaxation() -> None:
    """Two GPUs are worth 1.1 - 0.7 to the second job, which has half of them."""
    answer = sia.solve(sia_round(), EXACT)
    assert answer.prices == pytest.approx([0.2])


def test_themis_chooses_the_bundles_whose_product_of_values_is_largest() -> None:
    values = np.log([4.0, 2.0, 3.0])  # of four GPUs; or of two GPUs each
    auction = themis.ThemisAuction(
        values, np.array([0, 0, 1]), np.array([[4], [2], [2]]), np.array([4])
    )
    answer = themis.solve(auction, EXACT)
    assert answer.x is not None
    assert answer.x.round().tolist() == [0, 1, 1], "2 x 3 is more than 4 x 1"
    assert answer.objective == pytest.approx(np.log(6.0))


def two_jobs_on_one_gpu() -> gavel.GavelRound:
    """The second job is twice as fast as the first."""
    entries = np.arange(2)
    return gavel.GavelRound(
        entries, entries, np.array([1.0, 2.0]), np.array([[1], [1]]), np.array([1]), jobs=2
    )


def test_gavels_objectives_on_two_jobs_and_one_gpu() -> None:
    data, rows = two_jobs_on_one_gpu(), np.arange(2)
    total = gavel.total_throughput(data, np.ones(2))
    assert total.x == pytest.approx([0.0, 1.0], abs=1e-6)
    fair = gavel.largest_minimum(data, rows, np.array([1.0, 2.0]))
    assert fair.x == pytest.approx([0.5, 0.5], abs=1e-6)
    short = gavel.makespan(data, rows, np.array([1.0, 2.0]))
    assert (short.x, short.objective) == (pytest.approx([0.5, 0.5], abs=1e-5), pytest.approx(2.0))
    late = gavel.finish_time_fairness(
        data,
        rows,
        elapsed=np.array([0.0, 0.0]),
        num_steps=np.array([1.0, 2.0]),
        isolated=np.array([2.0, 2.0]),
    )
    assert late.objective == pytest.approx(1.0), "both end as they would on half of the GPU"


def test_the_prices_of_gavels_answers_prove_them() -> None:
    """Seven jobs on two types, of which the third job runs on one only."""
    draw = np.random.default_rng(5)
    job = np.array([0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6])
    usage = np.zeros((13, 2), dtype=np.int64)
    usage[np.arange(13), [0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1]] = 1 + job % 3
    data = gavel.GavelRound(
        np.arange(13), job, draw.uniform(0.2, 1.0, 13), usage, np.array([4, 3]), jobs=7
    )
    rows, need = np.arange(7), draw.uniform(0.01, 1.0, 7)
    for answer in (
        gavel.total_throughput(data, need),
        gavel.largest_minimum(data, rows, need),
        gavel.makespan(data, rows, need),
        gavel.finish_time_fairness(
            data, rows, elapsed=draw.uniform(0.0, 9.0, 7), num_steps=need, isolated=need
        ),
    ):
        assert answer.optimal
        assert answer.lost <= 1e-5 * abs(answer.objective)


def window(demands: list[int], free: int, rounds: int, least: list[float]) -> Window:
    many = len(demands)
    return Window(
        demand=np.array(demands),
        done=np.linspace(0.0, 0.4, many),
        paced_rounds=np.linspace(6.0, 30.0, many),
        remaining_rounds=np.linspace(5.0, 20.0, many),
        weight=np.full(many, 1.0 / (many * rounds)),
        least_rounds=np.array(least),
        must_run=np.zeros(many, dtype=bool),
        free=free,
        rounds=rounds,
        makespan_weight=0.01,
    )


@pytest.mark.parametrize("demands", [[1, 1, 2], [3, 2, 2, 1], [4, 3]])
def test_shockwaves_window_is_worth_what_maats_own_programme_finds(demands: list[int]) -> None:
    options = MixedOptions(gap=1e-7)
    data = window(demands, free=4, rounds=5, least=[0.0] * len(demands))
    own, own_report = share_rounds(data, options)
    stated, report = share_by_cvxpy(data, options)
    assert own is not None
    assert stated is not None
    assert (data.demand @ stated <= 4).all()
    assert report.objective == pytest.approx(own_report.objective, rel=1e-5)
    ordered, _ = order_by_cvxpy(data, stated, np.ones(len(demands)), options)
    assert ordered.sum(axis=1).tolist() == stated.sum(axis=1).tolist()


def test_rows_of_fairness_hold_or_there_is_no_plan() -> None:
    options = MixedOptions(gap=1e-7)
    table, _ = share_by_cvxpy(window([1, 1], free=1, rounds=4, least=[0.0, 3.0]), options)
    assert table is not None
    assert table[1].sum() >= 3
    none, report = share_by_cvxpy(window([1, 1], free=1, rounds=4, least=[2.0, 3.0]), options)
    assert none is None
    assert report.message == "cvxpy ended with 'infeasible'"


def answer(x: list[float] | None, *, optimal: bool, status: str = "user_limit") -> StatedAnswer:
    point = None if x is None else np.array(x)
    return StatedAnswer(optimal, False, status, point, lost=np.inf, objective=0.0)


def one_gpu(present: list[bool]) -> AssignmentProblem:
    return AssignmentProblem(
        value=np.array([1.0, 2.0]),
        places=np.array([1, 1]),
        job=np.array([0, 1]),
        membership=np.ones((2, 1), dtype=bool),
        capacity=np.array([1]),
        present=np.array(present),
        limit_names=("gpus",),
    )


@pytest.mark.parametrize("x", [None, [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
def test_an_unproven_answer_worth_less_than_the_present_is_refused(x: list[float] | None) -> None:
    problem = one_gpu(present=[False, True])
    found = assign_stated(problem, SolveOptions(), lambda pairs: answer(x, optimal=False))
    assert found.chosen.tolist() == [1]
    assert found.report.status is SolveStatus.KEPT_PRESENT
    assert found.report.fallback
    assert "the present allocation stays" in found.report.message


def test_an_unproven_answer_worth_more_than_the_present_is_taken_with_its_gap() -> None:
    problem = one_gpu(present=[True, False])
    found = assign_stated(problem, SolveOptions(), lambda pairs: answer([0, 1], optimal=False))
    assert found.chosen.tolist() == [1]
    assert found.report.bound == pytest.approx(3.0), "each job's best, without limits"


@pytest.mark.parametrize(("x", "optimal"), [(None, False), ([0.5, 0.5], False), ([1.0, 1.0], True)])
def test_shares_that_are_not_optimal_or_break_a_row_are_not_used(
    x: list[float] | None, optimal: bool
) -> None:
    columns = np.arange(2)
    programme = LinearProgramme(
        np.ones(2), np.zeros(2, dtype=np.int64), columns, np.ones(2), np.ones(1)
    )
    found = share_stated(
        programme, lambda: answer(x, optimal=optimal), worth=lambda x: 0.0, row_names=["gpus"]
    )
    assert found.report.fallback
    assert found.report.message.startswith("cvxpy ended with")


@pytest.mark.parametrize(("lost", "usable"), [(np.inf, False), (0.01, False), (1e-5, True)])
def test_optimal_shares_are_used_only_if_their_prices_prove_them(lost: float, usable: bool) -> None:
    one, first = np.ones(1), np.zeros(1, dtype=np.int64)
    stated = replace(answer([1.0], optimal=True), objective=1.0, lost=lost)
    found = share_stated(
        LinearProgramme(one, first, first, one, one),
        lambda: stated,
        worth=lambda x: float(x[0]),
        row_names=[],
    )
    assert found.report.fallback is not usable
    assert (found.report.bound == pytest.approx(1.0 + lost)) is usable
