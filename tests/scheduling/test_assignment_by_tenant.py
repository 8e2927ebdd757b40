"""The assignment programme tenant by tenant is as good as all together, with proof."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from contracts.sampling import sampled
from hypothesis import given
from hypothesis import strategies as st

from maat.contracts.generated_quotas import quota_rounds
from maat.scheduling.assignment.by_tenant import solve_by_tenant
from maat.scheduling.assignment.limit_columns import NO_LIMIT, limit_columns
from maat.scheduling.free_capacity import free_places
from maat.scheduling.limits import membership, places_taken
from maat.scheduling.matrix import goodput_matrix
from maat.scheduling.policies.sia import table_for, without_unusable
from maat.scheduling.quotas.rounds import quota_limits
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.assignment.problem import (
    AssignmentProblem,
    SolveOptions,
    is_feasible,
    used_places,
)
from maat.scheduling.solving.assignment.small_parts import SmallParts, solve_small
from maat.scheduling.solving.assignment.solver import solve_highs


def with_rows(round_input: RoundInput) -> RoundInput:
    return replace(round_input, limits=round_input.limits + quota_limits(round_input))


@sampled(300)
@given(round_input=quota_rounds().map(with_rows), seed=st.integers(0, 99))
def test_tenant_by_tenant_is_as_good_as_all_together(round_input: RoundInput, seed: int) -> None:
    table = table_for(round_input.cluster, round_input.jobs)
    matrix = goodput_matrix(
        round_input.jobs,
        round_input.cluster,
        table,
        scale_up=np.full(len(round_input.jobs), 64),
        projection=round_input.projection,
    )
    pairs = without_unusable(matrix).pairs
    pinned = np.array([job.id in round_input.pinned for job in round_input.jobs], dtype=bool)
    open_pairs = np.flatnonzero(~pinned[pairs.job] & (pairs.gpu_count > 0))
    value = np.random.default_rng(seed).uniform(-0.2, 1.0, size=len(open_pairs)).round(3)
    nothing = np.zeros(len(open_pairs), dtype=bool)
    answer = solve_by_tenant(round_input, pairs, open_pairs, value, nothing, SolveOptions(0.0))
    rows = membership(
        round_input.limits,
        round_input.jobs,
        round_input.cluster.type_names,
        job=pairs.job[open_pairs],
        gpu_type=pairs.gpu_type[open_pairs],
        count=pairs.gpu_count[open_pairs],
    )
    whole = AssignmentProblem(
        value,
        pairs.gpu_count[open_pairs],
        pairs.job[open_pairs],
        rows,
        free_places(round_input),
        nothing,
        tuple(limit.name for limit in round_input.limits),
    )
    columns = limit_columns(
        round_input.limits,
        round_input.jobs,
        round_input.cluster.type_names,
        job=pairs.job[open_pairs],
        gpu_type=pairs.gpu_type[open_pairs],
        count=pairs.gpu_count[open_pairs],
    )
    taken = np.zeros((len(open_pairs), len(round_input.limits) + 1), dtype=np.int64)
    for column in range(columns.taken.shape[1]):
        at = columns.limit[pairs.job[open_pairs], column]
        taken[np.arange(len(open_pairs)), at] += columns.taken[:, column]
    counts = pairs.gpu_count[open_pairs]
    assert (taken[:, :-1] == places_taken(round_input.limits, rows, counts)).all()
    assert not taken[:, NO_LIMIT].any()
    if answer is None:
        return
    assert is_feasible(whole, answer.chosen), used_places(whole, answer.chosen)
    best = solve_highs(whole, SolveOptions(tolerance=0.0)).report.objective
    assert answer.report.objective == pytest.approx(best, abs=1e-6)
    assert answer.report.bound >= best - 1e-9
    assert set(answer.report.prices) == {limit.name for limit in round_input.limits}
    assert all(price >= -1e-12 for price in answer.report.prices.values())


def test_small_parts_are_solved_at_once_each_within_its_own_places() -> None:
    """Two tenants of two types: the first has 3 and 1 places, the second 2 and 0."""
    answers = solve_small(
        SmallParts(
            part=np.array([0, 0, 0, 1, 1]),
            job=np.array([0, 0, 1, 0, 1]),
            row=np.array([0, 1, 0, 0, 1]),
            places=np.array([2, 1, 2, 2, 1]),
            value=np.array([1.0, 0.9, 1.0, 0.5, 9.0]),
            capacity=np.array([[3, 1], [2, 0]]),
        )
    )
    assert answers.chosen.tolist() == [1, 2, 3]
    assert answers.prices == pytest.approx(np.array([[0.0, 0.9], [0.5, 0.0]]))
