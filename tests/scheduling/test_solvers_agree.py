"""Maat's own solvers and the papers' programmes reach one objective on recorded rounds."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from benchmarks.solver.recorded import decided_again, recorded_rounds
from maat.scheduling.policies import POLICIES
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.report import SolveReport, SolveStatus

PROGRAMMES = [
    pytest.param("sia", {}, id="sia"),
    pytest.param("sia", {"p": 0.5}, id="sia, p above zero"),
    pytest.param("themis", {}, id="themis"),
    pytest.param("shockwave", {}, id="shockwave"),
    *(
        pytest.param("gavel", {"objective": objective}, id=f"gavel, {objective}")
        for objective in ("max-sum-throughput", "max-min", "makespan", "finish-time-fairness")
    ),
]
ROUNDING = 1e-8  # relative, or absolute below one: what sums in another order may differ by


def both(
    policy: str, parameters: Mapping[str, object], round_input: RoundInput
) -> tuple[SolveReport, SolveReport]:
    own, stated = (
        decided_again(round_input, POLICIES.build(policy, {**parameters, "solver": solver})).report
        for solver in ("prices", "cvxpy")
    )
    return own, stated


def agree(own: SolveReport, stated: SolveReport) -> None:
    for report in (own, stated):
        assert not report.fallback, report.message
        assert report.status in (SolveStatus.OPTIMAL, SolveStatus.WITHIN_GAP)
    certified = max(own.bound - own.objective, stated.bound - stated.objective)
    rounding = ROUNDING * max(abs(own.objective), 1.0)
    assert abs(own.objective - stated.objective) <= certified + rounding


@pytest.mark.parametrize(("policy", "parameters"), PROGRAMMES)
def test_both_reach_one_objective_within_the_certified_gap(
    policy: str, parameters: Mapping[str, object]
) -> None:
    rounds = recorded_rounds(policy, 12, parameters)
    assert max(len(round_input.jobs) for round_input in rounds) > 4, "rounds with something to do"
    for round_input in rounds:
        agree(*both(policy, parameters, round_input))


@pytest.mark.long
@pytest.mark.parametrize(("policy", "parameters"), PROGRAMMES)
def test_both_reach_one_objective_on_two_hundred_rounds(
    policy: str, parameters: Mapping[str, object]
) -> None:
    for round_input in recorded_rounds(policy, 200, parameters):
        agree(*both(policy, parameters, round_input))
